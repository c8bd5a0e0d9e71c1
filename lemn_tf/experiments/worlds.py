"""Agents in any Gymnasium world: training one, and scoring it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from lemn_tf import loop
from lemn_tf.experiments import agent_runs
from lemn_tf.experiments.agent_runs import TEST_SEED, VALIDATION_SEED, AgentSettings, Show
from lemn_tf.navigation import observations, worlds
from lemn_tf.navigation.agent import MemoryAgent
from lemn_tf.navigation.training import AgentTrainee
from lemn_tf.seeing.subjects_worlds import WorldSubject


@dataclasses.dataclass(frozen=True)
class WorldSettings(AgentSettings):
    """How an agent is trained in a world. See `AgentSettings` for what all agents have.

    Attributes:
        env: the id of the environment.
        modules: to import first, those that register it.
        validation: episodes to choose the best agent on.
        longest: steps after which episodes are cut.
    """

    task = "world"

    env: str
    modules: tuple[str, ...] = ()
    validation: int = 64
    longest: int = worlds.LONGEST

    def build(self, envs: Any) -> MemoryAgent:
        """The agent to begin with."""
        keras.utils.set_random_seed(self.seed)
        return worlds.agent_for(envs, **self.sizes)


def train_world(
    settings: WorldSettings,
    out: str | os.PathLike | None = None,
    show: Show = lambda line: None,
    jit_compile: bool = True,
) -> MemoryAgent:
    """Trains an agent, or goes on with the run in `out`.

    Args:
        settings: how.
        out: folder of the run; None keeps nothing.
        show: called with every line of the history.
        jit_compile: compile with XLA.

    Returns:
        The agent that validated best.

    Raises:
        loop.Interrupted: on Ctrl-C; the message says what is saved.
    """
    envs = worlds.make(settings.env, settings.recipe.episodes, settings.modules)
    agent = settings.build(envs)
    learner = worlds.WorldLearner(agent, settings.recipe, jit_compile)
    exams = worlds.make(settings.env, settings.validation)
    life, exam = (worlds.Life(agent, e, settings.longest, jit_compile) for e in (envs, exams))

    def update(number: int, progress: float) -> dict[str, float]:
        draws = tf.constant([settings.seed, number], tf.int32)
        return learner.learn(life(world_seed(settings.seed, number), draws), draws, progress)

    def validate() -> dict[str, float]:
        return worlds.summary([exam(VALIDATION_SEED)])

    trainee = AgentTrainee(learner, update, validate, rank=("return",))
    run = None if out is None else loop.Run(out, settings.config())
    shown = WorldSubject(
        agent,
        settings.env,
        longest=settings.longest,
        episodes=settings.validation,
        seed=VALIDATION_SEED,
    )
    agent_runs.run_training(trainee, settings, run, show, shown)
    return agent


def world_seed(seed: int, number: int) -> int:
    """The seed of the environments in an update: below those of validation and test."""
    return int(np.random.default_rng([seed, number]).integers(VALIDATION_SEED - 10_000))


def score_world(
    agent: MemoryAgent,
    env: str,
    modules: Sequence[str] = (),
    episodes: int = 200,
    seed: int = TEST_SEED,
    longest: int = worlds.LONGEST,
) -> dict[str, Any]:
    """Plays episodes of a world.

    Args:
        agent: who plays, as its temperature says.
        env: the id of the environment.
        modules: to import first.
        episodes: how many, all side by side.
        seed: of the environments.
        longest: steps after which episodes are cut.

    Returns:
        A dict of what was played, and `worlds.summary` of it.
    """
    envs = worlds.make(env, episodes, modules)
    wanted = worlds.agent_for(envs, policy="fifo").reader
    came = agent.reader
    if (wanted.actions, wanted.eyes.item) != (came.actions, came.eyes.item):
        own, its = (observations.told(one.eyes.item) for one in (came, wanted))
        raise ValueError(
            f"the agent observes {own} and has {came.actions} actions; got {env}, with {its} and "
            f"{wanted.actions}"
        )
    lived = worlds.Life(agent, envs, longest)(seed)
    return {"env": env, **agent_runs.who(agent), **worlds.summary([lived])}
