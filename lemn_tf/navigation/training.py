"""Training an agent as a run: what `lemn_tf.loop` needs to know about an agent.

An update is a function of the seed and its number. So a run that was stopped and resumed gives the
same numbers as one that was not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from lemn_tf.loop import Trainee
from lemn_tf.navigation.learning import Learner

RATES = {"success", "finished", "indicator_in_memory"}
"""The scalars of an update that are shares of its episodes."""


class AgentTrainee(Trainee):
    """An agent in training; `model.keras` is the one that validated best.

    Args:
        learner: updates the agent.
        update: makes an update: a function from its number and how much of the training is done,
            0 to 1, to scalars to show, `frames` among them.
        validate: plays the episodes that the best agent is chosen on; returns numbers by name.
        rank: the names of those that decide, the most important first.
    """

    def __init__(
        self,
        learner: Learner,
        update: Callable[[int, float], dict[str, float]],
        validate: Callable[[], dict[str, float]],
        rank: Sequence[str] = ("success_rate", "return"),
    ) -> None:
        super().__init__(learner.model, {"update": 0, "frames": 0})
        self.learner, self.update, self.validate = learner, update, validate
        self.ranked = tuple(f"val_{name}" for name in rank)

    @property
    def optimizer(self) -> keras.optimizers.Optimizer:
        return self.learner.optimizer

    @property
    def finished(self) -> bool:
        return self.position["frames"] >= self.learner.recipe.frames

    def advance(self) -> dict[str, Any]:
        began, shown = time.time(), [self._update()]
        while self.position["update"] % self.learner.recipe.validate_every and not self.finished:
            shown.append(self._update())
        speed = sum(one["frames"] for one in shown) / (time.time() - began)
        result = self.validate()
        return {
            **self.position,
            "frames_per_second": round(speed),
            **means(shown),
            **{f"val_{name}": value for name, value in result.items()},
        }

    def _update(self) -> dict[str, float]:
        number, frames = self.position["update"], self.position["frames"]
        shown = self.update(number, frames / self.learner.recipe.frames)
        self.position |= {"update": number + 1, "frames": frames + int(shown["frames"])}
        return shown

    def rank(self, line: dict[str, Any]) -> tuple[float, ...]:
        return tuple(line[name] for name in self.ranked)

    def where(self) -> str:
        return f"{self.position['frames']:,} of {self.learner.recipe.frames:,} frames"


def means(shown: Sequence[dict[str, float]]) -> dict[str, float]:
    """The mean of several updates, rates in percent."""
    mean = {name: float(np.mean([one[name] for one in shown])) for name in shown[0]}
    del mean["frames"]
    for name in RATES & mean.keys():
        mean[name] *= 100.0
    return {name: round(value, 4) for name, value in mean.items()}
