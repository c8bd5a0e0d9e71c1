"""Chance that can be replayed: numbers that depend only on a seed, a clock and an id.

A draw is the same for a row alone and in a batch, in a rollout and in its replay, with XLA and
without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

if TYPE_CHECKING:
    from lemn_tf.memory import MemoryState
    from lemn_tf.retention.base import Cells


def gumbel(cells: MemoryState | Cells, seed: tf.Tensor | None, alike: bool = False) -> tf.Tensor:
    """`[B, N + 1]` Gumbel noise for one step, which depends only on seed, row, clock and id.

    So one seed serves a whole stream, a step draws the same in `observe` and in `call`, and XLA
    changes nothing (TensorFlow's own stateless generators give other numbers there).

    Args:
        cells: the candidates.
        seed: `[2]` int32; None, for a policy that draws even when serving, gives all rows the same.
        alike: draw in every row as in the first, so that a row alone equals that row in a batch.
    """
    salt = 0
    if seed is not None:
        row = tf.cast(tf.range(tf.shape(cells.clock)[0]), tf.uint32)
        salt = _mix(salt_of(seed) + row * (0 if alike else 2654435761))
    return -tf.math.log(-tf.math.log(scramble(cells.ids, cells.clock, salt)))


def salt_of(seed: tf.Tensor) -> tf.Tensor:
    """A `[2]` int32 seed as one salt for `scramble`."""
    return _mix(_mix(tf.cast(seed[0], tf.uint32)) + tf.cast(seed[1], tf.uint32))


def scramble(ids: tf.Tensor, clock: tf.Tensor, salt: tf.Tensor | int = 0) -> tf.Tensor:
    """`[..., M]` numbers in (0, 1) that look random but depend only on id, clock and salt.

    Args:
        ids: `[..., M]`.
        clock: `[...]`.
        salt: scalar, or as `clock`.
    """
    step = _mix(_mix(tf.cast(salt, tf.uint32)) + tf.cast(clock, tf.uint32))
    mixed = _mix(step[..., None] + tf.cast(ids, tf.uint32) * 2654435761)
    # 23 bits plus a half are exact in float32: the result is never 0 or 1.
    return (tf.cast(tf.bitwise.right_shift(mixed, 9), tf.float32) + 0.5) / 2.0**23


def _mix(x: tf.Tensor) -> tf.Tensor:
    """A bijection of 32 bits in which every bit of the input moves every bit of the output."""
    for shift, multiplier in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = tf.bitwise.bitwise_xor(x, tf.bitwise.right_shift(x, shift)) * multiplier
    return tf.bitwise.bitwise_xor(x, tf.bitwise.right_shift(x, 16)) + 0x9E3779B9
