"""Mazes: worlds to train, validate and test on, training an agent in them, and its scores."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import keras
import numpy as np

from lemn_tf import loop, runs
from lemn_tf.experiments import agent_runs
from lemn_tf.experiments.agent_runs import TEST_SEED, VALIDATION_SEED, AgentSettings, Show
from lemn_tf.mazes import (
    TEST_LENGTHS,
    TRAIN_LENGTHS,
    World,
    build,
    imaze_world,
    load_jsonl,
    random_mazes,
)
from lemn_tf.navigation.evaluation import Evaluator
from lemn_tf.navigation.learning import Learner
from lemn_tf.navigation.navigator import Navigator
from lemn_tf.navigation.recipe import AGENT_RECIPES, READERS, SLOTS, Recipe
from lemn_tf.navigation.training import AgentTrainee
from lemn_tf.pipelines.frames import Course, cut, updates
from lemn_tf.seeing.subjects_mazes import MazeSubject

VALIDATION_LENGTHS = (5, 7, 9, 12, 18, 28, 60)
"""I-Mazes to choose the best agent on: the training lengths, and others that no test has."""

SHOWN = 50
"""Of the validation maps, at most so many are for TensorBoard's comparison with rules."""


@dataclasses.dataclass(frozen=True)
class MazeSettings(AgentSettings):
    """How an agent is trained in mazes; made by `maze_settings`. See also `AgentSettings`.

    Attributes:
        env: "imaze" or "single-indicator".
        maps: file of maps to train on (single-indicator), if any.
        generated: maps to generate in addition.
        large: large maps to generate in addition.
        far: generated maps, those of validation too, have as many cells between indicator and box.
        refresh: updates after which other maps are generated; 0 for never.
        validation: maps generated for validation, two thirds as in training and the others large.
        lengths: I-Mazes to train on.
        dated, acted: what the agent knows beyond frames, see `MemoryAgent`.
        start_from: a trained agent of the same sizes to begin with: the folder of its run, or its
            file. It may know less than the new one.
    """

    task = "maze"

    env: str = "imaze"
    maps: str | None = None
    generated: int = 1000
    large: int = 0
    far: int = 0
    refresh: int = 500
    validation: int = 150
    lengths: tuple[int, ...] = TRAIN_LENGTHS
    units: int = 256
    dated: bool = False
    acted: int = 0
    start_from: str | None = None
    recipe: Recipe = AGENT_RECIPES["imaze", "mqn"]

    def __post_init__(self) -> None:
        if self.env not in SLOTS:
            raise ValueError(f"expected env to be {' or '.join(SLOTS)}, got {self.env!r}")
        if self.env == "imaze" and self.maps is not None:
            raise ValueError("expected no file of maps for imaze: it is made from its lengths")
        if self.env == "imaze" and self.far:
            raise ValueError(f"expected no far for imaze, got {self.far}: lengths make it longer")
        if self.env != "imaze" and not (self.maps or self.generated or self.large):
            raise ValueError("expected maps to train on: a file, or a number to generate")

    def build(self) -> Navigator:
        """The agent to begin with: untrained, or with the weights of `start_from`."""
        keras.utils.set_random_seed(self.seed)
        model = Navigator(**self.sizes, world=self.env, dated=self.dated, acted=self.acted)
        if self.start_from is not None:
            first = load_agent(self.start_from)
            came, wanted = {**first.settings}, model.settings
            came |= {name: wanted[name] for name in ("temperature", "world")}  # how it goes on
            learned = [name for name in ("dated", "acted") if not came[name]]
            came |= {name: wanted[name] for name in learned}
            if came != wanted:
                differ = [f"{k} {wanted[k]}, got {came[k]}" for k in wanted if wanted[k] != came[k]]
                raise ValueError(f"{self.start_from}: expected an agent with {'; '.join(differ)}")
            for name in ("reader", "critic", "view", "memory", "when", "past"):
                if getattr(first, name) is not None:
                    getattr(model, name).set_weights(getattr(first, name).get_weights())
        return model

    def validation_world(self) -> World:
        """The maps that the best agent is chosen on."""
        if self.env == "imaze":
            return imaze_world(VALIDATION_LENGTHS)
        large = self.validation // 3
        return build(
            random_mazes(self.validation - large, VALIDATION_SEED, "test", far=self.far)
            + random_mazes(large, VALIDATION_SEED, "large", far=self.far)
        )


def load_agent(name: str | os.PathLike) -> Navigator:
    """A trained maze agent by the name of a preset, the folder of a run, or a `.keras` file."""
    model = runs.load(name)
    if not isinstance(model, Navigator):
        raise ValueError(f"{name} is a {type(model).__name__}: expected a maze agent")
    return model


def maze_settings(
    env: str = "imaze",
    reader: str = "mqn",
    generated: int | None = None,
    slots: int | None = None,
    start_from: str | None = None,
    changes: Mapping[str, Any] | None = None,
    **others: Any,
) -> MazeSettings:
    """`MazeSettings` with what suits the environment and the reader.

    Args:
        env: "imaze" or "single-indicator".
        reader: "mqn" or "frmqn".
        generated: maps to generate; by default 1000, or none if a file of maps is given.
        slots: by default 4 in I-Mazes and 5 in random mazes.
        start_from: a trained agent to go on from: a run, a file or a preset.
        changes: values that replace those of the recipe.
        **others: further fields of `MazeSettings`.

    Example:

    >>> settings = maze_settings("single-indicator", "frmqn", changes={"frames": 1000})
    >>> settings.slots, settings.recipe.frames, settings.recipe.guidance
    (5, 1000, 1.0)
    """
    for name, value, known in (("env", env, SLOTS), ("reader", reader, READERS)):
        if value not in known:
            raise ValueError(f"expected {name} to be {' or '.join(known)}, got {value!r}")
    recipe = AGENT_RECIPES[env, reader]
    if start_from is not None:
        start_from, recipe = str(runs.find(start_from)), recipe.further()
    if generated is None:
        generated = 0 if others.get("maps") else 1000
    return MazeSettings(
        env=env,
        reader=reader,
        generated=generated,
        slots=slots or SLOTS[env],
        start_from=start_from,
        recipe=dataclasses.replace(recipe, **(changes or {})),
        **others,
    )


class MapSupply:
    """The maps and starts of every update, a function of the seed and the update's number.

    Args:
        settings: says what to train on.
    """

    def __init__(self, settings: MazeSettings):
        self.settings = settings
        self._file = load_jsonl(settings.maps) if settings.maps else []
        self._age: int | None = None
        self._world = self.world(0)

    def world(self, update: int) -> World:
        """All maps that update draws from."""
        settings = self.settings
        age = update // settings.refresh if settings.refresh else 0
        if self._age is None or (age != self._age and settings.env != "imaze"):
            self._age = age
            if settings.env == "imaze":
                self._world = imaze_world(settings.lengths)
            else:
                seed = settings.seed * 100_003 + age
                kinds = {"train": settings.generated, "large": settings.large}
                made = [
                    random_mazes(count, seed, kind, far=settings.far)
                    for kind, count in kinds.items()
                    if count
                ]
                self._world = build([*self._file, *itertools.chain(*made)])
        return self._world

    def __call__(self, update: int) -> tuple[np.ndarray, Course]:
        """The start poses `[B]` and the course of an update."""
        world, recipe = self.world(update), self.settings.recipe
        count, tables = len(world.mazes), world.tables(explore=recipe.guidance > 0)
        generator = np.random.default_rng([self.settings.seed, update])
        headings = generator.integers(4, size=recipe.episodes)
        if recipe.maps is None:
            rows = generator.integers(count, size=recipe.episodes)
            if len(world.frames) <= 512:
                course = cut(tables, range(count))
                return course.spawn[rows, headings], course
            course = self._some(tables, rows)
            return course.spawn[np.arange(recipe.episodes), headings], course
        # Of one limit of steps: short episodes would wait for long ones.
        like = generator.integers(count) if np.ptp(world.limit) else 0
        pool = np.flatnonzero(world.limit == world.limit[like])
        rows = generator.choice(pool, recipe.maps, replace=len(pool) < recipe.maps)
        agents = recipe.episodes // recipe.maps
        turned = headings[: recipe.maps, None] + np.arange(agents)
        course = self._some(tables, rows, pool)
        return course.spawn[np.arange(recipe.maps)[:, None], turned % 4].reshape(-1), course

    @staticmethod
    def _some(
        tables: Mapping[str, np.ndarray], rows: np.ndarray, like: np.ndarray | slice = slice(None)
    ) -> Course:
        """Some maps, with as many poses as any that are like them have."""
        largest = int(np.diff(tables["offset"])[like].max())
        return cut(tables, rows, poses=len(rows) * (-(-largest // 128) * 128))


class Updates:
    """The updates of a training; the next course is made while the agent learns on this one.

    Args:
        learner: updates the agent.
        supply: where its maps come from.
    """

    def __init__(self, learner: Learner, supply: MapSupply):
        self.learner, self.supply = learner, supply
        self._next = -1
        self._courses: Iterator[Any] = iter(())

    def __call__(self, number: int, progress: float) -> dict[str, float]:
        """The update of that number, `progress` into the training; scalars to show."""
        if number != self._next:
            self._courses = iter(updates(self.supply, number))
        starts, course = next(self._courses)
        self._next = number + 1
        seed = (self.supply.settings.seed, number)
        return self.learner.update(course, starts, seed, progress)


def train_agent(
    settings: MazeSettings,
    out: str | os.PathLike | None = None,
    show: Show = lambda line: None,
    jit_compile: bool = True,
) -> Navigator:
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
    supply, model = MapSupply(settings), settings.build()  # what is wrong is said before all else
    run = None if out is None else loop.Run(out, settings.config())
    learner = Learner(model, settings.recipe, jit_compile)
    world = settings.validation_world()
    validate = Evaluator(model, world, jit_compile=False)
    trainee = AgentTrainee(learner, Updates(learner, supply), lambda: validate().summary())
    count = len(world.mazes)
    some = world if count <= SHOWN else build(world.mazes[:: -(-count // SHOWN)])
    agent_runs.run_training(trainee, settings, run, show, MazeSubject(model, some))
    return model


def exam_world(
    env: str,
    lengths: Sequence[int] | None = None,
    maps: str | None = None,
    count: int = 200,
    seed: int = TEST_SEED,
    far: int = 0,
) -> tuple[World, dict[str, np.ndarray]]:
    """The maps that agents are scored on; see `score_agent` for the arguments.

    Returns:
        The maps, and which of them belong to each length or split.
    """
    if maps is not None:
        return build(load_jsonl(maps)), {}
    if env == "imaze":
        lengths = list(lengths or TEST_LENGTHS)
        pairs = np.arange(2 * len(lengths)).reshape(-1, 2)  # yellow and lime
        return imaze_world(lengths), dict(zip(map(str, lengths), pairs, strict=True))
    splits = ("test", "large")
    made = [random_mazes(count, seed, split, far=far) for split in splits]
    halves = np.arange(2 * count).reshape(2, -1)
    return build([*made[0], *made[1]]), dict(zip(splits, halves, strict=True))


def score_agent(
    model: Navigator,
    env: str = "imaze",
    lengths: Sequence[int] | None = None,
    maps: str | None = None,
    count: int = 200,
    seed: int = TEST_SEED,
    far: int = 0,
) -> dict[str, Any]:
    """Plays mazes from every start heading.

    Args:
        model: the agent.
        env: "imaze" or "single-indicator".
        lengths: of I-Mazes; by default those of the paper's test.
        maps: file of maps, played instead.
        count: maps to generate for each split of "single-indicator" without a file.
        seed: of those maps.
        far: cells between indicator and box in those maps.

    Returns:
        A dict with `success_rate` in percent, `episodes`, the rest of `Endings.summary`,
        and the same in `per_length` or `per_split`.
    """
    world, groups = exam_world(env, lengths, maps, count, seed, far)
    ended = Evaluator(model, world, jit_compile=False)()
    result = {
        "env": env if maps is None else str(maps),
        **agent_runs.who(model),
        **ended.summary(),
    }
    if groups:
        by = "per_length" if env == "imaze" else "per_split"
        result[by] = {name: ended.summary(rows) for name, rows in groups.items()}
    return result
