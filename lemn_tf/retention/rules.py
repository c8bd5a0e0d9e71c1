"""Policies that learn nothing: the baselines, and the clairvoyant bound.

Each is a line or two of `score`; the base class does everything else.
"""

from __future__ import annotations

import keras
import tensorflow as tf

from lemn_tf.memory import NEVER
from lemn_tf.retention.base import Cells, RetentionPolicy

register = keras.saving.register_keras_serializable("lemn_tf")
EXACT = 2**23
"""Whole numbers up to here are exact logits; float32 cannot represent all larger ones."""


def _age(cells: Cells) -> tf.Tensor:
    """`[..., N + 1]` int64: steps since each candidate arrived, newcomer 0."""
    return cells.clock[..., None] - 1 - cells.ids


def in_order(numbers: tf.Tensor) -> tf.Tensor:
    """Integers `[..., M]` as float32 in exactly the same order, however large they are.

    Up to `EXACT` they are the numbers themselves; larger ones continue from there by rank.

    Example:

    >>> in_order(tf.constant([7, 2**40 + 1, 2**40])).numpy().tolist()
    [7.0, 8388609.0, 8388608.0]
    """
    large = numbers >= EXACT

    def ranked():
        larger = numbers[..., :, None] > numbers[..., None, :]
        rank = tf.reduce_sum(tf.cast(larger & large[..., None, :], numbers.dtype), axis=-1)
        return tf.cast(tf.minimum(numbers, EXACT) + rank, tf.float32)

    return tf.cond(tf.reduce_any(large), ranked, lambda: tf.cast(numbers, tf.float32))


@register
class FIFO(RetentionPolicy):
    """Evicts the oldest entry: the memory is a sliding window."""

    def score(self, seen, cells, carry):
        return self.opinion(in_order(_age(cells)))


@register
class LIFO(RetentionPolicy):
    """Evicts the newest, so the newcomer is never stored: keeps the first N items for ever."""

    def score(self, seen, cells, carry):
        return self.opinion(-in_order(_age(cells)))


@register
class Uniform(RetentionPolicy):
    """Evicts any of the N + 1 candidates with the same probability.

    Without a seed the draw depends on the clock and the ids alone, so that a memory can be
    replayed: rows of a batch then draw alike. Average over rows only with a seed (`training=True`).
    """

    stochastic = True

    def score(self, seen, cells, carry):
        return self.opinion(tf.zeros_like(cells.ids, tf.float32))


@register
class LRU(RetentionPolicy):
    """Evicts the entry that no reader has attended to for longest.

    The carry of a slot is the clock of its last use. An entry counts as used when it arrives and
    whenever a reader gives it more than an even share of its attention: tell the memory with
    `EpisodicMemory.attend(state, attention)`. Without that feedback, LRU is FIFO.
    """

    def carry_spec(self):
        return tf.TensorSpec([], tf.int64)

    def score(self, seen, cells, carry):
        used = tf.maximum(carry, cells.ids)
        return self.opinion(in_order(cells.clock[..., None] - used), used)

    def attend(self, carry, attention, clock):
        share = 1.0 / tf.cast(tf.shape(attention)[1], attention.dtype)
        return tf.where(attention > share, tf.cast(clock, carry.dtype)[:, None], carry)


@register
class Oracle(RetentionPolicy):
    """Clairvoyant (Belady's rule): evicts what will be needed latest, or never again.

    For bounds only. The vector of an item is not an encoding but the future: every clock at which
    the item will be needed, padded with -1. `evaluation.needed_at` makes it from the supports.
    If each item is needed only once, no policy finds more needed items; if items are needed
    several times, it is a close bound, not an exact one.
    """

    clairvoyant = True

    def score(self, seen, cells, carry):
        needed, clock = cells.vectors, cells.clock[..., None, None]
        if needed.dtype.is_floating:
            needed = tf.where(tf.abs(needed) < 2.0**62, needed, -1.0)
        needed = tf.cast(needed, tf.int64)
        wait = tf.reduce_min(tf.where(needed >= clock, needed - clock, NEVER), axis=-1)
        # Of two never needed again the older one goes, so that a tie does not depend on rounding.
        age = tf.cast(tf.minimum(_age(cells), 100), tf.float32)
        return self.opinion(in_order(wait) + 1e-3 * age)
