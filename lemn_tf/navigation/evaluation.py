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
from lemn_tf.navigation.rollout import Course, make_course, outcome, walk


class Scores(NamedTuple):
    """How every episode of a world ended, arrays `[M, 4]` by map and start heading.

    Attributes: as of `maze_rollout.Outcome`, and
        winnable: bool, whether any agent could have succeeded within the limit of steps.
    """

    success: np.ndarray
    finished: np.ndarray
    steps: np.ndarray
    total: np.ndarray
    remembered: np.ndarray
    winnable: np.ndarray

    def summary(self, maps: np.ndarray | slice = slice(None)) -> dict[str, float]:
        """Rates in percent and means, of all maps or some.

        Args:
            maps: index of the maps.

        Returns:
            `success_rate`, `wrong_rate`, `unfinished_rate`, `winnable_rate`, `indicator_in_memory`
            (share of the finished episodes at whose last action a frame with the indicator was in
            memory), all in percent; `return`, `length`; and `episodes`, their number.
        """
        part = Scores(*(array[maps] for array in self))
        finished = max(int(part.finished.sum()), 1)

        def percent(array):
            return round(100.0 * float(np.mean(array)), 3)

        held = (part.remembered & part.finished).sum() / finished
        return {
            "success_rate": percent(part.success),
            "wrong_rate": percent(part.finished & ~part.success),
            "unfinished_rate": percent(~part.finished),
            "winnable_rate": percent(part.winnable),
            "indicator_in_memory": percent(held),
            "return": round(float(part.total.mean()), 4),
            "length": round(float(part.steps.mean()), 2),
            "episodes": int(part.success.size),
        }


class Evaluator:
    """Plays every map of a world; the compiled program is kept from one call to the next.

    Args:
        world: the maps.
        chunk: maps walked at a time, from all four headings each.
        jit_compile: compile with XLA. Worth it where many maps or many calls follow.

    Example:

    >>> from lemn_tf.mazes import imaze_world
    >>> agent = Navigator("mqn", policy="fifo", units=8, filters=(2, 4))
    >>> Evaluator(imaze_world([4]), jit_compile=False)(agent).success.shape
    (2, 4)
    """

    def __init__(self, world: World, chunk: int = 64, jit_compile: bool = True):
        count = len(world.mazes)
        chunk = min(chunk, count)
        self.world, self.groups, self.winnable = world, [], winnable(world)
        for start in range(0, count, chunk):  # the last group repeats maps to be as large
            self.groups.append(np.minimum(np.arange(start, start + chunk), count - 1))
        sizes = np.diff(world.offset)
        self.poses = max(int(sizes[np.unique(group)].sum()) for group in self.groups)
        self._courses: dict[int, Course] = {}
        self._play = tf.function(self._act, jit_compile=jit_compile)
        self._model = None

    def _course(self, number: int) -> Course:
        if number in self._courses:
            return self._courses[number]
        course = make_course(self.world, self.groups[number], self.poses)
        if len(self.groups) <= 4:
            self._courses[number] = course
        return course

    def _act(self, tables, starts, indicator, steps: int):
        walked, _ = walk(self._model, tables, starts, steps)
        return outcome(walked, indicator)

    def __call__(self, model: Navigator) -> Scores:
        """Plays all maps with one agent, always the same one: the program holds its weights."""
        if self._model not in (None, model):
            raise ValueError("expected the agent of the first call; make another Evaluator")
        self._model = model
        steps, results = int(self.world.limit.max()), []
        for number, group in enumerate(self.groups):
            course = self._course(number)
            starts = tf.constant(course.spawn.reshape(-1))
            ended = self._play(course.tables, starts, tf.constant(course.indicator), steps)
            fresh = np.diff(group, prepend=-1) > 0  # not the repeats
            results.append([x.numpy().reshape(-1, 4)[fresh] for x in ended])
        columns = [np.concatenate(parts) for parts in zip(*results, strict=True)]
        return Scores(*columns, winnable=self.winnable)


def evaluate(model: Navigator, world: World, jit_compile: bool = True) -> Scores:
    """Plays every map of a world from every heading; see `Evaluator`."""
    return Evaluator(world, jit_compile=jit_compile)(model)
