"""MazeEnvironment: mazes as an in-graph environment of TF-Agents, over frames rendered before.

    environment = MazeEnvironment(imaze_world([5, 7, 9]), batch_size=64)
    time_step = environment.reset()
    time_step = environment.step(tf.zeros([64], tf.int32))  # everybody one cell ahead

For agents of TF-Agents that want to see frames. Our own training does not go through it: it works
on pose tables and looks at each distinct frame once (`lemn_tf.navigation.rollout`).
"""

from __future__ import annotations

import tensorflow as tf
from tf_agents.environments import tf_environment
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step as ts

from lemn_tf.mazes.world import ACTIONS, World
from lemn_tf.retention.chance import salt_of, scramble


class MazeEnvironment(tf_environment.TFEnvironment):
    """B walkers side by side; the rules are those of `lemn_tf.mazes.MazeEnv`.

    Observations are frames, uint8 `[H, W, 3]`; actions 0 forward, 1 left, 2 right. Map and heading
    of an episode are drawn evenly. A goal ends an episode with discount 0; the limit of steps ends
    it with discount 1, as TF-Agents marks an episode that was cut off. The step after the last one
    begins a new episode and does not heed the action.

    Args:
        world: the tables.
        batch_size: B.
        seed: of the draws.

    Example:

    >>> from lemn_tf.mazes import imaze_world
    >>> environment = MazeEnvironment(imaze_world([5]), batch_size=3)
    >>> environment.reset().observation.shape
    TensorShape([3, 32, 32, 3])
    """

    def __init__(self, world: World, batch_size: int = 1, seed: int = 0):
        if batch_size < 1:
            raise ValueError(f"expected at least one walker, got batch_size={batch_size}")
        self._next = tf.constant(world.next, tf.int32)
        self._rewards = tf.constant(world.reward, tf.float32)
        self._ends = tf.constant(world.done, tf.bool)
        self._limit = tf.constant(world.limit[world.maze], tf.int32)  # by pose
        self._spawn = tf.constant(world.spawn.reshape(-1), tf.int32)
        self._frame = tf.constant(world.frame, tf.int32)
        self._frames = tf.constant(world.rgb, tf.uint8)
        self._seed = tf.constant([seed, 0], tf.int32)
        frame = tensor_spec.BoundedTensorSpec(world.rgb.shape[1:], tf.uint8, 0, 255, "frame")
        action = tensor_spec.BoundedTensorSpec([], tf.int32, 0, len(ACTIONS) - 1, "action")
        super().__init__(ts.time_step_spec(frame), action, batch_size)

        def variable(value):
            return tf.Variable(value, trainable=False)

        self._pose = variable(tf.zeros([batch_size], tf.int32))
        self._steps = variable(tf.zeros([batch_size], tf.int32))
        self._over = variable(tf.zeros([batch_size], tf.bool))
        self._reward = variable(tf.zeros([batch_size]))
        self._discount = variable(tf.ones([batch_size]))
        self._clock = variable(tf.constant(0, tf.int64))
        self._started = variable(False)

    @property
    def pose(self) -> tf.Tensor:
        """int32 `[B]`: where everybody is, as an index into the tables."""
        return self._pose.read_value()

    def _current_time_step(self) -> ts.TimeStep:
        return tf.cond(self._started, self._show, self._reset)

    def _reset(self) -> ts.TimeStep:
        self._begin(tf.ones([self.batch_size], tf.bool))
        self._started.assign(True)
        return self._show()

    def _step(self, action: tf.Tensor) -> ts.TimeStep:
        return tf.cond(self._started, lambda: self._go_on(action), self._reset)

    def _go_on(self, action: tf.Tensor) -> ts.TimeStep:
        over = self._over.read_value()
        steps = self._steps.read_value() + 1
        moves = tf.gather(self._next, self._pose.read_value())
        pose = tf.gather(moves, tf.cast(action, tf.int32), batch_dims=1)
        done = tf.gather(self._ends, pose)
        self._pose.assign(pose)
        self._steps.assign(steps)
        self._reward.assign(tf.gather(self._rewards, pose))
        self._discount.assign(tf.where(done, 0.0, 1.0))
        self._over.assign(done | (steps >= tf.gather(self._limit, pose)))
        tf.cond(tf.reduce_any(over), lambda: self._begin(over), lambda: None)
        return self._show()

    def _begin(self, rows: tf.Tensor) -> None:
        """Begins new episodes in those rows, `[B]` bool."""
        draws = scramble(tf.range(self.batch_size), self._clock.read_value(), salt_of(self._seed))
        self._clock.assign_add(1)
        count = self._spawn.shape[0]
        which = tf.minimum(tf.cast(draws * count, tf.int32), count - 1)
        self._pose.assign(tf.where(rows, tf.gather(self._spawn, which), self._pose))
        self._steps.assign(tf.where(rows, 0, self._steps))
        self._over.assign(self._over.read_value() & ~rows)
        self._reward.assign(tf.where(rows, 0.0, self._reward))
        self._discount.assign(tf.where(rows, 1.0, self._discount))

    def _show(self) -> ts.TimeStep:
        kind = tf.where(self._steps == 0, ts.StepType.FIRST, ts.StepType.MID)
        frame = tf.gather(self._frame, self._pose.read_value())
        return ts.TimeStep(
            step_type=tf.where(self._over.read_value(), ts.StepType.LAST, kind),
            reward=self._reward.read_value(),
            discount=self._discount.read_value(),
            observation=tf.gather(self._frames, frame),
        )
