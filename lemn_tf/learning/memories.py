"""Memories other than the one the policy left: random ones, and ones that differ by an item.

A head that sees only what an untrained policy keeps rarely finds what it needs, and does not learn
to use it. Then nothing is worth keeping, and the policy does not learn either. So a head also
learns from random parts of the stream.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from lemn_tf import memory
from lemn_tf.memory import EMPTY, MemoryState
from lemn_tf.retention.chance import salt_of, scramble
from lemn_tf.streams import item_spec, take
from lemn_tf.tape import Call, Recalled

Nest = Any


def arranged(ids: tf.Tensor) -> tf.Tensor:
    """Slots `[..., M]` sorted in the order of the stream, unused ones last.

    Example:

    >>> arranged(tf.constant([[4, -1, 2]])).numpy().tolist()
    [[2, 4, -1]]
    """
    last = ids.dtype.max
    ordered = tf.sort(tf.where(ids == EMPTY, last, ids), axis=-1)
    return tf.where(ordered == last, tf.constant(EMPTY, ids.dtype), ordered)


def random_memories(
    seen: tf.Tensor, steps: int, slots: int, share: tuple[float, float], seed: tf.Tensor
) -> tf.Tensor:
    """For each question a random part of the items before it, `[B, Q, M]` ids, -1 = unused.

    Args:
        seen: `[B, Q]` int32, how many items there were before each question.
        steps: T, the length of the streams.
        slots: M, the most that is kept.
        share: range of the share of the items that is kept, drawn for each question.
        seed: `[2]` int32.
    """
    rows, questions = seen.shape
    which = tf.reshape(tf.range(rows * questions), [rows, questions])
    draw = scramble(tf.range(steps + 1), which, salt_of(seed + tf.constant([0, 1 << 20])))
    past = tf.range(steps) < seen[..., None]
    order = tf.argsort(tf.where(past, draw[..., :-1], 2.0), axis=-1)[..., :slots]
    part = share[0] + (share[1] - share[0]) * draw[..., -1:]
    count = tf.minimum(
        tf.cast(tf.math.ceil(part * tf.cast(seen[..., None], tf.float32)), tf.int32),
        seen[..., None],
    )
    ids = tf.where(tf.range(order.shape[-1]) < count, order, EMPTY)
    return arranged(tf.cast(ids, tf.int64))


def holding(call: Call, items: Nest, ids: tf.Tensor) -> MemoryState | Recalled:
    """A memory like the one a call returned, but holding the items with these ids.

    Args:
        call: of a memory.
        items: nest of `[R, T, ...]`, its stream without padding in between.
        ids: `[R, Q, M]`, with Q = 1 for a memory at the end of the stream.
    """
    held = call.returned[0]
    if not isinstance(held, Recalled):
        ids = ids[:, 0]
    entries = memory.blanked(take(items, tf.maximum(ids, 0)), ids == EMPTY)
    if isinstance(held, Recalled):
        return Recalled(entries, ids)
    fresh = memory.empty(
        ids.shape[0], ids.shape[1], item_spec(items), call.layer.policy.carry_spec()
    )
    times = ids.shape[0] // held.clock.shape[0]
    return fresh._replace(entries=entries, ids=ids, clock=tf.repeat(held.clock, times, axis=0))
