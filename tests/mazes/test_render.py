"""The renderer against golden pictures, its twin, and an independent tracer of 3-D boxes."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lemn_tf.mazes import (
    PALETTE,
    Camera,
    Maze,
    Scene,
    build,
    imaze,
    random_maze,
    raycast,
    render_batch,
)
from lemn_tf.mazes.maps import CYAN, FLOOR, INNER, LIME, MOVES, OUTER, RED, YELLOW
from lemn_tf.mazes.raycast import ROOF, WALL

GOLDEN = Path(__file__).with_name("golden_views.txt")
needs_numba = pytest.mark.skipif(not raycast.has_numba(), reason="numba is not installed")


def all_poses(maze):
    cells = np.argwhere(maze.cells < INNER)
    return np.repeat(cells, 4, axis=0), np.tile(np.arange(4), len(cells))


def views_of(maze, camera=None, backend="auto"):
    cells, headings = all_poses(maze)
    maps = np.zeros(len(cells), int)
    return render_batch(Scene.of([maze]), maps, cells, headings, camera, backend)


# --- golden pictures ---------------------------------------------------------------------------

MAPS = {
    "imaze-7-Y": imaze(7, "Y"),
    "imaze-7-L": imaze(7, "L"),
    "imaze-200-Y": imaze(200, "Y"),
    "train-3": random_maze(3),
    "large-5": random_maze(5, "large"),
}


def golden():
    blocks = GOLDEN.read_text().strip().split("\n\n")
    for block in blocks:
        title, *rows = block.splitlines()
        name, row, column, heading = title.split()
        picture = np.array([[int(char) for char in line] for line in rows], np.uint8)
        yield name, (int(row), int(column)), int(heading), picture


@pytest.mark.parametrize("backend", ["numpy", pytest.param("numba", marks=needs_numba)])
def test_golden_pictures(backend):
    count = 0
    for name, cell, heading, expected in golden():
        got = render_batch(Scene.of([MAPS[name]]), [0], [cell], [heading], backend=backend)[0]
        np.testing.assert_array_equal(got, expected, err_msg=f"{name} {cell} {heading}")
        count += 1
    assert count == 10


# --- the two kernels ---------------------------------------------------------------------------


@needs_numba
@given(
    seed=st.integers(0, 10**6),
    split=st.sampled_from(["train", "large"]),
    height=st.integers(1, 40),
    width=st.integers(1, 40),
    fov=st.floats(20, 120),
    eye=st.floats(0.3, 1.95),
    horizon=st.floats(-0.2, 1.2),
)
@settings(max_examples=25, deadline=None)
def test_numpy_and_numba_give_the_same_image(seed, split, height, width, fov, eye, horizon):
    camera = Camera(height, width, fov, eye, horizon)
    maze = random_maze(seed, split)
    np.testing.assert_array_equal(views_of(maze, camera, "numpy"), views_of(maze, camera, "numba"))


@needs_numba
def test_many_maps_of_different_sizes_share_a_batch():
    mazes = [imaze(5), imaze(60, "L"), random_maze(1), random_maze(2, "large")]
    poses = [all_poses(maze) for maze in mazes]
    maps = np.repeat(np.arange(4), [len(cells) for cells, _ in poses])
    cells, headings = (np.concatenate(part) for part in zip(*poses, strict=True))
    order = np.random.default_rng(0).permutation(len(maps))
    batch = render_batch(Scene.of(mazes), maps[order], cells[order], headings[order])
    alone = np.concatenate([views_of(maze, backend="numpy") for maze in mazes])
    np.testing.assert_array_equal(batch, alone[order])


def test_without_numba_the_fallback_is_used(monkeypatch):
    monkeypatch.setattr(raycast, "has_numba", lambda: False)
    monkeypatch.setattr(raycast, "cast_numba", None)
    assert views_of(imaze(5)).shape == (52, 32, 32)


# --- an independent tracer ---------------------------------------------------------------------


def trace(maze, cell, heading, camera):
    """Shoots one 3-D ray a pixel at every wall as a box, by slabs. Slow and plain.

    Returns the palette picture, and where it is too close to call: two surfaces at one distance,
    the edge of a box, or a spot of floor on the edge of its cell.
    """
    forward, right = MOVES[heading], MOVES[(heading + 1) % 4]
    half = math.tan(math.radians(camera.fov / 2))
    u = ((np.arange(camera.width) + 0.5) / camera.width * 2 - 1) * half
    rows = (np.arange(camera.height) + 0.5) / camera.height - camera.horizon
    v = -rows * 2 * half * camera.height / camera.width
    v, u = np.meshgrid(v, u, indexing="ij")
    rays = np.stack([forward[0] + u * right[0], forward[1] + u * right[1], v], axis=-1)
    eye = np.array([cell[0] + 0.5, cell[1] + 0.5, camera.eye])
    near, colour = np.full(u.shape, np.inf), np.full(u.shape, 255)
    margin, graze = np.full(u.shape, np.inf), np.zeros(u.shape, bool)

    def meet(distance, what):
        nonlocal near, colour, margin
        gap = np.abs(np.where(np.isfinite(near), near, 1e9) - np.minimum(distance, 1e8))
        margin = np.minimum(margin, np.where(what == colour, np.inf, gap))
        closer = distance < near
        colour = np.where(closer, what, colour)
        near = np.minimum(near, distance)

    with np.errstate(divide="ignore", invalid="ignore"):
        for r, c in itertools.product(*map(range, maze.shape)):
            code = int(maze.cells[r, c])
            if code < INNER:
                continue
            low = np.array([r, c, 0.0])
            high = np.array([r + 1.0, c + 1.0, 4.0 if code == OUTER else 2.0])
            slabs = np.sort(np.stack([(low - eye) / rays, (high - eye) / rays]), axis=0)
            enter, leave = slabs[0], slabs[1]
            start, end = enter.max(-1), leave.min(-1)
            hit = (start < end) & (start > 0)
            graze |= np.abs(start - end) < 1e-6
            # axis 0 of the world runs north-south: a face met along it looks north or south
            face = WALL + enter.argmax(-1) + (2 if code == OUTER else 0)
            meet(np.where(hit, start, np.inf), face)
        ground = np.where(v < 0, -camera.eye / v, np.inf)
        spot = eye + np.where(np.isfinite(ground), ground, 0)[..., None] * rays
        inside = np.clip(np.floor(spot[..., :2]).astype(int), 0, np.array(maze.shape) - 1)
        tile = maze.cells[inside[..., 0], inside[..., 1]]
        meet(ground, np.where(tile < INNER, tile, FLOOR))
        meet(np.where(v > 0, (4.0 - camera.eye) / v, np.inf), np.full(u.shape, ROOF))
        edge = np.abs(spot[..., :2] - np.round(spot[..., :2])).min(-1) < 1e-6
    return colour, (margin < 1e-6) | graze | (edge & np.isfinite(ground))


@pytest.mark.parametrize(
    "camera",
    [Camera(), Camera(horizon=0.5), Camera(20, 27, fov=95, eye=1.2, horizon=0.6)],
    ids=["default", "level", "wide"],
)
def test_geometry_agrees_with_an_independent_tracer(camera):
    mazes = [imaze(9, "L"), random_maze(11), random_maze(12), random_maze(4, "large")]
    rng = np.random.default_rng(5)
    kinds = set()
    for maze in mazes:
        cells, headings = all_poses(maze)
        for pose in rng.choice(len(cells), 8, replace=False):
            cell, heading = cells[pose], headings[pose]
            got = render_batch(Scene.of([maze]), [0], [cell], [heading], camera)[0]
            expected, close = trace(maze, cell, heading, camera)
            assert close.mean() < 0.02
            np.testing.assert_array_equal(got[~close], expected[~close])
            kinds |= set(np.unique(got))
    assert kinds >= {FLOOR, WALL, WALL + 1, WALL + 2, WALL + 3}


def test_roof_and_both_wall_heights_are_seen():
    corridor = views_of(imaze(200))
    assert (corridor == ROOF).any()
    room = ("#.....#",)
    maze = Maze(("#######", *room * 4, "#..+..#", "#YS.RC#", "#######"), "R")
    ahead = render_batch(Scene.of([maze]), [0], [(1, 3)], [2], Camera(horizon=0.5))[0][:, 16]
    assert list(dict.fromkeys(ahead.tolist())) == [ROOF, WALL + 2, WALL, FLOOR]  # top to bottom


# --- what the agent needs to see ---------------------------------------------------------------

OPEN = Maze(("###########", "#....Y.S..#", "#R.......C#", "###########"), "R")


@pytest.mark.parametrize(("ahead", "pixels"), [(1, 48), (2, 124)])
def test_the_indicator_is_in_sight_one_and_two_cells_ahead(ahead, pixels):
    picture = render_batch(Scene.of([OPEN]), [0], [(1, 5 + ahead)], [3])[0]
    assert (picture == YELLOW).sum() == pixels


def test_a_level_camera_would_miss_it():
    level = Camera(horizon=0.5)
    counts = [
        (render_batch(Scene.of([OPEN]), [0], [(1, 5 + ahead)], [3], level) == YELLOW).sum()
        for ahead in (1, 2)
    ]
    assert counts == [0, 10]


def test_the_spawns_show_the_indicator():
    for maze, code in ((imaze(9, "Y"), YELLOW), (imaze(9, "L"), LIME), (random_maze(0), None)):
        code = code or (YELLOW if maze.indicator == "Y" else LIME)
        assert (render_batch(Scene.of([maze]), [0], [maze.spawn], [3]) == code).sum() >= 48


def test_tile_colours_are_far_apart():
    tiles = PALETTE[[YELLOW, LIME, RED, CYAN]].astype(float)
    others = np.delete(PALETTE, [YELLOW, LIME, RED, CYAN], axis=0).astype(float)
    for i, tile in enumerate(tiles):
        rest = np.concatenate([np.delete(tiles, i, axis=0), others])
        assert np.linalg.norm(rest - tile, axis=1).min() > 100
    greys = np.sort(others[:, 0])
    assert np.diff(greys).min() >= 20


def test_colouring():
    world = build([imaze(5)])
    picture = world.view(world.spawn[0, 3])
    assert picture.shape == (32, 32, 3)
    assert picture.dtype == np.uint8
    assert (picture == PALETTE[YELLOW]).all(-1).sum() == 124


@pytest.mark.parametrize(("height", "width"), [(1, 1), (33, 31), (64, 64), (20, 80)])
def test_any_size(height, width):
    scene, camera = Scene.of([imaze(5)]), Camera(height, width)
    assert render_batch(scene, [0], [(1, 3)], [2], camera).shape == (1, height, width)


# --- errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (([0], [(1, 3)], [4]), "headings 0 to 3"),
        (([0], [(2, 1)], [0]), "got a wall"),
        (([0], [(1, 9)], [0]), "inside their maps"),
        (([0], [(-1, 3)], [0]), "inside their maps"),
        (([0], [(1, 3), (1, 3)], [0]), r"got \[1\], \[2, 2\] and \[1\]"),
    ],
)
def test_bad_poses_are_refused(args, message):
    with pytest.raises(ValueError, match=message):
        render_batch(Scene.of([imaze(5)]), *args)


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="backend auto, numba or numpy; got 'cuda'"):
        render_batch(Scene.of([imaze(5)]), [0], [(1, 3)], [0], backend="cuda")
    with pytest.raises(ValueError, match="1 x 1 pixels, got 0 x 32"):
        Camera(height=0)
    with pytest.raises(ValueError, match="180 degrees, got 180"):
        Camera(fov=180)
    with pytest.raises(ValueError, match=r"between 0 and 2\.0, got 2"):
        Camera(eye=2)
    with pytest.raises(ValueError, match="got none"):
        Scene.of([])
