import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lemn_tf.mazes import (
    Camera,
    Rules,
    Scene,
    build,
    default_rules,
    imaze,
    imaze_rules,
    imazes,
    random_maze,
    random_mazes,
    render_batch,
    split_rules,
)
from lemn_tf.mazes.maps import INNER, MOVES

MAZES = (imaze(5), imaze(30, "L"), *random_mazes(5), random_maze(1, "large"))


@pytest.fixture(scope="module")
def world():
    return build(MAZES)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=20, deadline=None)
def test_stepping_is_what_the_map_says(world, seed):
    """Against a walker that reads the characters of the map."""
    rng = np.random.default_rng(seed)
    number = int(rng.integers(len(MAZES)))
    maze, rules = MAZES[number], default_rules(MAZES[number])
    cell, heading = maze.spawn, int(rng.integers(4))
    pose = world.spawn[number, heading]
    for steps, action in enumerate(rng.integers(0, 3, 200), start=1):
        if action == 0:
            ahead = cell[0] + MOVES[heading][0], cell[1] + MOVES[heading][1]
            cell = cell if maze.rows[ahead[0]][ahead[1]] in "#+" else ahead
        else:
            heading = (heading + (1 if action == 2 else -1)) % 4
        pose, reward, done, cut = world.step(pose, action, steps)
        assert world.maze[pose] == number
        assert tuple(world.cell[pose]) == cell
        assert world.heading[pose] == heading
        assert bool(done) == (cell in (maze.right, maze.wrong))
        assert bool(cut) == (not done and steps >= rules.limit)
        expected = {maze.right: 1.0, maze.wrong: -1.0}.get(cell, rules.step_reward)
        assert reward == np.float32(expected)
        if done:
            assert (world.next[pose] == pose).all()
            break


def test_shapes_and_types(world):
    poses = 4 * sum(int((maze.cells < INNER).sum()) for maze in MAZES)
    assert len(world) == poses == world.offset[-1]
    assert world.next.shape == (poses, 3)
    assert world.spawn.shape == (len(MAZES), 4)
    assert (world.maze[world.spawn] == np.arange(len(MAZES))[:, None]).all()
    assert (np.bincount(world.maze) == np.diff(world.offset)).all()
    tables = world.tables()
    kinds = {name: array.dtype for name, array in tables.items()}
    assert kinds["next"] == kinds["frame"] == kinds["limit"] == np.int32
    assert kinds["frames"] == kinds["palette"] == np.uint8
    assert kinds["reward"] == np.float32
    assert kinds["done"] == np.bool_
    assert world.indicator.tolist() == [int(maze.goal == "C") for maze in MAZES]


def test_frames_are_distinct_and_right(world):
    views = render_batch(Scene.of(MAZES), world.maze, world.cell, world.heading)
    np.testing.assert_array_equal(world.frames[world.frame], views)
    flat = world.frames.reshape(len(world.frames), -1)
    assert len(np.unique(flat, axis=0)) == len(flat)
    assert world.rgb.shape == (*world.frames.shape, 3)
    assert (world.rgb[7] == world.palette[world.frames[7]]).all()


def test_long_corridors_add_few_frames():
    assert len(build(imazes([5, 7, 9])).frames) == 32
    assert len(build(imazes([5, 7, 9, 200])).frames) < 50


def test_the_indicator_is_known_where_it_is_seen(world):
    in_sight = world.shows_indicator[world.frame]
    assert in_sight[world.spawn[:, 3]].all(), "every spawn has it to the west"
    assert not in_sight[world.spawn[0, 2]]


def test_camera_is_used():
    assert build([imaze(5)], camera=Camera(16, 24)).frames.shape[1:] == (16, 24)


def test_rules():
    assert imaze_rules(9) == Rules(-0.04, 50)
    assert imaze_rules(8) == Rules(-0.02, 100)
    assert [imaze_rules(n).limit for n in (40, 41, 100, 200)] == [100, 103, 250, 500]
    assert split_rules("test") == Rules(-0.04, 50)
    assert split_rules("large") == Rules(-0.02, 100)
    assert default_rules(random_maze(3)) == Rules()
    assert default_rules(random_maze(3, "large")) == Rules(-0.02, 100)
    assert default_rules(imaze(200)).limit == 500
    assert split_rules("test", far=25) == Rules(-0.02, 100)
    for split in ("test", "large"):
        assert default_rules(random_maze(3, split, far=7)) == split_rules(split, far=7)
    world = build([imaze(5), imaze(7)], [Rules(-1, 3), Rules(-2, 4)])
    assert world.limit.tolist() == [3, 4]
    assert world.reward[world.spawn[:, 0]].tolist() == [-1, -2]
    with pytest.raises(ValueError, match=r"as many rules as mazes \(2\), got 1"):
        build([imaze(5), imaze(7)], [Rules()])


def test_no_map_no_world():
    with pytest.raises(ValueError, match="at least one maze"):
        build([])
