"""Streams of courses: the maps that were asked for, whole, and no program too many."""

import itertools

import numpy as np
import pytest

from lemn_tf.mazes import build, imazes, random_mazes, shortest_ways, single_indicator_world
from lemn_tf.pipelines.frames import buckets, cut, groups, updates


@pytest.fixture(scope="module")
def world():
    return single_indicator_world(count=8)


def test_some_maps_of_a_world_are_those_maps(world):
    some, ways = cut(world.tables(), [5, 2, 5], poses=1000), shortest_ways(world)
    assert some.next.shape == (1000, 3)
    assert some.spawn.shape == (3, 4)
    np.testing.assert_array_equal(some.spawn[0], some.spawn[2])
    generator = np.random.default_rng(0)
    for row, maze in enumerate((5, 2, 5)):
        for heading in range(4):
            here, there = some.spawn[row, heading], world.spawn[maze, heading]
            for action in generator.integers(3, size=30):
                seen = some.frame[here]
                np.testing.assert_array_equal(some.frames[seen], world.frames[world.frame[there]])
                np.testing.assert_array_equal(some.shortest[here], ways[there])
                assert some.indicator[seen] == world.shows_indicator[world.frame[there]]
                assert some.red[here] == (world.mazes[maze].goal == "R")
                here, there = some.next[here, action], world.next[there, action]
                assert some.reward[here] == world.reward[there]
                assert some.done[here] == world.done[there]
                assert some.limit[here] == world.limit[maze]
    assert some.longest == 50


def test_frames_are_padded_to_few_sizes():
    tables = single_indicator_world(count=12).tables()
    sizes = {cut(tables, maps).frames.shape[0] for maps in ([0, 1, 2], [3, 4, 5], range(12))}
    assert sizes <= set(buckets(10_000, 128))


@pytest.mark.parametrize("size", [1, 3, 8, 99])
def test_groups_hold_every_map_once(world, size):
    found, shapes = [], set()
    for maps, course in groups(world.tables(), size):
        fresh = np.unique(maps)
        found += fresh.tolist()
        shapes.add((maps.shape[0], *course.next.shape))
        expected = cut(world.tables(), maps.numpy(), course.next.shape[0])
        for a, b in zip(course, expected, strict=True):
            np.testing.assert_array_equal(a, b)
    assert found == list(range(8))
    assert len(shapes) == 1


def test_a_world_of_several_limits_knows_the_longest():
    tables = build([*imazes([5]), *random_mazes(1, split="large")]).tables()
    assert [course.longest for _, course in groups(tables, 2)] == [50, 100]


def test_updates_go_on_from_any_number(world):
    tables = world.tables()

    def draw(number):
        course = cut(tables, [number % 8])
        return course.spawn[0, [number % 4]], course

    whole = list(itertools.islice(updates(draw), 6))
    for (starts, course), (expected, same) in zip(updates(draw, 4), whole[4:], strict=False):
        np.testing.assert_array_equal(starts, expected)
        np.testing.assert_array_equal(course.frames, same.frames)
        assert starts.shape == (1,)
    assert len({course.next.shape[0] for _, course in whole}) > 1


def test_empty_groups_are_refused(world):
    with pytest.raises(ValueError, match="at least one map in each course, got size=0"):
        groups(world.tables(), 0)
