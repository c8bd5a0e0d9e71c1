"""Advantage actor-critic with generalised advantage estimation, as in the paper (A3C with GAE).

The arithmetic is `actor_critic_loss`, a pure function of what happened. `ActorCritic` applies it to
a recorded rollout (`StreamReader.fit`).
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf
import tensorflow_probability as tfp
from tf_agents.utils import value_ops


class Losses(NamedTuple):
    """Losses of each stream, `[B]`: sums over its steps."""

    policy: tf.Tensor
    value: tf.Tensor
    entropy: tf.Tensor


def actor_critic_loss(
    logits: tf.Tensor,
    actions: tf.Tensor,
    values: tf.Tensor,
    rewards: tf.Tensor,
    free: tf.Tensor,
    valid: tf.Tensor,
    discount: float,
    gae_lambda: float,
) -> Losses:
    """Policy gradient with normalised advantages, squared error of the values, and entropy.

    Args:
        logits: `[B, T, A]` of the actions.
        actions: `[B, T]` int32, the ones taken.
        values: `[B, T]`, V(s_t).
        rewards: `[B, T]`, received after each action.
        free: `[B, T]` bool, steps where there was a choice.
        valid: `[B, T]` bool, False behind the end of a stream.
        discount: gamma.
        gae_lambda: lambda of the generalised advantage.
    """
    # Behind its end a stream gives nothing: a discount of 0 there keeps padding out of the returns.
    last = tf.concat([valid[:, 1:], tf.zeros_like(valid[:, :1])], axis=1)
    discounts = discount * tf.cast(last, values.dtype)
    fixed = tf.stop_gradient(values)
    advantages = value_ops.generalized_advantage_estimation(
        values=fixed,
        final_value=tf.zeros_like(fixed[:, 0]),
        discounts=discounts,
        rewards=rewards,
        td_lambda=gae_lambda,
        time_major=False,
    )
    returns = tf.stop_gradient(advantages + fixed)
    weight = tf.cast(free, values.dtype)
    count = tf.maximum(tf.reduce_sum(weight), 1.0)
    mean = tf.reduce_sum(advantages * weight) / count
    variance = tf.reduce_sum(tf.square(advantages - mean) * weight) / count
    normalised = tf.stop_gradient((advantages - mean) * tf.math.rsqrt(variance + 1e-8))
    choice = tfp.distributions.Categorical(logits=logits)
    error = tf.square(values - returns) * tf.cast(valid, values.dtype)
    return Losses(
        policy=-tf.reduce_sum(choice.log_prob(actions) * normalised * weight, axis=1),
        value=tf.reduce_sum(error, axis=1),
        entropy=tf.reduce_sum(choice.entropy() * weight, axis=1),
    )


class ActorCritic:
    """The paper's objective for `StreamReader.compile`: reward for answers, credit by GAE.

    Args:
        discount: gamma.
        gae_lambda: lambda.
        entropy, final_entropy: weight of the entropy bonus at the beginning and the end.
        value: weight of the value loss.
        reward: "sign" for +1 / -1 an answer as in the paper, "probability" of the right answer.
    """

    def __init__(
        self,
        discount: float = 0.95,
        gae_lambda: float = 0.95,
        entropy: float = 0.03,
        final_entropy: float | None = None,
        value: float = 0.5,
        reward: str = "sign",
    ):
        if reward not in ("sign", "probability"):
            raise ValueError(f"reward must be 'sign' or 'probability'; got {reward!r}")
        self.discount, self.gae_lambda, self.value, self.reward = (
            discount,
            gae_lambda,
            value,
            reward,
        )
        self.entropy = entropy
        self.final_entropy = entropy if final_entropy is None else final_entropy

    def __call__(self, rollout):
        episode, decisions = rollout.episode, rollout.decisions
        steps = episode["items"].shape[1]
        if self.reward == "sign":
            reward = 2.0 * tf.cast(rollout.right, tf.float32) - 1.0
        else:
            reward = rollout.probability(rollout.kept[:, :, None])[:, :, 0]
        reward = tf.where(rollout.asked, reward, 0.0)
        when = tf.one_hot(episode["ask_at"] - 1, steps)  # -1 (before any item) adds nowhere
        rewards = tf.einsum("bq,bqt->bt", reward, when)
        losses = actor_critic_loss(
            rollout.logits,
            decisions.slot,
            rollout.values,
            rewards,
            decisions.free,
            tf.sequence_mask(episode["length"], steps),
            self.discount,
            self.gae_lambda,
        )
        weight = self.entropy + (self.final_entropy - self.entropy) * rollout.progress
        shown = {
            "return": tf.reduce_mean(tf.reduce_sum(rewards, axis=1)),
            "value_loss": tf.reduce_mean(losses.value),
        }
        return losses.policy + self.value * losses.value - weight * losses.entropy, shown
