"""The two interchangeable kernels that cast rays: one compiled by numba, one in plain NumPy.

The agent only ever stands in the middle of a cell and looks along an axis, so the path of every
ray is known before any map is: `Lens` lists, for each column of the image, the cells its ray enters
and which rows a wall there would cover, and for each pixel below the horizon the cell of floor it
would show. Casting a ray is then a walk through a list until a wall comes, without arithmetic on
distances, and both kernels read the same lists: their images are equal, byte for byte.

What a column of pixels shows, from the bottom up: floor as far as the first wall; that wall; then,
if it is an inner wall (2 high) and far enough away to look over, the first outer wall behind it
(4 high); then the roof (at 4). Eyes are lower than inner walls, so the nearest inner wall hides all
the others.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from lemn_tf.mazes.maps import FLOOR, INNER, OUTER

# Palette indices that are not floor (those equal the codes of `maps`).
WALL = INNER  # inner wall facing north or south; +1: east or west; +2: outer instead of inner
ROOF = WALL + 4


class Lens(NamedTuple):
    """Where the rays of a camera go, seen from the agent: `forward` ahead, `side` to the right.

    W columns, H rows, K cells along the longest ray.
    """

    forward: np.ndarray  # int32 [W, K]: the cells each ray enters, in order
    side: np.ndarray  # int32 [W, K]
    front: np.ndarray  # bool [W, K]: through the face across the line of sight
    base: np.ndarray  # int32 [W, K]: the first row below the foot of a wall at that face
    inner_top: np.ndarray  # int32 [W, K]: the first row of an inner wall there
    outer_top: np.ndarray  # int32 [W, K]: the first row of an outer wall there
    floor_forward: np.ndarray  # int32 [H, W]: the cell of floor under each pixel
    floor_side: np.ndarray  # int32 [H, W]


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

    Example: see `lemn_tf.mazes.render_batch`.
    """
    batch, columns = len(origin), lens.base.shape[0]
    # The first wall (rows top1 to base) and the outer wall behind it (from top2), for every ray.
    base, top1, top2 = (np.zeros((batch, columns), np.int32) for _ in range(3))
    colour1, colour2 = (np.zeros((batch, columns), np.uint8) for _ in range(2))
    row, col = (a.ravel() for a in np.indices((batch, columns)))  # the rays still under way
    met = np.zeros(len(row), bool)  # ... that have met an inner wall
    for k in range(lens.base.shape[1]):
        if not len(row):
            break
        index = origin[row] + lens.forward[col, k] * ahead[row] + lens.side[col, k] * right[row]
        code = cells[index]
        end = code == OUTER
        face = np.where(lens.front[col, k], axis[row], 1 - axis[row])
        colour = (WALL + 2 * end + face).astype(np.uint8)
        hit = (code >= INNER) & ~met
        at = row[hit], col[hit]
        base[at], colour1[at] = lens.base[col[hit], k], colour[hit]
        top1[at] = np.where(end, lens.outer_top[col, k], lens.inner_top[col, k])[hit]
        at = row[end], col[end]
        top2[at], colour2[at] = lens.outer_top[col[end], k], colour[end]
        met |= hit
        row, col, met = row[~end], col[~end], met[~end]
    rows = np.arange(out.shape[1])[:, None]
    place = (
        origin[:, None, None]
        + lens.floor_forward * ahead[:, None, None]
        + lens.floor_side * right[:, None, None]
    )
    ground = rows >= base[:, None]
    picture = np.where(rows >= top2[:, None], colour2[:, None], np.uint8(ROOF))
    picture = np.where(rows >= top1[:, None], colour1[:, None], picture)
    out[...] = np.where(ground, cells[np.where(ground, place, 0)], picture)


def _cast_loops(cells, origin, ahead, right, axis, lens, out):
    """The same as `cast_numpy`, written as loops for numba."""
    forward, side, front, base_at, inner_top, outer_top, floor_forward, floor_side = lens
    columns, reach = base_at.shape
    rows = out.shape[1]
    base = np.empty(columns, np.int32)
    top1, colour1 = np.empty(columns, np.int32), np.empty(columns, np.int32)
    top2, colour2 = np.empty(columns, np.int32), np.empty(columns, np.int32)
    tiles = np.empty(columns, np.uint8)  # whether the ray crosses floor that is not plain
    for b in range(origin.shape[0]):
        here, da, dr, ax = origin[b], ahead[b], right[b], axis[b]
        for j in range(columns):
            k = 0
            code = tile = cells[here]
            while k < reach:
                code = cells[here + forward[j, k] * da + side[j, k] * dr]
                if code >= INNER:
                    break
                tile |= code
                k += 1
            tiles[j] = tile
            base[j] = base_at[j, k]
            colour1[j] = WALL + (ax if front[j, k] else 1 - ax) + (2 if code == OUTER else 0)
            top1[j] = top2[j] = outer_top[j, k] if code == OUTER else inner_top[j, k]
            colour2[j] = colour1[j]
            if code == INNER and top1[j] > 0:  # look over it
                while k < reach and cells[here + forward[j, k] * da + side[j, k] * dr] != OUTER:
                    k += 1
                top2[j] = outer_top[j, k]
                colour2[j] = WALL + (ax if front[j, k] else 1 - ax) + 2
        picture = out[b]
        for i in range(rows):
            for j in range(columns):
                pixel = colour2[j] if i >= top2[j] else ROOF
                pixel = colour1[j] if i >= top1[j] else pixel
                picture[i, j] = FLOOR if i >= base[j] else pixel
        for j in range(columns):
            if tiles[j]:
                for i in range(base[j], rows):
                    picture[i, j] = cells[here + floor_forward[i, j] * da + floor_side[i, j] * dr]


@functools.cache
def has_numba() -> bool:
    """Whether numba, which is optional, is installed and works with this NumPy."""
    try:
        import numba  # noqa: F401
    except ImportError:  # not installed, or built for another NumPy
        return False
    return True


@functools.cache
def _compiled():
    import numba

    try:
        return numba.njit(cache=True)(_cast_loops)
    except RuntimeError:  # no place for a cache: compile for this process only
        return numba.njit(_cast_loops)


def cast_numba(cells, origin, ahead, right, axis, lens: Lens, out) -> None:
    """Fills `out` with palette indices: the compiled kernel. Arguments as in `cast_numpy`."""
    _compiled()(cells, origin, ahead, right, axis, lens, out)
