"""Training a `Navigator` as a run: what `lemn_tf.loop` needs to know about an agent.

An update is a function of the seed and its number. So a run that was stopped and resumed gives the
same numbers as one that was not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from lemn_tf.loop import Trainee
from lemn_tf.navigation.evaluation import Evaluator
from lemn_tf.navigation.learning import Learner
from lemn_tf.navigation.navigator import Navigator, load_agent


class AgentTrainee(Trainee):
    """An agent in training; `model.npz` is the one that validated best.

    Args:
        learner: updates the agent.
        courses: from the number of an update to a stream of start poses and courses that begins
            with it, see `lemn_tf.pipelines.frames.updates`.
        validate: plays the maps that the best agent is chosen on.
        seed: of all updates.
    """

    file = "model.npz"
    model: Navigator

    def __init__(
        self,
        learner: Learner,
        courses: Callable[[int], tf.data.Dataset],
        validate: Evaluator,
        seed: int = 0,
    ) -> None:
        super().__init__(learner.model, {"update": 0, "frames": 0})
        self.learner, self.courses, self.validate, self.seed = learner, courses, validate, seed
        self._stream: Any = None

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
        result = self.validate().summary()
        return {
            **self.position,
            "frames_per_second": round(speed),
            **means(shown),
            **{f"val_{name}": value for name, value in result.items()},
        }

    def _update(self) -> dict[str, float]:
        number, frames = self.position["update"], self.position["frames"]
        if self._stream is None:
            self._stream = iter(self.courses(number))
        starts, course = next(self._stream)
        done = frames / self.learner.recipe.frames
        shown = self.learner.update(course, starts, (self.seed, number), done)
        self.position |= {"update": number + 1, "frames": frames + int(shown["frames"])}
        return shown

    def rank(self, line: dict[str, Any]) -> tuple[float, ...]:
        return line["val_success_rate"], line["val_return"]

    def where(self) -> str:
        return f"{self.position['frames']:,} of {self.learner.recipe.frames:,} frames"

    def save(self, path: Path) -> None:
        self.model.save_to(path)

    def saved_weights(self, path: Path) -> list[np.ndarray]:
        return load_agent(path).get_weights()


def means(shown: Sequence[dict[str, float]]) -> dict[str, float]:
    """The mean of several updates, rates in percent."""
    mean = {name: float(np.mean([one[name] for one in shown])) for name in shown[0]}
    del mean["frames"]
    for name in ("success", "finished", "indicator_in_memory"):
        mean[name] *= 100.0
    return {name: round(value, 4) for name, value in mean.items()}
