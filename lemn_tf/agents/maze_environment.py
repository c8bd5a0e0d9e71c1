"""MazeEnvironment: mazes as an in-graph environment of TF-Agents, over frames rendered before.

    environment = MazeEnvironment(imaze_world([5, 7, 9]), batch_size=64)
    time_step = environment.reset()
    time_step = environment.step(tf.zeros([64], tf.int32))  # everybody one cell ahead

For agents of TF-Agents that take frames. Our own training does not use it: it works on pose tables
and looks at each distinct frame once (`lemn_tf.navigation.rollout`).
"""

from __future__ import annotations

import tensorflow as tf
from tf_agents.specs import tensor_spec

from lemn_tf.agents.batched import BatchedEnvironment, Moved, variable
from lemn_tf.mazes import graph
from lemn_tf.mazes.world import ACTIONS, World
from lemn_tf.retention.chance import salt_of, scramble


class MazeEnvironment(BatchedEnvironment):
    """B walkers side by side; the rules are those of `lemn_tf.mazes.MazeEnv`.

    Observations are frames, uint8 `[H, W, 3]`; actions 0 forward, 1 left, 2 right. Map and heading
    of an episode are drawn evenly. A goal ends an episode with discount 0; the limit of steps ends
    it with discount 1, as TF-Agents marks an episode that was cut off. The step after the last one
    begins a new episode and ignores the action.

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

    def __init__(self, world: World, batch_size: int = 1, seed: int = 0) -> None:
        frame = tensor_spec.BoundedTensorSpec(world.rgb.shape[1:], tf.uint8, 0, 255, "frame")
        action = tensor_spec.BoundedTensorSpec([], tf.int32, 0, len(ACTIONS) - 1, "action")
        super().__init__(frame, action, batch_size)
        self._tables = graph.PoseTables.of(world)
        self._spawn = tf.constant(world.spawn.reshape(-1))
        self._frame, self._frames = tf.constant(world.frame), tf.constant(world.rgb)
        self._seed = tf.constant([seed, 0], tf.int32)
        self._pose = variable(tf.zeros([batch_size], tf.int32))
        self._clock = variable(tf.constant(0, tf.int64))

    @property
    def pose(self) -> tf.Tensor:
        """int32 `[B]`: the pose of each walker, as an index into the tables."""
        return self._pose.read_value()

    def _begin(self, rows: tf.Tensor) -> None:
        draws = scramble(tf.range(self.batch_size), self._clock.read_value(), salt_of(self._seed))
        self._clock.assign_add(1)
        count = self._spawn.shape[0]
        which = tf.minimum(tf.cast(draws * count, tf.int32), count - 1)
        self._pose.assign(tf.where(rows, tf.gather(self._spawn, which), self._pose))

    def _move(self, action: tf.Tensor, steps: tf.Tensor) -> Moved:
        moved = graph.step(self._tables, self.pose, action, steps)
        self._pose.assign(moved.pose)
        discount = tf.where(moved.done, 0.0, 1.0)
        return Moved(moved.reward, moved.done | moved.cut, discount)

    def _observation(self) -> tf.Tensor:
        return tf.gather(self._frames, tf.gather(self._frame, self.pose))
