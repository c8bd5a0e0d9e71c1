"""Pictures of mazes from above, shown next to the agent's own view in an animation."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from lemn_tf.mazes.maps import INNER, OUTER, Cell, Maze
from lemn_tf.mazes.render import PALETTE

AGENT = (20, 20, 20)
TRAIL = (120, 150, 190)
_COLOURS = np.concatenate([PALETTE[:INNER], PALETTE[[5, 7]]])
_COLOURS[0] = 232, 232, 232


def top_down(
    maze: Maze,
    pose: tuple[int, int, int] | None = None,
    trail: Iterable[Cell] = (),
    scale: int = 12,
) -> np.ndarray:
    """Draws a maze from above, north up.

    Args:
        maze: the map.
        pose: (row, column, heading) of the agent, drawn as a triangle pointing where it looks;
            None to leave it out.
        trail: cells it has been to, each marked with a small square.
        scale: pixels for each cell; at least 4.

    Returns:
        uint8 [rows * scale, columns * scale, 3].

    Example:

    >>> from lemn_tf.mazes import imaze
    >>> top_down(imaze(5), pose=(1, 3, 2), scale=8).shape
    (56, 56, 3)
    """
    if scale < 4:
        raise ValueError(f"expected at least 4 pixels for each cell, got scale={scale}")
    picture = _COLOURS[maze.cells].repeat(scale, axis=0).repeat(scale, axis=1)
    for row, column in trail:
        _patch(picture, row, column, scale)[_dot(scale)] = TRAIL
    if pose is not None:
        row, column, heading = (int(value) for value in pose)
        inside = 0 <= row < maze.shape[0] and 0 <= column < maze.shape[1]
        if not inside or maze.cells[row, column] in (INNER, OUTER) or heading not in range(4):
            raise ValueError(f"expected a free cell and a heading 0 to 3, got pose {pose}")
        _patch(picture, row, column, scale)[_arrow(scale, heading)] = AGENT
    return picture


def _patch(picture: np.ndarray, row: int, column: int, scale: int) -> np.ndarray:
    return picture[row * scale : (row + 1) * scale, column * scale : (column + 1) * scale]


def _dot(scale: int) -> np.ndarray:
    off = np.abs(np.arange(scale) - (scale - 1) / 2)
    return np.maximum(off[:, None], off) <= scale / 8


def _arrow(scale: int, heading: int) -> np.ndarray:
    """A triangle that points north, turned to the heading."""
    middle = (np.arange(scale) + 0.5) / scale
    down, across = middle[:, None], np.abs(middle[None, :] - 0.5)
    return np.rot90((down > 0.12) & (down < 0.88) & (across < (down - 0.12) * 0.5), -heading)
