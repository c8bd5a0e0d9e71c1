"""First-person pictures of mazes: what an agent in a cell sees along its heading.

Pictures are arrays of palette indices (`PALETTE`), one byte for each pixel. The world is grey stone
in flat colours. As in Minecraft, faces looking north or south are brighter than those looking east
or west. Outer walls are a little darker than inner ones, so that the two heights can be told apart
without texture. Nothing fades with distance, so the middle of a long corridor looks the same
however long it is.

**The view is tilted down, which is our choice.** With a level camera (eye 1.62 high, 70 degrees) a
tile on the cell ahead is not in the picture at all, and one two cells ahead covers a few pixels.
Oh et al. (2016) gave their agents actions to look down; LEMN's agents have only forward, left and
right, so they would never see the indicator. We move the horizon up to 1/8 of the picture's height
below its top (`Camera.horizon`; 1/2 is level). That spans +10 to -51 degrees: the upper edge is
where a camera pitched by 25 degrees would have it, but upright lines stay upright and one ray a
column is enough. The tile one cell ahead then covers 48 pixels of 32 x 32, two cells ahead 124,
and a strip above the horizon still shows where walls end.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lemn_tf.mazes import raycast
from lemn_tf.mazes.maps import INNER, MOVES, Maze
from lemn_tf.mazes.raycast import Lens

INNER_HEIGHT, OUTER_HEIGHT = 2.0, 4.0  # in blocks; the roof lies on the outer walls

PALETTE = np.array(
    [
        (176, 176, 176),  # 0 floor
        (240, 220, 40),  # 1 yellow indicator
        (70, 200, 30),  # 2 lime indicator
        (215, 40, 35),  # 3 red goal
        (0, 175, 215),  # 4 cyan goal
        (142, 142, 142),  # 5 inner wall, facing north or south
        (116, 116, 116),  # 6 inner wall, facing east or west
        (88, 88, 88),  # 7 outer wall, facing north or south
        (66, 66, 66),  # 8 outer wall, facing east or west
        (36, 36, 36),  # 9 roof
    ],
    np.uint8,
)
PALETTE.flags.writeable = False


@dataclass(frozen=True)
class Camera:
    """The agent's camera.

    Args:
        height: rows of pixels.
        width: columns of pixels.
        fov: horizontal field of view in degrees. Pixels are square.
        eye: height of the eye in blocks; below the inner walls' 2.
        horizon: where the horizon is, as a share of the height from the top. 1/2 would be a level
            view; see the module's text for why it is not.

    Example:

    >>> Camera(width=64, height=48).fov
    70.0
    """

    height: int = 32
    width: int = 32
    fov: float = 70.0
    eye: float = 1.62
    horizon: float = 0.125

    def __post_init__(self):
        if self.height < 1 or self.width < 1:
            raise ValueError(f"expected at least 1 x 1 pixels, got {self.height} x {self.width}")
        if not 0 < self.fov < 180:
            raise ValueError(f"expected a field of view between 0 and 180 degrees, got {self.fov}")
        if not 0 < self.eye < INNER_HEIGHT:
            raise ValueError(f"expected the eye between 0 and {INNER_HEIGHT}, got {self.eye}")


@dataclass(frozen=True)
class Scene:
    """Maps laid out for the renderer, one after another in one array.

    Args:
        cells: uint8 [C], codes of `maps`, row by row.
        base: int64 [M], where each map starts.
        stride: int64 [M], columns of each map.
        extent: the larger side of the largest map.

    Example:

    >>> from lemn_tf.mazes import imaze
    >>> Scene.of([imaze(5), imaze(7)]).base.tolist()
    [0, 49]
    """

    cells: np.ndarray
    base: np.ndarray
    stride: np.ndarray
    extent: int

    @classmethod
    def of(cls, mazes: Sequence[Maze]) -> Scene:
        """Lays out maps."""
        if not mazes:
            raise ValueError("expected at least one maze, got none")
        sizes = np.array([maze.cells.size for maze in mazes], np.int64)
        return cls(
            cells=np.concatenate([maze.cells.ravel() for maze in mazes]),
            base=np.cumsum(sizes) - sizes,
            stride=np.array([maze.shape[1] for maze in mazes], np.int64),
            extent=max(max(maze.shape) for maze in mazes),
        )


@functools.lru_cache(maxsize=32)
def lens(camera: Camera, reach: int) -> Lens:
    """Traces the rays of a camera through an endless grid.

    Args:
        camera: the camera.
        reach: how many cells ahead the rays must go at least.

    Returns:
        The `Lens`, to be shared by all maps no larger than `reach`.

    Example:

    >>> lens(Camera(width=2, height=2), reach=8).forward[:, :2].tolist()
    [[1, 1], [1, 1]]
    """
    pixel = 2 * math.tan(math.radians(camera.fov) / 2) / camera.width
    slopes = (np.arange(camera.width) + 0.5 - camera.width / 2) * pixel  # cells right per ahead
    paths = [_path(slope, reach) for slope in slopes]
    longest = max(map(len, paths))
    path = np.array([p + p[-1:] * (longest - len(p)) for p in paths])  # [W, K, 4]

    down = (np.arange(camera.height) + 0.5 - camera.horizon * camera.height) * pixel
    below, above = down > 0, down < 0
    inf = np.full(camera.height, np.inf)
    # Some pixels look exactly at an edge between two cells. A tiny shift assigns them all to the
    # near side, however a machine rounds.
    near, far = 1 - 1e-9, 1 + 1e-9
    # Depth of the floor seen in each row, and up to what depth a wall covers the row.
    floor = np.divide(near * camera.eye, down, out=inf.copy(), where=below)
    inner = np.divide(far * (INNER_HEIGHT - camera.eye), -down, out=inf.copy(), where=above)
    outer = np.divide(far * (OUTER_HEIGHT - camera.eye), -down, out=inf.copy(), where=above)
    spot = np.where(floor < 4 * reach, floor, 0.0)  # farther ones are always hidden
    return Lens(
        forward=path[..., 0].astype(np.int32),
        side=path[..., 1].astype(np.int32),
        front=path[..., 3] > 0,
        base=_count(floor >= path[..., 2, None]),
        inner_top=_count(inner < path[..., 2, None]),
        outer_top=_count(outer < path[..., 2, None]),
        floor_forward=np.repeat(np.floor(spot + 0.5).astype(np.int32)[:, None], camera.width, 1),
        floor_side=np.floor(spot[:, None] * slopes + 0.5).astype(np.int32),
    )


def _count(rows: np.ndarray) -> np.ndarray:
    return rows.sum(-1, dtype=np.int32)


def _path(slope: float, reach: int) -> list[tuple[float, float, float, float]]:
    """The cells a ray enters, (forward, side, depth, through the front face), up to `reach`."""
    forward, side, step = 0, 0, 1 if slope > 0 else -1
    path: list[tuple[float, float, float, float]] = []
    while forward < reach and abs(side) < reach:
        front = forward + 0.5  # depth of the next face across, and of the next face along
        along = (abs(side) + 0.5) / abs(slope) if slope else math.inf
        if front <= along:
            forward += 1
        else:
            side += step
        path.append((forward, side, min(front, along), float(front <= along)))
    return path


def render_batch(
    scene: Scene,
    maze: np.ndarray,
    cell: np.ndarray,
    heading: np.ndarray,
    camera: Camera | None = None,
    backend: str = "auto",
) -> np.ndarray:
    """Renders a batch of views.

    Args:
        scene: the maps.
        maze: int [B], which map.
        cell: int [B, 2], row and column of the cell to stand in.
        heading: int [B], 0 north, 1 east, 2 south, 3 west.
        camera: the camera; the default one if None.
        backend: `"numba"`, `"numpy"`, or `"auto"` for numba if it is installed. The image is the
            same.

    Returns:
        uint8 [B, H, W], indices into `PALETTE`.

    Example:

    >>> from lemn_tf.mazes import imaze
    >>> views = render_batch(Scene.of([imaze(5)]), [0, 0], [(1, 3), (1, 3)], [2, 3])
    >>> views.shape, (views == 1).any((1, 2)).tolist()  # the yellow tile is to the west
    ((2, 32, 32), [False, True])
    """
    camera = camera or Camera()
    if backend not in ("auto", "numba", "numpy"):
        raise ValueError(f"expected backend auto, numba or numpy; got {backend!r}")
    if backend == "auto":
        backend = "numba" if raycast.has_numba() else "numpy"
    maze, heading = np.asarray(maze, np.int64), np.asarray(heading, np.int64)
    cell = np.asarray(cell, np.int64)
    if cell.shape != (len(maze), 2) or heading.shape != maze.shape:
        raise ValueError(
            f"expected maze [B], cell [B, 2] and heading [B], got {list(maze.shape)}, "
            f"{list(cell.shape)} and {list(heading.shape)}"
        )
    stride = scene.stride[maze]
    origin = scene.base[maze] + cell[:, 0] * stride + cell[:, 1]
    if np.any((heading < 0) | (heading > 3)):
        raise ValueError("expected headings 0 to 3 (north, east, south, west)")
    if np.any(cell < 0) or np.any(origin >= len(scene.cells)) or np.any(cell[:, 1] >= stride):
        raise ValueError("expected cells inside their maps")
    if np.any(scene.cells[origin] >= INNER):
        raise ValueError("expected free cells to stand in, got a wall")
    moves = np.array(MOVES, np.int64)
    ahead = moves[heading, 0] * stride + moves[heading, 1]
    right = moves[(heading + 1) % 4, 0] * stride + moves[(heading + 1) % 4, 1]
    reach = 1 << (scene.extent - 1).bit_length()  # few different lenses
    out = np.empty((len(maze), camera.height, camera.width), np.uint8)
    kernel = raycast.cast_numba if backend == "numba" else raycast.cast_numpy
    kernel(scene.cells, origin, ahead, right, heading % 2, lens(camera, reach), out)
    return out
