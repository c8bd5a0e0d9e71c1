"""What an objective learns from: what happened in a batch of streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from lemn_tf.memory import EMPTY
from lemn_tf.retention.decision import Decision


class Rollout(NamedTuple):
    """What happened in a batch of streams, for an objective to learn from.

    B streams of T items with Q questions each; one question at the end of the stream is Q = 1.

    Attributes:
        decisions: what was evicted, `Decision` of `[B, T, ...]`.
        valid: `[B, T]` bool, False for padding, which stands at the end.
        logits: `[B, T, N + 1]`, the policy's opinion at each step, with gradients.
        values: `[B, T]`, the critic's estimate at each step, with gradients; None without a critic.
        ask_at: `[B, Q]` int32, number of items seen when each question was asked; -1 for padding.
        weight: `[B, Q]`, how much each question counts: 0 for padding, else 1 or a sample's weight.
        kept: `[B, Q, N]` int64, what was in memory at each question, -1 = unused.
        right: `[B, Q]` bool, whether it was answered right; None if only the loss is known.
        probability: `[B, Q]`, the worth of what was in memory: the probability of the right answer,
            or exp(-loss), which for a cross-entropy is the same.
        flipped: function that gives the worth, `[B, Q, T]`, of memories in which one item of the
            stream is left out, if it was there, or put back, if it was not.
        entropy: scalar, weight of the objective's entropy bonus now, see `objectives.entropy_at`.
    """

    decisions: Decision
    valid: tf.Tensor
    logits: tf.Tensor
    values: tf.Tensor | None
    ask_at: tf.Tensor
    weight: tf.Tensor
    kept: tf.Tensor
    right: tf.Tensor | None
    probability: tf.Tensor
    flipped: Callable[[], tf.Tensor]
    entropy: tf.Tensor | float


def kept_at(ids: tf.Tensor, slot: tf.Tensor, ask_at: tf.Tensor) -> tf.Tensor:
    """What was in memory at each question.

    Args:
        ids: `[B, T, N + 1]`, the candidates at each step (`Decision.ids`).
        slot: `[B, T]`, the candidate that left (`Decision.slot`).
        ask_at: `[B, Q]`, how many items were seen when each question was asked.

    Returns:
        `[B, Q, N]` ids, -1 for unused slots and for questions that are padding.

    Example:

    >>> ids = tf.constant([[[-1, -1, 0], [-1, 0, 1], [0, 1, 2]]])
    >>> kept_at(ids, tf.constant([[0, 0, 1]]), tf.constant([[2, 3]])).numpy().tolist()
    [[[0, 1], [0, 2]]]
    """
    ids, slot, ask_at = (tf.convert_to_tensor(x) for x in (ids, slot, ask_at))
    if ids.shape.rank != 3 or slot.shape.rank != 2 or ask_at.shape.rank != 2:
        raise ValueError(
            "expected ids [B, T, N + 1], slot [B, T] and ask_at [B, Q]; "
            f"got {ids.shape}, {slot.shape} and {ask_at.shape}"
        )
    places = tf.range(tf.shape(ids)[-1] - 1, dtype=slot.dtype)
    after = tf.where(places >= slot[..., None], ids[..., 1:], ids[..., :-1])  # [B, T, N]
    kept = tf.gather(after, tf.maximum(ask_at - 1, 0), batch_dims=1)
    return tf.where((ask_at > 0)[..., None], kept, tf.constant(EMPTY, ids.dtype))
