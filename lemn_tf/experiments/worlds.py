"""Agents in any Gymnasium world: training one, and what it comes to."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from lemn_tf import loop
from lemn_tf.navigation import worlds
from lemn_tf.navigation.agent import MemoryAgent
from lemn_tf.navigation.recipe import WORLD_RECIPE, Recipe
from lemn_tf.navigation.training import AgentTrainee
from lemn_tf.seeing.boards import Board

VALIDATION_SEED, TEST_SEED = 10_000_019, 20_000_003
"""Seeds of the episodes to choose the best agent on, and to give results for; no training has
either."""


@dataclasses.dataclass(frozen=True)
class WorldSettings:
    """How an agent is trained in a world; written to the folder of its run.

    Attributes:
        env: the id of the environment.
        modules: to import first, those that register it.
        reader, policy, slots, units, width, hidden: of the `MemoryAgent`.
        validation: episodes to choose the best agent on.
        longest: steps after which episodes are cut.
        seed: of everything random.
        recipe: how it is trained.
    """

    env: str
    modules: tuple[str, ...] = ()
    reader: str = "mqn"
    policy: str = "st-lemn"
    slots: int = 4
    units: int = 64
    width: int = 32
    hidden: int | None = None
    validation: int = 64
    longest: int = worlds.LONGEST
    seed: int = 0
    recipe: Recipe = WORLD_RECIPE

    def build(self, envs: Any) -> MemoryAgent:
        """The agent to begin with."""
        keras.utils.set_random_seed(self.seed)
        names = ("reader", "policy", "slots", "units", "width", "hidden")
        sizes = {name: getattr(self, name) for name in names}
        return worlds.agent_for(envs, temperature=self.recipe.temperature, **sizes)

    def config(self) -> dict[str, Any]:
        """As it is written to the folder of a run."""
        return json.loads(json.dumps({"task": "world", **dataclasses.asdict(self)}))


def train_world(
    settings: WorldSettings,
    out: str | os.PathLike | None = None,
    show: Callable[[dict[str, Any]], None] = lambda line: None,
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
    if out is None:
        loop.run_loop(trainee, None, show)
        return agent
    run = loop.Run(out, settings.config())
    board = Board(run.folder / "logs", settings.config())

    def told(line: dict[str, Any]) -> None:
        board.scalars(line, line["frames"])
        show(line)

    loop.run_loop(trainee, run, told)
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
        raise ValueError(
            f"the agent observes {came.eyes.item} and has {came.actions} actions; got {env}, with "
            f"{wanted.eyes.item} and {wanted.actions}"
        )
    told = {"env": env, "reader": agent.settings["reader"], "policy": agent.memory.policy.name}
    told |= {"slots": agent.memory.slots, "temperature": agent.temperature}
    return told | worlds.summary([worlds.Life(agent, envs, longest)(seed)])
