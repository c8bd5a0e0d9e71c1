"""What a model would have answered from memories that differ by one item, all in one batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from lemn_tf.learning.memories import arranged
from lemn_tf.memory import EMPTY
from lemn_tf.retention.chance import salt_of, scramble

Worth = Callable[[tf.Tensor], tf.Tensor]
"""From the memories `[B, V, Q, M]` to what each is worth to its question, `[B, V, Q]`."""


class Tried(NamedTuple):
    """The items of each stream that are left out or put back.

    Attributes:
        items: `[B, V]` int64.
        weight: `[B, V]`, how many items each of them stands for.
    """

    items: tf.Tensor
    weight: tf.Tensor


def items_to_try(kept: tf.Tensor, length: tf.Tensor, steps: int, most: int, seed) -> Tried:
    """All items of a stream, or those kept to its end and at most `most` random others.

    Args:
        kept: `[B, N]`, what was in memory at the end.
        length: `[B]` int32, of the streams.
        steps: T, the longest stream there can be.
        most: how many items that are not in `kept` are tried.
        seed: `[2]` int32.
    """
    slots = kept.shape[1]
    rows = kept.shape[0]
    if steps <= slots + most:
        items = tf.tile(tf.range(steps, dtype=tf.int64)[None], [rows, 1])
        return Tried(items, tf.ones([rows, steps]))
    ids = tf.range(steps, dtype=tf.int64)
    in_memory = tf.reduce_any(kept[:, None] == ids[:, None], axis=-1)  # [B, T]
    draw = scramble(ids, tf.range(rows), salt_of(seed + tf.constant([0, 1 << 21])))
    draw = tf.where(in_memory, -1.0, tf.where(ids < tf.cast(length, tf.int64)[:, None], draw, 2.0))
    items = tf.argsort(draw, axis=-1)[:, : slots + most]
    others = tf.cast(length, tf.float32) - tf.reduce_sum(tf.cast(in_memory, tf.float32), axis=-1)
    share = tf.maximum(others / most, 1.0)[:, None]
    weight = tf.where(tf.gather(in_memory, items, batch_dims=1), 1.0, share)
    return Tried(tf.cast(items, tf.int64), weight)


def flip(
    worth: Worth,
    kept: tf.Tensor,
    probability: tf.Tensor,
    tried: Tried,
    steps: int,
    fixed: bool = False,
) -> tf.Tensor:
    """The worth of memories with one item left out or put back, for `Rollout.flipped`.

    Args:
        worth: function that asks the model.
        kept: `[B, Q, N]`, what was in memory at each question.
        probability: `[B, Q]`, what that was worth.
        tried: the items; one that stands for several counts that many times.
        steps: T.
        fixed: whether memories must have N slots. An item that is put back then
            replaces the newest one, and is compared with a memory from which only that is missing.

    Returns:
        `[B, Q, T]`.
    """
    empty = tf.constant(EMPTY, kept.dtype)
    item = tried.items[:, :, None]  # [B, V, 1]
    here = kept[:, None] == item[..., None]  # [B, V, Q, N]
    there = tf.reduce_any(here, axis=-1)  # [B, V, Q]
    left = tf.where(here, empty, kept[:, None])
    back = tf.where(there, empty, tf.broadcast_to(item, there.shape))
    if fixed:
        newest = kept == tf.reduce_max(kept, axis=-1, keepdims=True)
        without = tf.where(newest, empty, kept)[:, None]
        put = tf.where(newest[:, None], back[..., None], kept[:, None])
        memories = tf.concat([without, tf.where(there[..., None], left, put)], axis=1)
    else:
        memories = tf.concat([left, back[..., None]], axis=-1)
    found = worth(arranged(memories))  # [B, V (+ 1), Q]
    base = probability[:, None]
    if fixed:
        base, found = tf.where(there, base, found[:, :1]), found[:, 1:]
    gain = (found - base) * tried.weight[..., None]
    where = tf.one_hot(tried.items, steps)  # [B, V, T]
    return probability[..., None] + tf.einsum("bvq,bvt->bqt", gain, where)
