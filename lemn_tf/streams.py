"""Whole streams `[B, T, ...]`: checks, masks, and what was in memory at a given time."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from lemn_tf import memory, tape
from lemn_tf.memory import MemoryState
from lemn_tf.retention.decision import Decision

Nest = Any
LARGEST = 1e15
"""The largest number a policy is shown; products of larger ones would overflow."""


def sound(leaf: tf.Tensor) -> tf.Tensor:
    """The same with 0 for NaN, infinity and numbers beyond `LARGEST`, if it holds floats."""
    leaf = tf.convert_to_tensor(leaf)
    if not leaf.dtype.is_floating:
        return leaf
    largest = tf.constant(min(LARGEST, float(leaf.dtype.max)), leaf.dtype)
    return tf.where(tf.abs(leaf) <= largest, leaf, tf.zeros([], leaf.dtype))


def stream_mask(items: Nest, mask: Nest) -> tf.Tensor | None:
    """The mask of the stream: the one given, or what Keras attached to (part of) the items."""
    masks = [leaf for leaf in tf.nest.flatten(mask) if leaf is not None]
    if not masks:
        leaves = tf.nest.flatten(items)
        masks = [leaf._keras_mask for leaf in leaves if hasattr(leaf, "_keras_mask")]
        masks = [leaf for leaf in masks if leaf is not None]
    return tf.convert_to_tensor(masks[0]) if masks else None


def dense(items: Nest, mask: Nest) -> tuple[Nest, tf.Tensor | None]:
    """Streams as tensors `[B, T, ...]`, and their mask: ragged ones are padded at the end."""
    leaves = tf.nest.flatten(items)
    ragged = [leaf for leaf in leaves if isinstance(leaf, tf.RaggedTensor)]
    if not ragged:
        items = tf.nest.map_structure(tf.convert_to_tensor, items)
        return items, stream_mask(items, mask)
    lengths = ragged[0].row_lengths()
    items = tf.nest.pack_sequence_as(
        items, [leaf.to_tensor() if isinstance(leaf, tf.RaggedTensor) else leaf for leaf in leaves]
    )
    return items, tf.sequence_mask(lengths, tf.shape(tf.nest.flatten(items)[0])[1])


def check_stream(items: Nest, mask, ask_at) -> None:
    """Raises unless all tensors are `[B, T, ...]`, with a mask `[B, T]` and ask_at `[B, Q]`."""
    leaves = tf.nest.flatten(items)
    if not leaves:
        raise ValueError("items must hold at least one tensor [B, T, ...]; got an empty nest")
    for leaf in leaves:
        if leaf.shape.rank is None or leaf.shape.rank < 2:
            raise ValueError(f"items must be [B, T, ...]; got shape {leaf.shape}")
        if not leaf.shape[:2].is_compatible_with(leaves[0].shape[:2]):
            raise ValueError(
                f"items must agree in [B, T]; got {leaves[0].shape[:2]} and {leaf.shape[:2]}"
            )
    if mask is not None:
        if mask.dtype != tf.bool:
            raise TypeError(f"mask must be bool; got {mask.dtype.name}")
        if mask.shape.rank != 2 or not mask.shape.is_compatible_with(leaves[0].shape[:2]):
            raise ValueError(f"mask must be [B, T] = {leaves[0].shape[:2]}; got {mask.shape}")
    if leaves[0].shape[1] == 0:
        raise ValueError(f"items must hold at least one step; got shape {leaves[0].shape}")
    if ask_at is not None:
        ask_at = tf.convert_to_tensor(ask_at)
        rows = ask_at.shape[:1].is_compatible_with(leaves[0].shape[:1])
        if not ask_at.dtype.is_integer or ask_at.shape.rank != 2 or not rows:
            raise ValueError(
                f"ask_at must be integers [B, Q] with B = {leaves[0].shape[0]}; got "
                f"{ask_at.dtype.name} {ask_at.shape}"
            )


def item_spec(items: Nest) -> Nest:
    """What one item of streams `[B, T, ...]` is: a nest of `tf.TensorSpec`."""
    return tf.nest.map_structure(lambda leaf: tf.TensorSpec(leaf.shape[2:], leaf.dtype), items)


def size(items: Nest, axis: int) -> tf.Tensor | int:
    """B or T, as a number where it is known."""
    leaf = tf.nest.flatten(items)[0]
    return tf.shape(leaf)[axis] if leaf.shape[axis] is None else leaf.shape[axis]


def masked(decisions: Decision, mask: tf.Tensor | None) -> Decision:
    """Decisions of a stream, blank where there is padding."""
    if mask is None:
        return decisions
    free = decisions.free & mask
    return decisions._replace(
        free=free,
        evicted=tf.where(mask, decisions.evicted, tf.constant(memory.EMPTY, tf.int64)),
        log_prob=tf.where(free, decisions.log_prob, 0.0),
        entropy=tf.where(free, decisions.entropy, 0.0),
    )


def count(mask: tf.Tensor) -> tf.Tensor:
    """`[B, T]` int64: how many items there were up to each step."""
    return tf.cumsum(tf.cast(mask, tf.int64), axis=1)


def recalled(pool: Nest, ids, places, seen, ask_at) -> tape.Recalled:
    """What was in memory when `ask_at` `[B, Q]` items had been seen.

    Args:
        pool: nest of `[B, N + T, ...]`, everything that memory may hold.
        ids, places: `[B, T, N]`, what it held after each step, and where that is in the pool.
        seen: `[B, T]`, or `[1, T]`, how many items had been seen after each step.
        ask_at: `[B, Q]`, -1 for padding.
    """
    reached = seen[:, None] >= tf.cast(ask_at, tf.int64)[..., None]  # [B, Q, T]
    step = tf.argmax(tf.cast(reached, tf.int32), axis=-1)
    ids, places = (tf.gather(leaf, step, batch_dims=1) for leaf in (ids, places))
    ids = tf.where((ask_at > 0)[..., None], ids, tf.constant(memory.EMPTY, tf.int64))
    batch, questions, slots = (ids.shape[i] or tf.shape(ids)[i] for i in range(3))
    flat = take(pool, tf.reshape(places, [batch, -1]))

    def by_question(leaf):
        return tf.reshape(leaf, [batch, questions, slots, *leaf.shape[2:]])

    held = tf.nest.map_structure(by_question, flat)
    return tape.Recalled(memory.blanked(held, ids == memory.EMPTY), ids)


def choose_rows(mask: tf.Tensor, new: MemoryState, old: MemoryState) -> MemoryState:
    """The new memory in the rows that `mask` `[B]` marks, the old one in the others."""
    return tf.nest.map_structure(lambda a, b: tf.where(memory.spread(mask, a), a, b), new, old)


def take(pool: Nest, places: tf.Tensor) -> Nest:
    """The elements of a pool `[B, T, ...]` at the places `[B, ...]`."""
    return tf.nest.map_structure(lambda leaf: tf.gather(leaf, places, batch_dims=1), pool)


def spec_to_text(spec: tf.TensorSpec) -> str:
    """A spec as text for a config.

    Example:

    >>> spec_to_text(tf.TensorSpec([16])), spec_from_text("float32 [16]").shape
    ('float32 [16]', TensorShape([16]))
    """
    return f"{spec.dtype.name} {spec.shape.as_list()}"


def spec_from_text(text: str) -> tf.TensorSpec:
    """The inverse of `spec_to_text`."""
    dtype, shape = text.split(" ", 1)
    return tf.TensorSpec(
        [int(size) for size in shape.strip("[]").split(",") if size.strip()], dtype
    )
