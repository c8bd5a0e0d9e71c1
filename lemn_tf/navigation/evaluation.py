"""Evaluation of a `Navigator`: every map, every start heading.

An agent plays as its temperature says: the likeliest action each time, or drawn with a fixed seed.
The same agent and maps give the same scores.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from lemn_tf.mazes.expert import winnable
from lemn_tf.mazes.world import World
from lemn_tf.navigation.navigator import Navigator
from lemn_tf.navigation.rollout import Outcome, outcome, walk
from lemn_tf.pipelines import frames

LATE = 10
"""Steps before the end of an episode after which it may be too late to walk to a goal in view."""


class Endings(NamedTuple):
    """How every episode of a world ended, arrays `[M, 4]` by map and start heading.

    Attributes: as of `rollout.Outcome`, and
        winnable: bool, whether any agent could have succeeded within the limit of steps.
    """

    success: np.ndarray
    finished: np.ndarray
    steps: np.ndarray
    total: np.ndarray
    remembered: np.ndarray
    known: np.ndarray
    winnable: np.ndarray

    def summary(self, maps: np.ndarray | slice = slice(None)) -> dict[str, float]:
        """Rates in percent and means, of all maps or some.

        Args:
            maps: index of the maps.

        Returns:
            `success_rate`, `wrong_rate`, `unfinished_rate`, `overlooked_rate` (not finished though
            the right goal came into view more than `LATE` steps before the end), `winnable_rate`,
            `indicator_in_memory` (share of the finished episodes at whose last action a frame with
            the indicator was in memory), all in percent; `return`, `length`; and `episodes`, their
            number.
        """
        part = Endings(*(array[maps] for array in self))
        finished = max(int(part.finished.sum()), 1)

        def percent(array: np.ndarray) -> float:
            return round(100.0 * float(np.mean(array)), 3)

        held = (part.remembered & part.finished).sum() / finished
        return {
            "success_rate": percent(part.success),
            "wrong_rate": percent(part.finished & ~part.success),
            "unfinished_rate": percent(~part.finished),
            "overlooked_rate": percent(~part.finished & (part.known > LATE)),
            "winnable_rate": percent(part.winnable),
            "indicator_in_memory": percent(held),
            "return": round(float(part.total.mean()), 4),
            "length": round(float(part.steps.mean()), 2),
            "episodes": int(part.success.size),
        }


class Evaluator:
    """Plays every map of a world with one agent, as often as it is called.

    The maps come as a stream of courses, see `lemn_tf.pipelines.frames`; a small world is kept in
    memory from one call to the next, as is the compiled program.

    Args:
        model: the agent.
        world: the maps.
        chunk: maps walked at a time, from all four headings each.
        jit_compile: compile with XLA. Worth it where many maps or many calls follow.

    Example:

    >>> from lemn_tf.mazes import imaze_world
    >>> agent = Navigator("mqn", policy="fifo", units=8, filters=(2, 4))
    >>> Evaluator(agent, imaze_world([4]), jit_compile=False)().success.shape
    (2, 4)
    """

    def __init__(
        self, model: Navigator, world: World, chunk: int = 64, jit_compile: bool = True
    ) -> None:
        self.model, self.winnable = model, winnable(world)
        self.steps = int(world.limit.max())
        self.courses = frames.groups(world.tables(), chunk)
        if len(world.mazes) <= 4 * chunk:
            self.courses = self.courses.cache()
        self._play = tf.function(self._act, autograph=False, jit_compile=jit_compile)

    def _act(self, course: frames.Course) -> Outcome:
        walked, _ = walk(self.model, course, tf.reshape(course.spawn, [-1]), self.steps)
        return outcome(walked, course.indicator)

    def __call__(self) -> Endings:
        """Plays all maps."""
        results = []
        for maps, course in self.courses:
            fresh = np.diff(maps, prepend=-1) > 0  # not the repeats
            results.append([x.numpy().reshape(-1, 4)[fresh] for x in self._play(course)])
        columns = [np.concatenate(parts) for parts in zip(*results, strict=True)]
        return Endings._make([*columns, self.winnable])
