"""The pose step in a graph against that of NumPy."""

import numpy as np
import tensorflow as tf

from lemn_tf.mazes import Rules, build, imazes, random_mazes
from lemn_tf.mazes.graph import PoseTables, step


def test_every_pose_and_action_leads_where_the_world_says():
    world = build([*imazes([5]), *random_mazes(3)], Rules(limit=20))
    tables = PoseTables.of(world)
    poses, actions = (part.ravel().astype(np.int32) for part in np.indices((len(world), 3)))
    moves = tf.function(lambda steps: step(tables, tf.constant(poses), tf.constant(actions), steps))
    for steps in (19, 20):
        found = moves(tf.constant(steps))
        for name, expected in world.step(poses, actions, steps)._asdict().items():
            np.testing.assert_array_equal(getattr(found, name), expected, name)
        assert found.cut.numpy().any() == (steps == 20)
        assert found.done.numpy().any()
