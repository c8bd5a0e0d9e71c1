"""The pose step inside a TensorFlow graph: `World.step` by gathers, for many agents at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from lemn_tf.mazes.world import Step, World


class PoseTables(NamedTuple):
    """The tables of a world as constants; `limit` is that of the pose's map."""

    next: tf.Tensor
    reward: tf.Tensor
    done: tf.Tensor
    limit: tf.Tensor

    @classmethod
    def of(cls, world: World) -> PoseTables:
        """Makes them from a world."""
        arrays = (world.next, world.reward, world.done, world.limit[world.maze])
        return cls(*(tf.constant(array) for array in arrays))


def step(tables: Any, pose: tf.Tensor, action: tf.Tensor, steps: tf.Tensor) -> Step:
    """Takes actions.

    Args:
        tables: `PoseTables`, or anything else with such tensors.
        pose: int32 `[B]`, where the agents stand.
        action: int32 `[B]`, what they do.
        steps: int32, scalar or `[B]`, the steps of their episodes, this one included.

    Returns:
        A `Step` of tensors `[B]`.

    Example:

    >>> from lemn_tf.mazes import imaze_world
    >>> world = imaze_world(5, "Y")
    >>> pose = tf.constant(world.spawn[0])
    >>> moved = step(PoseTables.of(world), pose, tf.zeros([4], tf.int32), tf.constant(50))
    >>> moved.done.numpy().tolist(), moved.cut.numpy().tolist()
    ([False, False, False, False], [True, True, True, True])
    """
    new = tf.gather(tf.gather(tables.next, pose), action, batch_dims=1)
    done = tf.gather(tables.done, new)
    cut = ~done & (steps >= tf.gather(tables.limit, new))
    return Step(new, tf.gather(tables.reward, new), done, cut)
