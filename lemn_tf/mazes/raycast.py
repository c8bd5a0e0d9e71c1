"""The two interchangeable kernels that cast rays: one compiled by numba, one in plain NumPy.

The agent only ever stands in the middle of a cell and looks along an axis, so the path of every
ray is known before any map is: `Lens` lists, for each column of the image, the cells its ray enters
and at what depth, and for each pixel below the horizon the cell of floor it would show. Casting a
ray is then a walk through a list until a wall comes, and both kernels compare the very same
numbers: their images are equal, byte for byte.

What a column of pixels shows, from the bottom up: floor as far as the first wall; that wall; then,
if it is an inner wall (2 high) and far enough away to look over, the first outer wall behind it
(4 high); then the roof (at 4). Eyes are lower than inner walls, so the nearest inner wall hides all
the others.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from lemn_tf.mazes.maps import INNER, OUTER

# Palette indices that are not floor (those equal the codes of `maps`).
WALL = INNER  # inner wall facing north or south; +1: east or west; +2: outer instead of inner
ROOF = WALL + 4


class Lens(NamedTuple):
    """Where the rays of a camera go, seen from the agent: `forward` ahead, `side` to the right.

    W columns, H rows, K cells along the longest ray.
    """

    forward: np.ndarray  # int32 [W, K]: the cells each ray enters, in order
    side: np.ndarray  # int32 [W, K]
    depth: np.ndarray  # float64 [W, K]: how far ahead it enters them
    front: np.ndarray  # bool [W, K]: through the face across the line of sight
    floor_forward: np.ndarray  # int32 [H, W]: the cell of floor under each pixel
    floor_side: np.ndarray  # int32 [H, W]
    floor: np.ndarray  # float64 [H]: depth of that floor; infinite at and above the horizon
    inner: np.ndarray  # float64 [H]: an inner wall covers this row if it is no farther than this
    outer: np.ndarray  # float64 [H]: likewise for an outer wall


def cast_numpy(cells, origin, ahead, right, axis, lens: Lens, out) -> None:
    """Fills `out` with palette indices: the plain NumPy kernel.

    Args:
        cells: uint8 [C], the maps one after another, row by row.
        origin: int64 [B], index of the cell each camera stands in.
        ahead: int64 [B], how much the index changes with one cell ahead.
        right: int64 [B], likewise one cell to the right.
        axis: int64 [B], 0 for a camera looking north or south, 1 for east or west.
        lens: the rays.
        out: uint8 [B, H, W], written to.

    Returns:
        None.

    Example: see `lemn_tf.mazes.render_batch`.
    """
    batch, columns = len(origin), lens.depth.shape[0]
    first = np.full((batch, columns), np.inf)
    second = np.full((batch, columns), np.inf)
    first_colour = np.full((batch, columns), ROOF, np.uint8)
    second_colour = np.full((batch, columns), ROOF, np.uint8)
    row, col = (a.ravel() for a in np.indices((batch, columns)))  # the rays still under way
    met = np.zeros(len(row), bool)  # ... that have met an inner wall
    for k in range(lens.depth.shape[1]):
        if not len(row):
            break
        index = origin[row] + lens.forward[col, k] * ahead[row] + lens.side[col, k] * right[row]
        code = cells[index]
        depth = lens.depth[col, k]
        face = np.where(lens.front[col, k], axis[row], 1 - axis[row])
        colour = (WALL + 2 * (code == OUTER) + face).astype(np.uint8)
        hit = (code >= INNER) & ~met
        first[row[hit], col[hit]], first_colour[row[hit], col[hit]] = depth[hit], colour[hit]
        end = code == OUTER
        second[row[end], col[end]], second_colour[row[end], col[end]] = depth[end], colour[end]
        met |= hit
        row, col, met = row[~end], col[~end], met[~end]
    at = (
        origin[:, None, None]
        + lens.floor_forward * ahead[:, None, None]
        + lens.floor_side * right[:, None, None]
    )
    seen = lens.floor[:, None] < first[:, None, :]
    picture = np.where(second[:, None, :] <= lens.outer[:, None], second_colour[:, None, :], ROOF)
    low = first[:, None, :] <= lens.inner[:, None]
    picture = np.where(low, first_colour[:, None, :], picture)
    out[...] = np.where(seen, cells[np.where(seen, at, 0)], picture)


def _cast_loops(
    cells, origin, ahead, right, axis,
    forward, side, depth, front, floor_forward, floor_side, floor, inner, outer, out,
):  # fmt: skip
    """The same as `cast_numpy`, written as loops for numba."""
    columns, reach = depth.shape
    rows = floor.shape[0]
    first = np.empty(columns)
    second = np.empty(columns)
    first_colour = np.empty(columns, np.uint8)
    second_colour = np.empty(columns, np.uint8)
    horizon = 0  # the first row that shows floor if nothing is in the way
    while horizon < rows and floor[horizon] == np.inf:
        horizon += 1
    over = inner[0]  # beyond this depth the top row looks over an inner wall
    for b in range(origin.shape[0]):
        here, da, dr, ax = origin[b], ahead[b], right[b], axis[b]
        for j in range(columns):
            k = 0
            code = 0
            while k < reach:
                code = cells[here + forward[j, k] * da + side[j, k] * dr]
                if code >= INNER:
                    break
                k += 1
            face = ax if front[j, k] else 1 - ax
            first[j] = second[j] = depth[j, k]
            first_colour[j] = second_colour[j] = WALL + face + (2 if code == OUTER else 0)
            if code == INNER and depth[j, k] > over:
                while k < reach and cells[here + forward[j, k] * da + side[j, k] * dr] != OUTER:
                    k += 1
                face = ax if front[j, k] else 1 - ax
                second[j] = depth[j, k]
                second_colour[j] = WALL + face + 2
        for i in range(horizon):
            for j in range(columns):
                if first[j] <= inner[i]:
                    out[b, i, j] = first_colour[j]
                elif second[j] <= outer[i]:
                    out[b, i, j] = second_colour[j]
                else:
                    out[b, i, j] = ROOF
        for i in range(horizon, rows):
            far = floor[i]
            for j in range(columns):
                if far < first[j]:
                    out[b, i, j] = cells[here + floor_forward[i, j] * da + floor_side[i, j] * dr]
                else:
                    out[b, i, j] = first_colour[j]


@functools.cache
def has_numba() -> bool:
    """Tells whether numba is installed and fits the rest; it is optional.

    Returns:
        True if it is.

    Example:

    >>> has_numba() in (True, False)
    True
    """
    try:
        import numba  # noqa: F401
    except ImportError:  # missing, or built for another NumPy
        return False
    return True


@functools.cache
def _compiled():
    import numba

    try:
        return numba.njit(cache=True)(_cast_loops)
    except RuntimeError:  # nowhere to write a cache: compile for this process only
        return numba.njit(_cast_loops)


def cast_numba(cells, origin, ahead, right, axis, lens: Lens, out) -> None:
    """Fills `out` with palette indices: the compiled kernel.

    Args:
        cells: as in `cast_numpy`, and so are the others.
        origin: see there.
        ahead: see there.
        right: see there.
        axis: see there.
        lens: see there.
        out: see there.

    Returns:
        None.

    Example: see `lemn_tf.mazes.render_batch`.
    """
    _compiled()(cells, origin, ahead, right, axis, *lens, out)
