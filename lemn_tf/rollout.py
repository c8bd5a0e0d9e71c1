"""What an objective learns from: a batch of streams as the policy lived through them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from lemn_tf.retention.base import Decision

Episode = dict[str, tf.Tensor]
"""A batch of streams with questions; see `lemn_tf.pipelines.babi.encode` for the keys."""


class Rollout(NamedTuple):
    """A batch of streams as they were lived through, for an objective to learn from.

    Attributes:
        episode: the batch itself.
        decisions: what was evicted, `Decision` of `[B, T, ...]`.
        logits: `[B, T, N + 1]`, the policy's opinion at each step, with gradients.
        values: `[B, T]`, the value head's estimate at each step, with gradients.
        kept: `[B, Q, N]` int64, what was in memory at each question, -1 = unused.
        asked: `[B, Q]` bool, False for padding.
        right: `[B, Q]` bool, whether the reader answered right.
        entropy: scalar, weight of the objective's entropy bonus now, see `entropy_at`.
        probability: `[B, Q]`, what the reader gives the right answer, from what was in memory.
        flipped: function that gives the same, `[B, Q, T]`, for memories in which one item of the
            stream is left out, if it was there, or put back, if it was not.
    """

    episode: Episode
    decisions: Decision
    logits: tf.Tensor
    values: tf.Tensor
    kept: tf.Tensor
    asked: tf.Tensor
    right: tf.Tensor
    entropy: tf.Tensor
    probability: tf.Tensor
    flipped: Callable[[], tf.Tensor]


Objective = Callable[[Rollout], tuple[tf.Tensor, dict[str, tf.Tensor]]]
"""From a rollout to a loss `[B]` for the policy and scalars to show.

An objective may have a schedule, `entropy` and `final_entropy`. Those that are equal but for it
share compiled programs, from one phase of a training to the next.
"""


def entropy_at(objective: Objective, progress: tf.Tensor | float) -> tf.Tensor:
    """Weight of an objective's entropy bonus when this share of the training is done, 0 to 1.

    It falls linearly from `objective.entropy` (0 if it has none) to `objective.final_entropy`.
    """
    begin = getattr(objective, "entropy", 0.0)
    end = getattr(objective, "final_entropy", None)
    return begin + ((begin if end is None else end) - begin) * tf.convert_to_tensor(progress)
