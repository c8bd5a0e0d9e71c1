"""The guide: whoever follows it wins, knowing no more than what was in view."""

import numpy as np
import pytest
import tensorflow as tf

from lemn_tf.mazes import build, random_mazes
from lemn_tf.navigation.guide import advice
from lemn_tf.pipelines.frames import cut


@pytest.fixture(scope="module")
def world():
    return build([*random_mazes(12, seed=5), *random_mazes(3, seed=5, split="large")])


@pytest.fixture(scope="module")
def followed(world):
    """Walks that follow the guide's first best action from every start: course, poses, rewards."""
    course = cut(world.tables(explore=True), range(len(world.mazes)))
    guide = tf.function(lambda pose: advice(course, pose), autograph=False)
    poses = [course.spawn.reshape(-1)]
    padded = np.zeros([len(poses[0]), 100], np.int32)
    for t in range(99):
        padded[:, t:] = poses[-1][:, None]
        best = guide(tf.constant(padded)).numpy()[:, t]
        assert (best.any(-1) | course.done[poses[-1]]).all()
        poses.append(course.next[poses[-1], best.argmax(-1)])
    return course, np.stack(poses, axis=1)


def test_who_follows_it_wins_every_maze(world, followed):
    course, poses = followed
    ended = course.done[poses]
    assert ended[:, -1].all()
    np.testing.assert_array_equal(course.reward[poses[:, -1]], 1.0)
    assert (ended.argmax(1) < course.limit[poses[:, 0]]).all()


def test_it_takes_the_shortest_way_only_when_the_goal_has_been_in_view(followed):
    course, poses = followed
    best = advice(course, tf.constant(poses)).numpy()
    found = np.cumsum(course.goal[poses], axis=1) > 0
    np.testing.assert_array_equal(best[found], course.shortest[poses][found])
    assert (best != course.shortest[poses])[~found].any()


def test_what_comes_later_and_other_mazes_change_nothing(world, followed):
    course, poses = followed
    whole = advice(course, tf.constant(poses)).numpy()
    np.testing.assert_array_equal(advice(course, tf.constant(poses[:, :7])), whole[:, :7])
    alone = cut(world.tables(explore=True), [9])
    walk = poses[36:40] - course.spawn[9, 0] + alone.spawn[0, 0]
    np.testing.assert_array_equal(advice(alone, tf.constant(walk)), whole[36:40])
