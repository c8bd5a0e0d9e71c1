"""An explorer: what to do when the goal has not been seen yet, for one who forgets nothing.

The shortest way to the right goal (`expert`) is no example to follow for an agent that does not
know the map: it turns towards what cannot be seen yet. The explorer knows what it could know. Once
the right goal has been in view it takes the shortest way there. Until then it goes where it will
see cells that it has not seen yet, the nearer the place and the more the cells the better:

    cost(q) = steps to the pose q - CURIOSITY log(cells in view from q that were never in view)

The tables here are what that takes: which cells are in view from each pose, and how far apart poses
are. `lemn_tf.navigation.guide` reads them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lemn_tf.mazes.maps import INNER, MOVES
from lemn_tf.mazes.render import lens

if TYPE_CHECKING:
    from lemn_tf.mazes.world import World

APART = 255
"""Steps between poses of which one cannot be reached from the other."""
_CHUNK = 8192


def in_view(world: World) -> np.ndarray:
    """Says which cells of its map are in view from every pose: floor, tiles, and the cell itself.

    Args:
        world: the tables.

    Returns:
        bool [P, cells], by row and column of the map, row by row; as wide as the largest map.

    Example:

    >>> from lemn_tf.mazes import build, imaze
    >>> world = build([imaze(5, "Y")])
    >>> seen = in_view(world)[world.spawn[0, 3]].reshape(7, 7)  # looking west, at the indicator
    >>> np.argwhere(seen).tolist()
    [[1, 1], [1, 2], [1, 3]]
    """
    extent = max(max(maze.shape) for maze in world.mazes)
    rays = lens(world.camera, 1 << (extent - 1).bit_length())
    place = np.stack([rays.floor_forward.ravel(), rays.floor_side.ravel()])
    cells, which = np.unique(place, axis=1, return_inverse=True)  # as seen from the agent
    order = np.argsort(which.ravel(), kind="stable")
    starts = np.searchsorted(which.ravel()[order], np.arange(cells.shape[1]))
    ahead, right = np.array(MOVES)[world.heading], np.array(MOVES)[(world.heading + 1) % 4]
    columns = np.array([maze.shape[1] for maze in world.mazes])[world.maze]
    seen = np.zeros((len(world), max(maze.cells.size for maze in world.mazes)), bool)
    for start in range(0, len(world), _CHUNK):
        part = slice(start, start + _CHUNK)
        pixels = world.frames[world.frame[part]].reshape(-1, len(order))[:, order]
        pose, cell = np.nonzero(np.logical_or.reduceat(pixels < INNER, starts, axis=1))
        there = world.cell[part][pose] + cells[0, cell, None] * ahead[part][pose]
        there += cells[1, cell, None] * right[part][pose]
        seen[start + pose, there[:, 0] * columns[part][pose] + there[:, 1]] = True
    seen[np.arange(len(world)), world.cell[:, 0] * columns + world.cell[:, 1]] = True
    return seen


def steps_between(world: World) -> np.ndarray:
    """Counts the fewest actions from every pose to every pose of its map; goals lead nowhere.

    Args:
        world: the tables.

    Returns:
        uint8 [P, Q], from each pose to the first, second, ... pose of its map; `APART` if there is
        no way, and beyond the poses of the map.

    Example:

    >>> from lemn_tf.mazes import build, imaze
    >>> world = build([imaze(5, "Y")])
    >>> steps_between(world)[world.spawn[0, 0], world.spawn[0]].tolist()
    [0, 1, 2, 1]
    """
    sizes = np.diff(world.offset)
    steps = np.full((len(world), sizes.max()), APART, np.uint8)
    for start, size in zip(world.offset, sizes, strict=False):
        following = world.next[start : start + size] - start
        reached, apart = np.eye(size, dtype=bool), np.zeros((size, size), np.uint8)
        while True:
            apart += ~reached
            wider = reached | reached[following].any(1)
            if np.array_equal(wider, reached):
                break
            reached = wider
        steps[start : start + size, :size] = np.where(reached, apart, APART)
    return steps
