"""What is in view, against pictures of tiles; how far poses are apart, against the shortest way."""

import dataclasses

import numpy as np
import pytest

from lemn_tf.mazes import build, random_mazes, steps_to_goal
from lemn_tf.mazes.explorer import APART, in_view, steps_between
from lemn_tf.mazes.maps import FLOOR, YELLOW
from lemn_tf.mazes.render import Scene, render_batch


@pytest.fixture(scope="module")
def world():
    return build([*random_mazes(2, seed=3), *random_mazes(1, seed=3, split="large")])


def test_a_cell_is_in_view_where_a_tile_on_it_would_be_seen(world):
    seen, scene = in_view(world), Scene.of(world.mazes)
    for number, maze in enumerate(world.mazes):
        poses = np.flatnonzero(world.maze == number)
        where = world.maze[poses], world.cell[poses], world.heading[poses]
        plain = np.flatnonzero(maze.cells.ravel() == FLOOR)
        for cell in plain[:: max(len(plain) // 10, 1)]:
            cells = scene.cells.copy()
            cells[scene.base[number] + cell] = YELLOW
            pictures = render_batch(dataclasses.replace(scene, cells=cells), *where, world.camera)
            changed = (pictures != world.frames[world.frame[poses]]).any((1, 2))
            here = (world.cell[poses] == np.divmod(cell, maze.shape[1])).all(1)
            np.testing.assert_array_equal(seen[poses, cell], changed | here)


def test_steps_between_poses_are_those_of_the_shortest_way(world):
    steps, fewest = steps_between(world), steps_to_goal(world)
    for number in range(len(world.mazes)):
        start, end = world.offset[number : number + 2]
        goals = np.flatnonzero((world.done & (world.reward > 0))[start:end])
        nearest = steps[start:end, goals].min(1)
        way = fewest[start:end] < np.inf
        np.testing.assert_array_equal(nearest[way], fewest[start:end][way])
        assert (nearest[~way] == APART).all()
        assert (steps[start:end, end - start :] == APART).all()
        assert (np.diagonal(steps[start:end]) == 0).all()
        moved = steps[world.next[start:end], :].min(1)
        further = ~np.eye(end - start, steps.shape[1], dtype=bool) & (steps[start:end] < APART)
        np.testing.assert_array_equal(moved[further] + 1, steps[start:end][further])
