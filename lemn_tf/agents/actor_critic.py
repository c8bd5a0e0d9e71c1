"""Advantage actor-critic with generalised advantage estimation, as in the paper (A3C with GAE).

The arithmetic is `actor_critic_loss`, a pure function of what happened. `ActorCritic` applies it to
whole rollouts at once (`StreamReader.fit`, the fast path), `ActorCriticAgent` to what a driver of
TF-Agents collected. From the same actions both come to the same gradients.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from tf_agents.agents import tf_agent
from tf_agents.policies import greedy_policy
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step as ts
from tf_agents.trajectories import trajectory
from tf_agents.utils import value_ops

from lemn_tf import memory
from lemn_tf.agents.environment import leaving
from lemn_tf.agents.policy import EvictionPolicy, choices
from lemn_tf.model import StreamReader
from lemn_tf.rollout import entropy_at


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
    ends: tf.Tensor | None = None,
    rollouts: int = 1,
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
        ends: `[B, T]` bool, steps that no later reward or value counts for; default the last valid
            one of each stream.
        rollouts: so many rows beside each other are one stream, lived through with other draws.
            What an action was worth is then told from how the others fared from the same step on.
    """
    if ends is None:
        ends = ~tf.concat([valid[:, 1:], tf.zeros_like(valid[:, :1])], axis=1)
    # Behind its end a stream gives nothing: a discount of 0 there keeps padding out of the returns.
    discounts = discount * tf.cast(~ends, values.dtype)
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
    if rollouts > 1:
        same = tf.reshape(advantages, [-1, rollouts, advantages.shape[1]])
        same -= tf.reduce_mean(same, axis=1, keepdims=True)
        advantages = tf.reshape(same, tf.shape(advantages))
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


@dataclasses.dataclass(frozen=True)
class ActorCritic:
    """The paper's objective for `StreamReader.compile`: reward for answers, credit by GAE.

    Attributes:
        discount: gamma.
        gae_lambda: lambda.
        entropy, final_entropy: weight of the entropy bonus at the beginning and the end (None: as
            at the beginning).
        value: weight of the value loss.
        reward: "sign" for +1 / -1 an answer as in the paper, "probability" of the right answer.
        rollouts: rows of a batch, beside each other, that are the same stream; see
            `actor_critic_loss`.
    """

    discount: float = 0.95
    gae_lambda: float = 0.95
    entropy: float = dataclasses.field(default=0.03, compare=False)
    final_entropy: float | None = dataclasses.field(default=None, compare=False)
    value: float = 0.5
    reward: str = "sign"
    rollouts: int = 1

    def __post_init__(self):
        if self.reward not in ("sign", "probability"):
            raise ValueError(f"reward must be 'sign' or 'probability'; got {self.reward!r}")

    def __call__(self, rollout):
        episode, decisions = rollout.episode, rollout.decisions
        steps = episode["items"].shape[1]
        if self.reward == "sign":
            reward = 2.0 * tf.cast(rollout.right, tf.float32) - 1.0
        else:
            reward = rollout.probability
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
            rollouts=self.rollouts,
        )
        shown = {
            "return": tf.reduce_mean(tf.reduce_sum(rewards, axis=1)),
            "value_loss": tf.reduce_mean(losses.value),
        }
        return self.total(losses, rollout.entropy), shown

    def total(self, losses: Losses, entropy: tf.Tensor | float) -> tf.Tensor:
        """The sum of the losses, `[B]`, with this weight of the entropy bonus."""
        return losses.policy + self.value * losses.value - entropy * losses.entropy


class ActorCriticAgent(tf_agent.TFAgent):
    """The same objective as an agent of TF-Agents, trained on what its drivers collect.

    Experience is a `Trajectory` of `[B, T, ...]`. A row may hold several streams, one after the
    other, and may begin or end within one: it then starts from the state that the policy had, and
    the value of its last step stands for what would have come.

    Args:
        model: trained in place: its policy and critic, and what they see of the reader.
        time_step_spec, action_spec: of the `StreamEnvironment`.
        optimizer: any Keras optimizer.
        objective: discount, lambda and weights of the loss. The reward is the environment's.
        gradient_clipping: largest norm of the whole gradient; None for any.
        episodes: the streams of the environment; with them the reader learns too, from the
            questions asked about the memories that the policy left it.
        on_policy: weight of that loss.
        updates: how many there will be, for the schedule of the entropy.
    """

    def __init__(
        self,
        model: StreamReader,
        time_step_spec: ts.TimeStep,
        action_spec: tensor_spec.BoundedTensorSpec,
        optimizer: keras.optimizers.Optimizer,
        objective: ActorCritic | None = None,
        gradient_clipping: float | None = 40.0,
        episodes: Mapping[str, np.ndarray] | None = None,
        on_policy: float = 0.5,
        updates: int = 1,
    ):
        if not model.learns:
            raise ValueError(f"policy {model.memory.policy.name!r} has nothing to learn")
        self._model, self._optimizer = model, optimizer
        self._objective = objective or ActorCritic()
        self._clipping, self._on_policy = gradient_clipping, on_policy
        self._updates = max(updates, 1)
        self._questions = None
        if episodes is not None:
            names = ("questions", "ask_at", "answers")
            self._questions = {name: tf.constant(episodes[name], tf.int32) for name in names}
        optimizer.build(model.trainable_variables)
        collect = EvictionPolicy(model, time_step_spec, action_spec, collect=True)
        super().__init__(
            time_step_spec,
            action_spec,
            greedy_policy.GreedyPolicy(EvictionPolicy(model, time_step_spec, action_spec)),
            collect,
            train_sequence_length=None,
            train_step_counter=tf.Variable(0, trainable=False, dtype=tf.int64),
        )

    def _train(self, experience: trajectory.Trajectory, weights=None) -> tf_agent.LossInfo:
        variables = [variable.value for variable in self._model.trainable_variables]
        with tf.GradientTape() as tape:
            info = self._loss(experience, weights, training=True)
        gradients = tape.gradient(info.loss, variables, unconnected_gradients="zero")
        if self._clipping is not None:
            gradients, _ = tf.clip_by_global_norm(gradients, self._clipping)
        pairs = zip(gradients, self._model.trainable_variables, strict=True)
        self._optimizer.apply_gradients(pairs)
        self.train_step_counter.assign_add(1)
        return info

    def _loss(self, experience, weights=None, training: bool = False) -> tf_agent.LossInfo:
        """Mean over the streams, as in `StreamReader.losses_of`, and its parts."""
        seen = experience.observation
        valid = (
            ~experience.is_boundary()
        )  # where one stream ended and the next one has yet to begin
        state = tf.nest.map_structure(lambda leaf: leaf[:, 0], experience.policy_info)
        scores = self.collect_policy.replay(seen, experience.is_first(), state)
        values = tf.squeeze(self._model.critic(scores.features), -1)
        action = leaving(experience.action, seen["allowed"])
        # A row that stops within a stream: the value of its last step stands for all the rest.
        last = tf.range(tf.shape(valid)[1]) == tf.shape(valid)[1] - 1
        cut = last & valid & ~experience.is_last()
        losses = actor_critic_loss(
            choices(scores.logits, seen["allowed"]).logits,
            action,
            values,
            tf.where(cut, tf.stop_gradient(values), experience.reward),
            (tf.reduce_sum(tf.cast(seen["allowed"], tf.int32), axis=-1) > 1) & valid & ~cut,
            valid & ~cut,
            self._objective.discount,
            self._objective.gae_lambda,
            ends=experience.is_last() | cut,
        )
        begins = valid & (experience.is_first() | (tf.range(tf.shape(valid)[1]) == 0))
        streams = tf.maximum(tf.reduce_sum(tf.cast(begins, tf.float32)), 1.0)
        progress = tf.cast(self.train_step_counter, tf.float32) / self._updates
        weight = entropy_at(self._objective, tf.minimum(progress, 1.0))
        rows = self._objective.total(losses, weight)
        loss = tf.reduce_sum(rows if weights is None else rows * weights) / streams
        extra = {
            "return": tf.reduce_sum(tf.where(valid, experience.reward, 0.0)) / streams,
            "value_loss": tf.reduce_sum(losses.value) / streams,
            "entropy": tf.reduce_sum(losses.entropy) / streams,
        }
        if self._questions is not None:
            extra["loss_reader"] = self._reader_loss(seen, action, valid)
            loss += self._on_policy * extra["loss_reader"]
        return tf_agent.LossInfo(loss, extra)

    def _reader_loss(self, seen, action, valid) -> tf.Tensor:
        """Cross-entropy of the answers, averaged over the questions asked in these steps."""
        ask_at = tf.gather(self._questions["ask_at"], seen["stream"])  # [B, T, Q]
        clock = tf.cast(seen["ids"][..., -1] + 1, tf.int32)
        asked = (ask_at == clock[..., None]) & valid[..., None] & (ask_at > 0)
        at = tf.where(asked)  # [K, 3]: only these are put to the reader
        steps, which = (
            at[:, :2],
            tf.stack([tf.gather_nd(seen["stream"], at[:, :2]), tf.cast(at[:, 2], tf.int32)], 1),
        )
        cells = (tf.gather_nd(seen["entries"], steps), tf.gather_nd(seen["ids"], steps))
        entries, ids = memory.evict(cells, tf.gather_nd(action, steps))
        reader = self._model.reader
        query = reader.ask(tf.gather_nd(self._questions["questions"], which))
        logits = reader.read(query, reader.encode(entries), ids).logits
        labels = tf.gather_nd(self._questions["answers"], which)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        return tf.math.divide_no_nan(tf.reduce_sum(losses), tf.cast(tf.size(losses), losses.dtype))
