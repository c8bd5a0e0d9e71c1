"""BatchedEnvironment: what in-graph environments of TF-Agents have in common.

B games side by side, whose state lives in variables. When a game is over, its next step begins
another one and ignores the action, as TF-Agents expects. A subclass says how a game begins, what
an action does and what is seen; this class keeps track of step types, rewards and discounts.
"""

from __future__ import annotations

import abc
from typing import Any, NamedTuple

import tensorflow as tf
from tf_agents.environments import tf_environment
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step as ts


class Moved(NamedTuple):
    """What actions led to, `[B]` each.

    Attributes:
        reward: float32.
        over: bool, whether the game has ended.
        discount: float32, 0 where nothing can follow, 1 in a game that goes on or was cut off.
    """

    reward: tf.Tensor
    over: tf.Tensor
    discount: tf.Tensor


def variable(value: Any) -> tf.Variable:
    """A variable that is part of the state of an environment."""
    return tf.Variable(value, trainable=False)


class BatchedEnvironment(tf_environment.TFEnvironment, abc.ABC):
    """B games side by side.

    Args:
        observation: nest of specs, what is seen of one game.
        action: spec of an action.
        batch_size: B.
    """

    def __init__(
        self, observation: Any, action: tensor_spec.BoundedTensorSpec, batch_size: int
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"expected at least one game, got batch_size={batch_size}")
        super().__init__(ts.time_step_spec(observation), action, batch_size)
        self._steps = variable(tf.zeros([batch_size], tf.int32))
        self._over = variable(tf.zeros([batch_size], tf.bool))
        self._reward = variable(tf.zeros([batch_size]))
        self._discount = variable(tf.ones([batch_size]))
        self._started = variable(False)

    @abc.abstractmethod
    def _begin(self, rows: tf.Tensor) -> None:
        """Begins new games in those rows, `[B]` bool."""

    @abc.abstractmethod
    def _move(self, action: tf.Tensor, steps: tf.Tensor) -> Moved:
        """Plays the actions `[B]`; `steps` `[B]` counts each game's steps, this one included."""

    @abc.abstractmethod
    def _observation(self) -> Any:
        """What is seen now, a nest of `[B, ...]`."""

    def _current_time_step(self) -> ts.TimeStep:
        return tf.cond(self._started, self._show, self._reset)

    def _reset(self) -> ts.TimeStep:
        self._restart(tf.ones([self.batch_size], tf.bool))
        self._started.assign(True)
        return self._show()

    def _step(self, action: tf.Tensor) -> ts.TimeStep:
        return tf.cond(self._started, lambda: self._go_on(action), self._reset)

    def _go_on(self, action: tf.Tensor) -> ts.TimeStep:
        over = self._over.read_value()  # these rows begin a new game, whatever the action
        steps = self._steps.read_value() + 1
        moved = self._move(tf.cast(action, tf.int32), steps)
        self._steps.assign(steps)
        self._reward.assign(moved.reward)
        self._over.assign(moved.over)
        self._discount.assign(moved.discount)
        tf.cond(tf.reduce_any(over), lambda: self._restart(over), lambda: None)
        return self._show()

    def _restart(self, rows: tf.Tensor) -> None:
        self._begin(rows)
        self._steps.assign(tf.where(rows, 0, self._steps))
        self._over.assign(self._over.read_value() & ~rows)
        self._reward.assign(tf.where(rows, 0.0, self._reward))
        self._discount.assign(tf.where(rows, 1.0, self._discount))

    def _show(self) -> ts.TimeStep:
        kind = tf.where(self._steps == 0, ts.StepType.FIRST, ts.StepType.MID)
        return ts.TimeStep(
            step_type=tf.where(self._over.read_value(), ts.StepType.LAST, kind),
            reward=self._reward.read_value(),
            discount=self._discount.read_value(),
            observation=self._observation(),
        )
