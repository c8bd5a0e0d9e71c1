import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lemn_tf.mazes import (
    distances,
    goal_distance,
    imaze,
    imazes,
    random_maze,
    random_mazes,
)
from lemn_tf.mazes.maps import INNER


@given(length=st.integers(2, 250), indicator=st.sampled_from("YL"))
@settings(max_examples=25, deadline=None)
def test_imaze_of_any_length(length, indicator):
    maze = imaze(length, indicator)
    assert maze.shape == (length + 2, 7)
    assert maze.spawn == (1, 3)
    assert maze.indicator_cell == (1, 1)
    assert maze.rows[length][1] == "R"
    assert maze.rows[length][5] == "C"
    assert maze.goal == {"Y": "R", "L": "C"}[indicator]
    assert goal_distance(maze) == length + 1
    assert (maze.cells < INNER).sum() == 10 + length - 2


def test_imaze_refuses_what_is_none():
    with pytest.raises(ValueError, match="at least 2, got 1"):
        imaze(1)
    with pytest.raises(ValueError, match="'Y' or 'L', got 'R'"):
        imaze(5, "R")
    assert len(imazes([4, 6])) == 4


def box_of(maze):
    row, column = maze.spawn
    n = column - 2
    return n, row, np.asarray(maze.cells)[1 : n + 1, 1 : n + 1] >= INNER


@given(seed=st.integers(0, 2**40), split=st.sampled_from(["train", "test", "large"]))
@settings(max_examples=60, deadline=None)
def test_random_mazes_obey_the_rules(seed, split):
    maze = random_maze(seed, split)
    n, row, wall = box_of(maze)
    assert n in ((8, 9, 10) if split == "large" else (5, 6, 7))
    assert maze.shape == ((12, 14) if split == "large" else (9, 11))
    assert row == n // 2 + 1
    assert maze.indicator_cell == (row, n + 1)
    assert goal_distance(maze) >= (9 if split == "large" else 2)
    assert len(distances(maze, maze.spawn)) == (maze.cells < INNER).sum(), "all cells hang together"
    assert not wall[[0, 0, -1, -1], [0, -1, 0, -1]].any(), "free corners"
    assert not wall[row - 1, n - 1], "free junction"
    padded = np.pad(wall, 1, constant_values=True)
    padded[row, n + 1] = False
    blocks = padded[:-1, :-1] & padded[1:, :-1] & padded[:-1, 1:] & padded[1:, 1:]
    assert not blocks.any(), "no 2 x 2 block of wall"
    assert maze == random_maze(seed, split)


def test_splits_and_seeds_differ():
    rows = {random_maze(seed, split).rows for seed in range(10) for split in ("train", "test")}
    assert len(rows) == 20


def test_random_mazes_are_distinct_and_seeded():
    mazes = random_mazes(50, seed=3)
    assert len({maze.rows for maze in mazes}) == 50
    assert mazes == random_mazes(50, seed=3)
    assert not {m.rows for m in mazes} & {m.rows for m in random_mazes(50, seed=4)}


def test_sizes_can_be_chosen():
    assert {box_of(random_maze(seed, size=4))[0] for seed in range(5)} == {4}
    assert {box_of(random_maze(seed, size=(6, 8)))[0] for seed in range(20)} == {6, 7, 8}
    assert random_maze(0, size=12).shape == (14, 16)
    with pytest.raises(ValueError, match=r"at least 3, .* got 2"):
        random_maze(0, size=2)
    with pytest.raises(ValueError, match="train, test, large; got 'small'"):
        random_maze(0, "small")


def statistics(mazes):
    """Means over maps: open share, border and inner walls, loops, moves to the right goal."""
    rows = []
    for maze in mazes:
        n, _, wall = box_of(maze)
        border = np.ones((n, n), bool)
        border[1:-1, 1:-1] = False
        free = maze.cells < INNER
        doors = (free[1:] & free[:-1]).sum() + (free[:, 1:] & free[:, :-1]).sum()
        loops = doors - free.sum() + 1
        shares = 1 - wall.mean(), wall[border].mean(), wall[~border].mean()
        rows.append((*shares, loops, goal_distance(maze)))
    return np.mean(rows, axis=0)


@pytest.mark.parametrize(
    ("size", "originals"),  # means over the 1,000 original training maps
    [
        (5, (0.769, 0.102, 0.459, 3.0, 6.1)),
        (6, (0.767, 0.108, 0.389, 6.0, 7.0)),
        (7, (0.759, 0.118, 0.359, 9.4, 7.9)),
    ],
)
def test_statistics_match_the_original_maps(size, originals):
    ours = statistics([random_maze(seed, size=size) for seed in range(200)])
    assert np.all(np.abs(ours - originals) < (0.02, 0.03, 0.04, 0.7, 0.8))


def test_statistics_of_large_match_the_original_maps():
    open_share, _, _, loops, moves = statistics([random_maze(s, "large") for s in range(100)])
    assert 0.86 < open_share < 0.90
    assert abs(loops - 43) < 4
    assert abs(moves - 11) < 1


def test_colours_are_even():
    goals = [random_maze(seed).goal for seed in range(300)]
    assert 110 < goals.count("R") < 190


@pytest.mark.parametrize("split", ["train", "large"])
def test_a_far_indicator_changes_nothing_but_the_corridor(split):
    for seed in range(5):
        near, far = random_maze(seed, split), random_maze(seed, split, far=9)
        row, column = near.indicator_cell
        assert far.indicator_cell == (row, column + 9)
        assert far.spawn == (row, column + 10)
        assert goal_distance(far) == goal_distance(near) + 9
        assert far.rows[row][column : column + 9] == "." * 9
        for number, (a, b) in enumerate(zip(near.rows, far.rows, strict=True)):
            assert len(b) == len(a) + 9
            assert number == row or b.rstrip("+#") == a.rstrip("+#")
        assert far.id == f"{near.id}-far-9"
