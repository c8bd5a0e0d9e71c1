"""The shortest way: it wins, nothing is shorter, and what cannot be won is known."""

import numpy as np
import pytest

from lemn_tf.mazes import (
    TEST_LENGTHS,
    Maze,
    build,
    imaze,
    imazes,
    random_maze,
    random_mazes,
    shortest_ways,
    steps_to_goal,
    winnable,
)

BLOCKED = Maze(("#######", "#.YSCR#", "#######"), "R")


@pytest.fixture(scope="module")
def world():
    return build((imaze(5), imaze(30, "L"), *random_mazes(5), random_maze(1, "large")))


def test_the_shortest_way_wins(world):
    actions, steps = shortest_ways(world).argmax(1), steps_to_goal(world)
    for start in world.spawn.ravel():
        pose, count = start, 0
        while not world.done[pose]:
            pose, count = world.next[pose, actions[pose]], count + 1
        assert world.reward[pose] == 1
        assert count == steps[start]


def test_the_shortest_ways_are_all_that_come_closer(world):
    """Every marked action is one step nearer to the goal, and no other is."""
    steps, ways = steps_to_goal(world), shortest_ways(world)
    closer = steps[world.next] == steps[:, None] - 1
    on_the_way = np.isfinite(steps) & ~world.done
    np.testing.assert_array_equal(ways, closer & on_the_way[:, None])
    assert ways[on_the_way].any(1).all()
    assert (ways.sum(1) == 2).any()  # about-turns


def test_every_length_can_be_walked_with_a_look_at_the_indicator():
    world = build(imazes(TEST_LENGTHS))
    assert winnable(world).all()
    # looking west first costs at most three turns more
    assert (steps_to_goal(world)[world.spawn].max(1) + 3 <= world.limit).all()


def test_blocked_maps_cannot_be_won():
    world = build([BLOCKED, imaze(5)])
    assert winnable(world).tolist() == [[False] * 4, [True] * 4]
    assert np.isinf(steps_to_goal(world)[world.spawn[0]]).all()
