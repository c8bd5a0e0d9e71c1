"""Training runs of a `Navigator`: where maps come from, validation, checkpoints, curves.

A run is a folder: `config.json` (settings), `history.jsonl` (a line a validation), `checkpoint.npz`
(everything needed to go on), `model.npz` (the agent that validated best) and `logs/` for
TensorBoard. An update is a function of the seed and its number, so a run that was stopped and
resumed gives the same numbers as one that was not.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from lemn_tf import loop
from lemn_tf.mazes import Maze, World, build, imaze_world, load_jsonl, random_mazes
from lemn_tf.navigation import navigator
from lemn_tf.navigation.evaluation import Evaluator
from lemn_tf.navigation.learning import RECIPES, Learner, Recipe, further
from lemn_tf.navigation.navigator import Navigator
from lemn_tf.navigation.rollout import Course, make_course

ENVIRONMENTS = ("imaze", "single-indicator")
VALIDATION_LENGTHS = (5, 7, 9, 12, 18, 28, 60)
"""I-Mazes to choose the best agent on: the training lengths, and others that no test has."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """How a run is made; written to its folder.

    Attributes:
        env: "imaze" or "single-indicator".
        maps: file of maps to train on (single-indicator), if any.
        generated: maps to generate beside them.
        large: large maps to generate beside those.
        refresh: updates after which other maps are generated; 0 for never.
        validation: maps generated for validation, two thirds as in training and the others large.
        lengths: I-Mazes to train on.
        reader, policy, slots, units, width, hidden: of the `Navigator`.
        seed: of everything random.
        start_from: a trained agent of the same sizes to begin with: the folder of its run, or its
            file.
        recipe: how it is trained.
    """

    env: str = "imaze"
    maps: str | None = None
    generated: int = 1000
    large: int = 0
    refresh: int = 500
    validation: int = 150
    lengths: tuple[int, ...] = (5, 7, 9)
    reader: str = "mqn"
    policy: str = "st-lemn"
    slots: int = 4
    units: int = 256
    width: int = 32
    hidden: int | None = None
    seed: int = 0
    start_from: str | None = None
    recipe: Recipe = RECIPES["imaze", "mqn"]

    def __post_init__(self):
        if self.env not in ENVIRONMENTS:
            raise ValueError(f"expected env to be {' or '.join(ENVIRONMENTS)}, got {self.env!r}")
        if self.env == "imaze" and self.maps is not None:
            raise ValueError("expected no file of maps for imaze: it is made from its lengths")
        if self.env != "imaze" and not (self.maps or self.generated or self.large):
            raise ValueError("expected maps to train on: a file, or a number to generate")

    def build(self) -> Navigator:
        """The agent to begin with: untrained, or with the weights of `start_from`."""
        keras.utils.set_random_seed(self.seed)
        sizes = (self.slots, self.policy, self.units, self.width, self.hidden)
        model = Navigator(self.reader, *sizes, temperature=self.recipe.temperature)
        if self.start_from is not None:
            first = navigator.load(self.start_from).playing_at(model.temperature)
            if first.settings != model.settings:
                wanted, came = model.settings, first.settings
                differ = [f"{k} {wanted[k]}, got {came[k]}" for k in wanted if wanted[k] != came[k]]
                raise ValueError(f"{self.start_from}: expected an agent with {'; '.join(differ)}")
            model.set_weights(first.get_weights())
        return model

    def config(self) -> dict:
        return json.loads(json.dumps({"task": "maze", **dataclasses.asdict(self)}))

    def validation_world(self) -> World:
        """The maps that the best agent is chosen on."""
        if self.env == "imaze":
            return imaze_world(VALIDATION_LENGTHS)
        large = self.validation // 3
        return build(
            random_mazes(self.validation - large, 10_000_019, "test")
            + random_mazes(large, 10_000_019, "large")
        )


class Supply:
    """The maps and starts of every update, a function of the seed and the update's number.

    Args:
        settings: which maps.
    """

    def __init__(self, settings: Settings):
        self.settings, self.recipe = settings, settings.recipe
        self._file: list[Maze] = load_jsonl(settings.maps) if settings.maps else []
        self._age, self._world, self._course = None, None, None

    def world(self, update: int) -> World:
        """The maps that this update draws from."""
        settings = self.settings
        made = settings.env != "imaze" and settings.generated + settings.large
        age = update // settings.refresh if settings.refresh and made else 0
        if age != self._age:
            self._age, self._course = age, None
            if settings.env == "imaze":
                self._world = imaze_world(settings.lengths)
            else:
                seed = settings.seed * 100_003 + age
                kinds = {"train": settings.generated, "large": settings.large}
                made = [random_mazes(count, seed, kind) for kind, count in kinds.items() if count]
                self._world = build([*self._file, *itertools.chain(*made)])
        return self._world

    def __call__(self, update: int) -> tuple[Course, np.ndarray]:
        """The course of an update and its start poses `[B]`."""
        world, recipe = self.world(update), self.recipe
        generator = np.random.default_rng([self.settings.seed, update])
        headings = generator.integers(4, size=recipe.episodes)
        if recipe.maps is None:
            rows = generator.integers(len(world.mazes), size=recipe.episodes)
            if self._course is None and len(world.frames) <= 512:
                self._course = make_course(world)
            if self._course is not None:
                return self._course, self._course.spawn[rows, headings]
            course = self._some(world, rows)
            return course, course.spawn[np.arange(recipe.episodes), headings]
        rows = generator.choice(
            len(world.mazes), recipe.maps, replace=len(world.mazes) < recipe.maps
        )
        course, agents = self._some(world, rows), recipe.episodes // recipe.maps
        headings = headings[: recipe.maps, None] + np.arange(agents)
        return course, course.spawn[np.arange(recipe.maps)[:, None], headings % 4].reshape(-1)

    @staticmethod
    def _some(world: World, rows: np.ndarray) -> Course:
        largest = int(np.diff(world.offset).max())
        return make_course(world, rows, poses=len(rows) * (-(-largest // 128) * 128))


@dataclasses.dataclass
class Progress:
    """Where a run stands: updates and frames done, time, best validation so far."""

    update: int = 0
    frames: int = 0
    seconds: float = 0.0
    best: float = -1.0
    best_return: float = -1e9


def restore(run: loop.Run, learner: Learner) -> Progress:
    """Sets the learner to where a run stands; a new run stands at its beginning."""
    saved = run.load()
    if saved is None:
        return Progress()
    learner.model.set_weights([saved[f"weight/{i}"] for i in range(len(learner.model.weights))])
    for i, variable in enumerate(learner.optimizer.variables):
        variable.assign(saved[f"optimizer/{i}"])
    progress = Progress(**{k: saved[f"progress/{k}"].item() for k in vars(Progress())})
    run.keep_history(sum(line["update"] <= progress.update for line in run.history()))
    return progress


def recipe_for(env: str, reader: str, start_from: str | None = None) -> Recipe:
    """The recipe for an agent, or for one that has been trained by it and goes on."""
    recipe = RECIPES[env, reader]
    return recipe if start_from is None else further(recipe)


def train(
    settings: Settings,
    out: str | os.PathLike | None = None,
    show: Callable[[dict], None] = lambda line: None,
    jit_compile: bool = True,
    stop_after: int | None = None,
) -> Navigator:
    """Trains an agent, or goes on with the run in `out`.

    Args:
        settings: how.
        out: folder of the run; None keeps nothing.
        show: called with every line of the history.
        jit_compile: compile with XLA.
        stop_after: stop, saved, after so many updates of this call.

    Returns:
        The agent that validated best.

    Raises:
        loop.Interrupted: on Ctrl-C; the message says what is saved.
    """
    supply, recipe, model = Supply(settings), settings.recipe, settings.build()
    supply.world(0)  # maps that cannot be read leave no folder behind
    learner = Learner(model, recipe, jit_compile)
    run = None if out is None else loop.Run(out, settings.config())
    progress = Progress() if run is None else restore(run, learner)
    validate = Evaluator(settings.validation_world(), jit_compile=False)
    writer = tf.summary.create_file_writer(str(run.folder / "logs")) if run is not None else None
    best = model.get_weights()
    if run is not None and (run.folder / "model.npz").exists():
        best = navigator.load(run.folder).get_weights()
    first, kept, began, shown = progress.update, progress.frames, time.time(), []
    try:
        while progress.frames < recipe.frames:
            done = progress.frames / recipe.frames
            seed = (settings.seed, progress.update)
            shown.append(learner.update(*supply(progress.update), seed, done))
            progress.update += 1
            progress.frames += int(shown[-1]["frames"])
            stop = stop_after is not None and progress.update - first >= stop_after
            last = stop or progress.frames >= recipe.frames
            if progress.update % recipe.validate_every and not last:
                continue
            line = _means(shown)
            spent = time.time() - began
            result = validate(model).summary()
            rank = (result["success_rate"], result["return"])
            better = rank >= (progress.best, progress.best_return)
            if better:
                best, (progress.best, progress.best_return) = model.get_weights(), rank
            progress.seconds += time.time() - began
            line = {
                "update": progress.update,
                "frames": progress.frames,
                "seconds": round(progress.seconds, 1),
                "frames_per_second": round(sum(one["frames"] for one in shown) / spent),
                **line,
                **{f"val_{name}": value for name, value in result.items()},
                "best": progress.best,
            }
            show(line)
            if run is not None:
                run.log(line)
                _curves(writer, line)
                if better:
                    model.save_to(run.folder / "model.npz")
                arrays = {f"weight/{i}": w for i, w in enumerate(model.get_weights())}
                variables = enumerate(learner.optimizer.variables)
                arrays |= {f"optimizer/{i}": v.numpy() for i, v in variables}
                arrays |= {f"progress/{k}": np.asarray(v) for k, v in vars(progress).items()}
                run.save(arrays)
                kept = progress.frames
            began, shown = time.time(), []
            if stop:
                break
    except KeyboardInterrupt:
        if run is None:
            raise
        raise loop.Interrupted(
            f"stopped after {progress.frames:,} of {recipe.frames:,} frames; the same command "
            f"again goes on from the last validation, saved in {run.folder} after {kept:,} frames"
        ) from None
    model.set_weights(best)
    return model


def _means(shown: Sequence[dict[str, float]]) -> dict[str, float]:
    """Means over updates, rates in percent."""
    means = {name: float(np.mean([one[name] for one in shown])) for name in shown[0]}
    del means["frames"]
    for name in ("success", "finished", "indicator_in_memory"):
        means[name] *= 100.0
    return {name: round(value, 4) for name, value in means.items()}


def _curves(writer, line: dict) -> None:
    """The line for TensorBoard, over the frames seen."""
    with writer.as_default():
        for name, value in line.items():
            if name.startswith("val_"):
                tf.summary.scalar(f"validation/{name[4:]}", value, line["frames"])
            elif name not in ("update", "frames"):
                tf.summary.scalar(f"training/{name}", value, line["frames"])
    writer.flush()


def settings_of(folder: str | os.PathLike) -> Settings:
    """The settings of the run in a folder."""
    path = Path(folder) / "config.json"
    if not path.is_file():
        raise ValueError(f"expected the run of an agent in {folder}, found no config.json")
    config = json.loads(path.read_text())
    if config.pop("task", None) != "maze":
        raise ValueError(f"expected the run of an agent in {folder}, found one of another kind")
    recipe = Recipe(**config.pop("recipe"))
    return Settings(**{**config, "lengths": tuple(config["lengths"]), "recipe": recipe})
