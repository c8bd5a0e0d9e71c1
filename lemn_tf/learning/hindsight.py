"""Hindsight credit: what each item turned out to be worth, without any labels.

In training the whole stream is known. So for every question and every item before it, one can ask
the reader how much the probability of the right answer depends on whether this item is in memory.
To find out, items in memory are left out and evicted ones put back. That change, summed over the
questions to come, is the value of keeping each candidate at each step, and the policy is trained
on all actions at once instead of on the one it happened to take.

    Delta_q(j) = p(y | M_q) - p(y | M_q without j)    for j in memory when q was asked
               = p(y | M_q with j) - p(y | M_q)       for j evicted before
    U_t(j)     = sum over q asked after step t of discount^(steps between) Delta_q(j)
    loss       = sum_t sum_j pi_t(j) (U_t(j) - mean_j U_t)

It is not in the paper. It works with any model: where the loss of an answer is not a cross-entropy,
exp(-loss) stands for the probability.
"""

from __future__ import annotations

import dataclasses

import keras
import tensorflow as tf

from lemn_tf.memory import EMPTY


def counterfactual(
    probability: tf.Tensor, flipped: tf.Tensor, kept: tf.Tensor, ask_at: tf.Tensor
) -> tf.Tensor:
    """Delta_q(j), `[B, Q, T]`: what item j adds to the probability of the right answer to q.

    Args:
        probability: `[B, Q]`, that of the right answer to q from what was in memory.
        flipped: `[B, Q, T]`, the same with item j left out if it was in memory, else put back.
        kept: `[B, Q, N]`, ids in memory when q was asked, -1 = unused.
        ask_at: `[B, Q]`, number of items seen when q was asked; -1 for padding.
    """
    items = tf.range(flipped.shape[-1], dtype=kept.dtype)  # j
    in_memory = tf.reduce_any(kept[..., None, :] == items[:, None], axis=-1)
    gain = flipped - probability[..., None]
    seen = items < tf.cast(ask_at, kept.dtype)[..., None]
    return tf.where(seen, tf.where(in_memory, -gain, gain), 0.0)


def keeping_value(
    delta: tf.Tensor, ask_at: tf.Tensor, candidates: tf.Tensor, discount: float
) -> tf.Tensor:
    """U_t(j) for every candidate of every step, `[B, T, M]`.

    Args:
        delta: `[B, Q, T]`, see `counterfactual`.
        ask_at: `[B, Q]`, number of items seen when q was asked; -1 for padding.
        candidates: `[B, T, M]`, ids of the candidates at each step, -1 = unused.
        discount: weight of a question one step later.
    """
    step = tf.range(tf.shape(candidates)[1])[None, :, None]
    wait = tf.cast(ask_at[:, None, :] - 1 - step, delta.dtype)  # [B, T, Q]
    weight = tf.where(wait >= 0, tf.pow(discount, tf.maximum(wait, 0.0)), 0.0)
    value = tf.matmul(weight, delta)  # [B, T, T]: step by item
    worth = tf.gather(value, tf.maximum(candidates, 0), batch_dims=2)
    return tf.where(candidates == EMPTY, 0.0, worth)


def loss(logits: tf.Tensor, value: tf.Tensor, free: tf.Tensor) -> tf.Tensor:
    """Expected value of what the policy evicts, `[B]`, relative to evicting at random.

    Args:
        logits: `[B, T, M]`, eviction logits.
        value: `[B, T, M]`, the value of keeping each candidate; no gradient flows into it.
        free: `[B, T]` bool, steps where the policy had a choice among all candidates.
    """
    value = tf.stop_gradient(value - tf.reduce_mean(value, axis=-1, keepdims=True))
    lost = tf.reduce_sum(tf.nn.softmax(logits) * value, axis=-1)
    return tf.reduce_sum(tf.where(free, lost, 0.0), axis=-1)


@keras.saving.register_keras_serializable("lemn_tf")
@dataclasses.dataclass(frozen=True)
class Hindsight:
    """The objective that trains a policy on `keeping_value`; see the module's docstring.

    Attributes:
        discount: weight of a question one step later.
        entropy, final_entropy: weight of the entropy bonus at the beginning and the end (None: as
            at the beginning).
        scale: weight of the loss.
    """

    discount: float = 0.98
    entropy: float = dataclasses.field(default=0.1, compare=False)
    final_entropy: float | None = dataclasses.field(default=None, compare=False)
    scale: float = 10.0

    def __call__(self, rollout):
        ask_at = rollout.ask_at
        delta = counterfactual(rollout.probability, rollout.flipped(), rollout.kept, ask_at)
        delta *= rollout.weight[..., None]
        value = keeping_value(delta, ask_at, rollout.decisions.ids, self.discount)
        lost = loss(rollout.logits, value, rollout.decisions.free)
        log_pi = tf.nn.log_softmax(rollout.logits)
        entropy = -tf.reduce_sum(tf.exp(log_pi) * log_pi, axis=-1)
        bonus = tf.reduce_sum(tf.where(rollout.decisions.free, entropy, 0.0), axis=-1)
        shown = {"hindsight": tf.reduce_mean(lost)}
        return self.scale * lost - rollout.entropy * bonus, shown

    def get_config(self):
        return dataclasses.asdict(self)

    @classmethod
    def from_config(cls, config):
        return cls(**config)
