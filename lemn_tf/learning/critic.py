"""Advantage actor-critic with generalised advantage estimation, as in the paper (A3C with GAE).

Pure TensorFlow: `lemn_tf.agents` drives it as an agent of TF-Agents, and a test compares it with
the estimators of TF-Agents. The paper's workers are asynchronous; here one batch replaces them.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import keras
import tensorflow as tf


class Losses(NamedTuple):
    """Losses of each stream, `[B]`: sums over its steps."""

    policy: tf.Tensor
    value: tf.Tensor
    entropy: tf.Tensor


def generalised_advantage(
    rewards: tf.Tensor, values: tf.Tensor, discounts: tf.Tensor, gae_lambda: float
) -> tf.Tensor:
    """A_t = delta_t + discount_t lambda A_{t+1} with delta_t = r_t + discount_t V_{t+1} - V_t.

    Args:
        rewards: `[B, T]`, received after each step.
        values: `[B, T]`, V(s_t); nothing is worth anything after the last.
        discounts: `[B, T]`, of what comes after each step: 0 where a stream ends.
        gae_lambda: lambda.

    Returns:
        `[B, T]` advantages.
    """
    after = tf.pad(values[:, 1:], [[0, 0], [0, 1]])
    delta = rewards + discounts * after - values
    over_time = tf.transpose(delta), tf.transpose(discounts * gae_lambda)

    def step(advantage, now):
        return now[0] + now[1] * advantage

    advantages = tf.scan(step, over_time, tf.zeros_like(delta[:, 0]), reverse=True)
    return tf.transpose(advantages)


def judge(
    rewards: tf.Tensor,
    values: tf.Tensor,
    valid: tf.Tensor,
    discount: float,
    gae_lambda: float,
) -> tuple[tf.Tensor, tf.Tensor]:
    """How much better than expected every step turned out, and what came after it.

    Args:
        rewards: `[B, T]`, received after each step.
        values: `[B, T]`, V(s_t); no gradient flows into them.
        valid: `[B, T]` bool, False after the end of a stream.
        discount: gamma.
        gae_lambda: lambda of the generalised advantage.

    Returns:
        Advantages and returns, `[B, T]`.
    """
    # There is no reward after a stream ends: a discount of 0 keeps padding out of the returns.
    goes_on = tf.pad(valid[:, 1:], [[0, 0], [0, 1]])
    fixed = tf.stop_gradient(values)
    discounts = discount * tf.cast(goes_on, values.dtype)
    advantages = generalised_advantage(rewards, fixed, discounts, gae_lambda)
    return advantages, tf.stop_gradient(advantages + fixed)


def normalised(advantages: tf.Tensor, free: tf.Tensor) -> tf.Tensor:
    """Advantages `[B, T]` with mean 0 and variance 1 over the steps where there was a choice."""
    weight = tf.cast(free, advantages.dtype)
    count = tf.maximum(tf.reduce_sum(weight), 1.0)
    mean = tf.reduce_sum(advantages * weight) / count
    variance = tf.reduce_sum(tf.square(advantages - mean) * weight) / count
    return tf.stop_gradient((advantages - mean) * tf.math.rsqrt(variance + 1e-8))


def choice_losses(
    logits: tf.Tensor,
    actions: tf.Tensor,
    advantages: tf.Tensor,
    free: tf.Tensor,
    before: tf.Tensor | None = None,
    trusted: float = 0.2,
) -> tuple[tf.Tensor, tf.Tensor]:
    """The policy gradient of choices that turned out so well, and their entropy.

    Args:
        logits: `[B, T, A]` of the actions.
        actions: `[B, T]` int32, the ones taken.
        advantages: `[B, T]`, normalised.
        free: `[B, T]` bool, steps where there was a choice.
        before: `[B, T]`, log of the probabilities the actions were drawn with, if the weights have
            changed since. What turned out well is then made more likely up to 1 + trusted times,
            and what did not less likely down to 1 - trusted times (PPO's clipped objective).
        trusted: see `before`.

    Returns:
        Loss and entropy of each stream, `[B]`.
    """
    weight = tf.cast(free, logits.dtype)
    log_pi = tf.nn.log_softmax(logits)
    chosen = log_probability(logits, actions)
    entropy = -tf.reduce_sum(tf.exp(log_pi) * log_pi, axis=-1)
    gain = chosen * advantages
    if before is not None:
        ratio = tf.exp(tf.where(free, chosen - before, 0.0))
        near = tf.clip_by_value(ratio, 1.0 - trusted, 1.0 + trusted)
        gain = tf.minimum(ratio * advantages, near * advantages)
    return -tf.reduce_sum(gain * weight, axis=1), tf.reduce_sum(entropy * weight, axis=1)


def log_probability(logits: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
    """log pi(a) `[...]` of actions `[...]` by their logits `[..., A]`."""
    log_pi = tf.nn.log_softmax(logits)
    return tf.reduce_sum(log_pi * tf.one_hot(actions, logits.shape[-1]), axis=-1)


@keras.saving.register_keras_serializable("lemn_tf")
@dataclasses.dataclass(frozen=True)
class ActorCritic:
    """The paper's objective: reward for answers, credit by GAE.

    Attributes:
        discount: gamma.
        gae_lambda: lambda.
        entropy, final_entropy: weight of the entropy bonus at the beginning and the end (None: as
            at the beginning).
        value: weight of the value loss.
        reward: "sign" for +1 or -1 for each answer, as in the paper; "probability" for that of the
            right answer, or exp(-loss) in a model of which only the loss is known.
        rollouts: how many rows of a batch in succession are the same stream; see
            `losses`.
    """

    discount: float = 0.95
    gae_lambda: float = 0.95
    entropy: float = dataclasses.field(default=0.03, compare=False)
    final_entropy: float | None = dataclasses.field(default=None, compare=False)
    value: float = 0.5
    reward: str = "sign"
    rollouts: int = 1

    critic = True
    """It needs a critic, which estimates the rewards to come."""

    def __post_init__(self):
        if self.reward not in ("sign", "probability"):
            raise ValueError(f"reward must be 'sign' or 'probability'; got {self.reward!r}")

    def __call__(self, rollout):
        if self.reward == "probability":
            reward = rollout.probability
        elif rollout.right is None:
            raise ValueError(
                "reward='sign' needs to know which answers are right, and this model has only a "
                "loss: expected ActorCritic(reward='probability')"
            )
        else:
            reward = 2.0 * tf.cast(rollout.right, tf.float32) - 1.0
        when = tf.one_hot(rollout.ask_at - 1, rollout.valid.shape[1])  # -1: before any item
        rewards = tf.einsum("bq,bqt->bt", reward * rollout.weight, when)
        decisions = rollout.decisions
        losses = self.losses(
            rollout.logits, decisions.slot, rollout.values, rewards, decisions.free, rollout.valid
        )
        shown = {
            "return": tf.reduce_mean(tf.reduce_sum(rewards, axis=1)),
            "value_loss": tf.reduce_mean(losses.value),
        }
        loss = losses.policy + self.value * losses.value - rollout.entropy * losses.entropy
        return loss, shown

    def losses(
        self,
        logits: tf.Tensor,
        actions: tf.Tensor,
        values: tf.Tensor,
        rewards: tf.Tensor,
        free: tf.Tensor,
        valid: tf.Tensor,
    ) -> Losses:
        """Policy gradient with normalised advantages, squared error of the values, and entropy.

        With `rollouts` an action is judged by comparing its return with those of the other draws
        at the same step.

        Args:
            logits: `[B, T, A]` of the actions.
            actions: `[B, T]` int32, the ones taken.
            values: `[B, T]`, V(s_t).
            rewards: `[B, T]`, received after each action.
            free: `[B, T]` bool, steps where there was a choice.
            valid: `[B, T]` bool, False after the end of a stream.
        """
        advantages, returns = judge(rewards, values, valid, self.discount, self.gae_lambda)
        if self.rollouts > 1:
            same = tf.reshape(advantages, [-1, self.rollouts, advantages.shape[1]])
            same -= tf.reduce_mean(same, axis=1, keepdims=True)
            advantages = tf.reshape(same, tf.shape(advantages))
        policy, entropy = choice_losses(logits, actions, normalised(advantages, free), free)
        error = tf.square(values - returns) * tf.cast(valid, values.dtype)
        return Losses(policy, tf.reduce_sum(error, axis=1), entropy)

    def get_config(self):
        return dataclasses.asdict(self)

    @classmethod
    def from_config(cls, config):
        return cls(**config)
