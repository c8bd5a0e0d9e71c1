"""ActorCriticAgent: the agent of TF-Agents that trains an eviction policy.

    agent = ActorCriticAgent(model, advantage="hindsight")
    model.compile(optimizer, retention=agent.objectives, agent=agent)
    model.fit(episodes)                          # on rollouts recorded in the graph: fast

    environment = StreamEnvironment(arrays, model, batch_size=32)
    agent = ActorCriticAgent(model, advantage="gae", episodes=arrays)
    driver = DynamicStepDriver(environment, agent.collect_policy, [buffer.add_batch], ...)
    agent.train(buffer.gather_all())             # on what TF-Agents' own drivers collect

Both ways end in the same loss, `StreamReader.losses_of`, whose arithmetic is in `lemn_tf.learning`.
The paper trains by A3C; here the workers are the rows of a batch, and updates are synchronous.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import tensorflow as tf
from tf_agents.agents import tf_agent
from tf_agents.policies import greedy_policy
from tf_agents.trajectories import trajectory

from lemn_tf.agents.environment import game_of, leaving
from lemn_tf.agents.policy import EvictionPolicy, choices
from lemn_tf.episode import Episode
from lemn_tf.learning import ActorCritic, Hindsight, Objective
from lemn_tf.model import StreamReader
from lemn_tf.retention.decision import Decision, describe
from lemn_tf.streams import item_spec

Experience = Any
"""An `Episode`, or a `Trajectory` of what a driver collected."""

ADVANTAGES: dict[str, tuple[Objective, ...]] = {
    "hindsight": (Hindsight(),),
    "gae": (ActorCritic(),),
    "both": (Hindsight(), ActorCritic(entropy=0.0)),
}
"""How an action is judged: by hindsight for all candidates at once, by the rewards that followed
the chosen one (generalised advantages, as in the paper), or by both."""


class ActorCriticAgent(tf_agent.TFAgent):
    """Trains the policy and the reader of a `StreamReader`, in place.

    Args:
        model: what is trained. `compile` it with an optimizer and `retention=agent.objectives`.
        advantage: a name in `ADVANTAGES`, or the objectives themselves, to set their constants.
        episodes: the environment's streams as arrays; needed to learn from trajectories, which
            record only which stream was read and what was evicted.
        item: nest of `tf.TensorSpec`, one item; default that of `episodes` or the model's.
        slots: N, if not the model's own.
    """

    def __init__(
        self,
        model: StreamReader,
        advantage: str | Sequence[Objective] = "hindsight",
        episodes: Mapping[str, np.ndarray] | None = None,
        item: Any = None,
        slots: int | None = None,
    ):
        if not model.learns:
            raise ValueError(f"policy {model.memory.policy.name!r} has nothing to learn")
        if isinstance(advantage, str) and advantage not in ADVANTAGES:
            raise ValueError(
                f"unknown advantage {advantage!r}; known are {', '.join(ADVANTAGES)}, or pass "
                "objectives"
            )
        self.objectives: tuple[Objective, ...] = tuple(
            ADVANTAGES[advantage] if isinstance(advantage, str) else advantage
        )
        self._model = model
        self._episodes = None
        if episodes is not None:
            self._episodes = {k: tf.nest.map_structure(tf.constant, v) for k, v in episodes.items()}
            item = item_spec(self._episodes["items"])
        time_step, action = game_of(model, item, slots)
        super().__init__(
            time_step,
            action,
            greedy_policy.GreedyPolicy(EvictionPolicy(model, time_step, action)),
            EvictionPolicy(model, time_step, action),
            train_sequence_length=None,
            train_step_counter=tf.Variable(0, trainable=False, dtype=tf.int64),
        )

    def _train(self, experience: Experience, weights=None) -> tf_agent.LossInfo:
        """One update, from a batch of streams or from what a driver collected."""
        update = self._model.update(self._checked(experience, weights))
        self.train_step_counter.assign_add(1)
        return tf_agent.LossInfo(update.logs["total_loss"], update)

    def _loss(self, experience, weights=None, training: bool = False) -> tf_agent.LossInfo:
        experience = self._checked(experience, weights)
        seed, entropy = self._model.draws()
        total, loss, _, logs = self._model.losses_of(experience, seed, entropy)
        return tf_agent.LossInfo(total, {**logs, "loss": loss})

    def _checked(self, experience: Experience, weights) -> Episode:
        """The experience as streams; raises if the agent cannot learn from it."""
        if weights is not None:
            raise ValueError("expected no weights: all streams count the same")
        compiled = getattr(self._model, "objectives", None)
        if compiled != self.objectives:
            raise ValueError(
                f"the model is not compiled with this agent's objectives: expected "
                f"model.compile(optimizer, retention=agent.objectives); it has {compiled}"
            )
        if isinstance(experience, trajectory.Trajectory):
            return self.lived(experience)
        return experience

    def lived(self, experience: trajectory.Trajectory, episodes: Episode | None = None) -> Episode:
        """The streams that were read, with the decisions that were made in them.

        Args:
            experience: of `[B, T, ...]`. Every row begins with a stream, and holds it to its end;
                what comes after is left out.
            episodes: the streams of the environment; default the agent's own.
        """
        given = self._episodes if episodes is None else episodes
        if given is None:
            raise ValueError("to learn from trajectories the agent needs episodes=, got none")
        seen = experience.observation
        rows, steps = seen["stream"][:, 0], tf.nest.flatten(given["items"])[0].shape[1]
        over = tf.cumsum(tf.cast(experience.is_last(), tf.int32), axis=1, exclusive=True) > 0
        allowed = seen["allowed"]
        slot = leaving(experience.action, allowed)
        logits = choices(tf.zeros(tf.shape(allowed)), allowed).logits
        decisions = describe(seen["ids"], logits, slot)
        decisions = decisions._replace(free=decisions.free & ~over)
        episode = {
            key: tf.nest.map_structure(lambda leaf: tf.gather(leaf, rows), nest)
            for key, nest in given.items()
        }
        episode["decisions"] = _fitted(decisions, steps)
        return cast(Episode, episode)


def _fitted(decisions: Decision, steps: int) -> Decision:
    """The same decisions with exactly `steps` steps: cut, or padded with zeros."""

    def fit(leaf):
        leaf = leaf[:, :steps]
        missing = steps - tf.shape(leaf)[1]
        leaf = tf.pad(leaf, [[0, 0], [0, missing]] + [[0, 0]] * (leaf.shape.rank - 2))
        return tf.ensure_shape(leaf, [leaf.shape[0], steps, *leaf.shape[2:]])

    return tf.nest.map_structure(fit, decisions)
