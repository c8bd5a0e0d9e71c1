"""Makes maps: I-Mazes of any length and seeded random mazes with an indicator.

The random mazes follow the statistics of the 1,000 original training maps of Oh et al. (2016).
What holds for all of those is a rule here: no 2 x 2 block of cells is all wall, counting the wall
around the box (hence free corners), and the free cells are connected. Otherwise walls grow cell by
cell, with four weights chosen so that the shares match (original / ours, by size of the box):

    n                      5              6              7            Large
    open cells         .769 / .769    .767 / .764    .759 / .766    .87-.89 / .878
    border walls       .102 / .115    .108 / .102    .118 / .103
    inner walls        .459 / .438    .389 / .403    .359 / .360
    loops               3.0 / 3.2      6.0 / 5.7      9.4 / 9.5       43 / 44
    moves to goal       6.1 / 6.0      7.0 / 6.7      7.9 / 7.8       11 / 11.5
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from lemn_tf.mazes.maps import RIGHT_GOAL, Maze, goal_distance

TRAIN_LENGTHS = (5, 7, 9)
TEST_LENGTHS = (4, 6, 8, 10, 15, 20, 25, 30, 35, 40, 100, 200)
SPLITS = ("train", "test", "large")

# Size of the box -> relative frequency, and low, mode and high of the share of wall cells.
_SIZES = {
    "train": ({5: 0.23, 6: 0.32, 7: 0.45}, (0.14, 0.27, 0.30)),
    "large": ({8: 0.15, 9: 0.30, 10: 0.55}, (0.07, 0.13, 0.17)),
}
_SIZES["test"] = _SIZES["train"]
_LARGE_FROM = 8  # boxes of this size on are sparse, and their right goal is far away
_LARGE_DISTANCE = 9

_BORDER, _GROW, _DIAGONAL, _PLAIN = 0.75, 2.5, 0.1, 0.1  # see `_weight`


def imaze(length: int, indicator: str = "Y") -> Maze:
    """Makes the I-Maze of a length: two bars of 5 cells joined by a corridor.

    The indicator is at the left end of the top bar, the agent starts in the bar's middle, red is
    always at the bottom left and cyan at the bottom right. Originally trained on lengths 5, 7, 9.

    Args:
        length: rows from the top bar to the bottom bar, both counted; at least 2.
        indicator: `"Y"` (yellow: red is right) or `"L"` (lime: cyan is right).

    Example:

    >>> print(imaze(4, "L"))
    #######
    #L.S..#
    #++.++#
    #++.++#
    #R...C#
    #######
    """
    if length < 2:
        raise ValueError(f"expected a length of at least 2, got {length}")
    if indicator not in RIGHT_GOAL:
        raise ValueError(f"expected indicator 'Y' or 'L', got {indicator!r}")
    corridor = ("#++.++#",) * (length - 2)
    rows = ("#" * 7, f"#{indicator}.S..#", *corridor, "#R...C#", "#" * 7)
    return Maze(rows, RIGHT_GOAL[indicator], id=f"imaze-{length}-{indicator}")


def imazes(lengths: Sequence[int] = TRAIN_LENGTHS) -> list[Maze]:
    """Makes both I-Mazes (yellow, lime) of every length.

    Returns:
        `2 * len(lengths)` maps, yellow before lime.

    Example:

    >>> [maze.id for maze in imazes([5])]
    ['imaze-5-Y', 'imaze-5-L']
    """
    return [imaze(length, indicator) for length in lengths for indicator in RIGHT_GOAL]


def random_maze(
    seed: int, split: str = "train", size: int | tuple[int, int] | None = None, far: int = 0
) -> Maze:
    """Makes one random maze, "Single Goal with Indicator".

    A box of n x n cells with loops, and a stub of two cells on its right side: the indicator next
    to the box and the spawn beyond it, so the agent must walk over the indicator. The two goals
    are on free cells of the box. The right goal can always be reached without stepping on the
    wrong one. The same arguments give the same map on every machine.

    Args:
        seed: any integer; each split has maps of its own for every seed.
        split: `"train"` and `"test"` have n of 5 to 7, `"large"` 8 to 10, with fewer walls and the
            right goal at least 9 moves away.
        size: n, or the (lowest, highest) n to draw from evenly, in place of the split's own. Boxes
            of 8 and more are made as in `"large"`.
        far: cells of a bare corridor between the indicator and the box. It changes nothing else.

    Example:

    >>> print(random_maze(2))
    ###########
    #....R++++#
    #.+.+.++++#
    #.+...YS++#
    #C+++.++++#
    #.+...++++#
    #+++++++++#
    #+++++++++#
    ###########
    >>> random_maze(2) == random_maze(2), random_maze(2) == random_maze(2, "test")
    (True, False)
    """
    if split not in SPLITS:
        raise ValueError(f"expected split to be one of {', '.join(SPLITS)}; got {split!r}")
    rng = random.Random(f"{split}/{size}/{seed}")
    sizes = _sizes(split, size)
    canvas = max(*sizes, 10 if split == "large" else 7)
    name = f"{split}-{seed}" if size is None else f"{split}-{size}-{seed}"
    name += f"-far-{far}" if far else ""
    while True:
        n = rng.choices(list(sizes), list(sizes.values()))[0]
        shares = _SIZES["large" if n >= _LARGE_FROM else "train"][1]
        low, mode, high = shares
        walls = _walls(n, round(rng.triangular(low, high, mode) * n * n), rng)
        maze = _assemble(n, canvas, walls, rng, name, far)
        moves = goal_distance(maze)
        if moves is not None and (n < _LARGE_FROM or moves - far >= _LARGE_DISTANCE):
            return maze


def random_mazes(count: int, seed: int = 0, split: str = "train", **kwargs) -> list[Maze]:
    """Makes several different random mazes.

    Args:
        count: how many.
        seed: where to start; the maps of different seeds are drawn independently.
        split: as in `random_maze`.
        **kwargs: passed to `random_maze`.

    Returns:
        `count` maps, no two alike.

    Example:

    >>> mazes = random_mazes(3, seed=7)
    >>> len(mazes), mazes[0].id
    (3, 'train-7000000')
    """
    mazes: list[Maze] = []
    seen: set[tuple[str, ...]] = set()
    number = seed * 1_000_000
    while len(mazes) < count:
        maze = random_maze(number, split, **kwargs)
        number += 1
        if maze.rows not in seen:
            seen.add(maze.rows)
            mazes.append(maze)
    return mazes


def _sizes(split: str, size: int | tuple[int, int] | None) -> dict[int, float]:
    if size is None:
        return _SIZES[split][0]
    low, high = (size, size) if isinstance(size, int) else size
    if not 3 <= low <= high:
        raise ValueError(f"expected a box size of at least 3, or (lowest, highest); got {size!r}")
    return dict.fromkeys(range(low, high + 1), 1.0)


def _walls(n: int, count: int, rng: random.Random) -> set[int]:
    """Grows up to `count` walls in an n x n box, one cell at a time.

    Returns flat indices into the (n + 2) x (n + 2) square that includes the box's own walls.
    """
    stride = n + 2
    wall = [True] * stride * stride
    inside = [r * stride + c for r in range(1, n + 1) for c in range(1, n + 1)]
    for cell in inside:
        wall[cell] = False
    junction = (n // 2 + 1) * stride + n
    wall[junction + 1] = False  # the stub
    border = {i for i in inside if i // stride in (1, n) or i % stride in (1, n)}
    free = [cell for cell in inside if cell != junction]
    walls: set[int] = set()
    while len(walls) < count:
        weights = {cell: _weight(wall, cell, stride, border, walls) for cell in free}
        free = [cell for cell in free if weights[cell] > 0]
        if not free:
            break
        cell = rng.choices(free, [weights[cell] for cell in free])[0]
        free.remove(cell)
        wall[cell] = True
        if _reached(wall, junction, stride) == n * n - len(walls) - 1:
            walls.add(cell)
        else:
            wall[cell] = False
    return walls


def _weight(wall: list[bool], cell: int, stride: int, border: set[int], walls: set[int]) -> float:
    """How readily a free cell becomes a wall; 0 if it would complete a 2 x 2 block of wall.

    More likely where it breaks up open 2 x 2 blocks (at least `_PLAIN`) and where it makes an
    existing wall longer (`_GROW`); less likely at the border of the box (`_BORDER`) and where it
    touches a wall only at a corner (`_DIAGONAL`).
    """
    opens, diagonal = 0, False
    for up in (-stride, stride):
        for side in (-1, 1):
            a, b, c = wall[cell + up], wall[cell + side], wall[cell + up + side]
            if a and b and c:
                return 0.0
            if c and not (a or b):
                diagonal = True
            elif not (a or b or c):
                opens += 1
    near = sum(cell + step in walls for step in (1, -1, stride, -stride))
    weight = _PLAIN + opens
    if cell in border:
        weight *= _BORDER
    if near == 1:
        weight *= _GROW
    if diagonal:
        weight *= _DIAGONAL
    return weight


def _reached(wall: list[bool], start: int, stride: int) -> int:
    """Counts the cells of the box (not the stub) that can be reached from one of them."""
    seen, queue = {start}, [start]
    for cell in queue:
        for step in (1, -1, stride, -stride):
            new = cell + step
            if not wall[new] and new not in seen and new % stride != stride - 1:
                seen.add(new)
                queue.append(new)
    return len(seen)


def _assemble(
    n: int, canvas: int, walls: set[int], rng: random.Random, name: str, far: int
) -> Maze:
    """Puts the box in the top left of the canvas, adds corridor, stub and goals."""
    rows = [["#", *"+" * (canvas + 2 + far), "#"] for _ in range(canvas)]
    cells = []
    for r in range(n):
        for c in range(n):
            free = (r + 1) * (n + 2) + c + 1 not in walls
            rows[r][c + 1] = "." if free else "+"
            if free:
                cells.append((r, c + 1))
    indicator = rng.choice("YL")
    rows[n // 2][n + 1 : n + 3 + far] = *"." * far, indicator, "S"
    for (r, c), goal in zip(rng.sample(cells, 2), "RC", strict=True):
        rows[r][c] = goal
    side = ["#"] * (canvas + 4 + far)
    return Maze(tuple(map("".join, (side, *rows, side))), RIGHT_GOAL[indicator], id=name)
