"""Maze maps as rows of characters: the `Maze` record, its checks, its file format.

The tasks (I-Maze and random mazes with an indicator) are those of Oh et al., "Control of Memory,
Active Perception, and Action in Minecraft" (ICML 2016). A map is a rectangle of characters:

    #  outer wall, 4 blocks high        S  where the agent starts
    +  inner wall, 2 blocks high        Y  yellow indicator tile: red is right
    .  floor                            L  lime indicator tile: cyan is right
                                        R  red goal tile      C  cyan goal tile

Rows run from north to south, columns from west to east, and a cell is `(row, column)`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from lemn_tf.files import replacing

Cell = tuple[int, int]

# Codes of cells in arrays. The floor codes are also the palette indices of `render`.
FLOOR, YELLOW, LIME, RED, CYAN, INNER, OUTER = range(7)
CODES = {
    "#": OUTER,
    "+": INNER,
    ".": FLOOR,
    "S": FLOOR,
    "Y": YELLOW,
    "L": LIME,
    "R": RED,
    "C": CYAN,
}
RIGHT_GOAL = {"Y": "R", "L": "C"}
NORTH, EAST, SOUTH, WEST = range(4)
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))  # (row, column) change of one step, by heading

_BYTES = np.full(256, 255, np.uint8)
for _char, _code in CODES.items():
    _BYTES[ord(_char)] = _code


@dataclass(frozen=True)
class Maze:
    """One map: its rows, the colour of its right goal, and a name.

    Args:
        rows: the map, one string for each row; see the module's text for the characters. The
            outermost cells must all be `#`, so that neither an agent nor a ray of light can leave.
        goal: the right goal, `"R"` or `"C"`. It must agree with the indicator.
        id: any name; used in files and messages only.

    Raises:
        ValueError: if the rows are not such a map. A right goal that cannot be reached is *not* an
            error (some of the original test maps have one): ask `goal_distance`.

    Example:

    >>> maze = Maze(("#####", "#YSR#", "#+.C#", "#####"), goal="R")
    >>> maze.spawn, maze.right, maze.wrong
    ((1, 2), (1, 3), (2, 3))
    """

    rows: tuple[str, ...]
    goal: str
    id: str = ""

    def __post_init__(self):
        object.__setattr__(self, "rows", tuple(self.rows))
        problem = _problem(self.rows, self.goal)
        if problem:
            name = f"maze {self.id!r}: " if self.id else "maze: "
            raise ValueError(name + problem)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, walls included."""
        return len(self.rows), len(self.rows[0])

    @cached_property
    def cells(self) -> np.ndarray:
        """The map as codes, uint8 [rows, columns]; read only."""
        text = "".join(self.rows).encode("ascii")
        cells = _BYTES[np.frombuffer(text, np.uint8)].reshape(self.shape)
        cells.flags.writeable = False
        return cells

    @property
    def spawn(self) -> Cell:
        """The cell the agent starts on."""
        return self._find("S")

    @property
    def indicator(self) -> str:
        """The colour of the indicator tile, `"Y"` or `"L"`."""
        return "Y" if self.goal == "R" else "L"

    @property
    def indicator_cell(self) -> Cell:
        """The cell of the indicator tile."""
        return self._find(self.indicator)

    @property
    def right(self) -> Cell:
        """The cell of the right goal."""
        return self._find(self.goal)

    @property
    def wrong(self) -> Cell:
        """The cell of the wrong goal."""
        return self._find("C" if self.goal == "R" else "R")

    def _find(self, char: str) -> Cell:
        for row, text in enumerate(self.rows):
            column = text.find(char)
            if column >= 0:
                return row, column
        raise AssertionError(char)  # the checks make sure that every character we look for is there

    def __str__(self) -> str:
        return "\n".join(self.rows)


def _problem(rows: tuple[str, ...], goal: str) -> str | None:
    """What is wrong with a map, in one sentence, or None."""
    if len(rows) < 3:
        return f"expected at least 3 rows (outer walls included), got {len(rows)}"
    for number, row in enumerate(rows):
        if not isinstance(row, str):
            return f"expected rows of text, row {number} is {row!r}"
        if len(row) != len(rows[0]):
            return f"ragged rows: row 0 has {len(rows[0])} cells, row {number} has {len(row)}"
        for column, char in enumerate(row):
            if char not in CODES:
                known = " ".join(CODES)
                return (
                    f"unknown character {char!r} at row {number}, column {column}; known: {known}"
                )
    text = "".join(rows)
    for what, chars in (
        ("spawn (S)", "S"),
        ("indicator (Y or L)", "YL"),
        ("red goal (R)", "R"),
        ("cyan goal (C)", "C"),
    ):
        count = sum(map(text.count, chars))
        if count != 1:
            return f"expected exactly one {what}, got {count}"
    edge = rows[0] + rows[-1] + "".join(row[0] + row[-1] for row in rows)
    if set(edge) != {"#"}:
        return "expected outer walls (#) on all four sides, got " + repr("".join(sorted(set(edge))))
    indicator = "Y" if "Y" in text else "L"
    if goal != RIGHT_GOAL[indicator]:
        return (
            f"expected goal {RIGHT_GOAL[indicator]!r} for indicator {indicator!r} "
            f"(yellow: red is right, lime: cyan is right), got {goal!r}"
        )
    return None


def distances(maze: Maze, start: Cell, blocked: Iterable[Cell] = ()) -> dict[Cell, int]:
    """Counts the moves (turns not counted) from one cell to every cell that can be reached.

    Args:
        maze: the map.
        start: the cell to start on.
        blocked: cells to treat as walls.

    Returns:
        A dict from cell to number of moves; cells that cannot be reached are missing.

    Example:

    >>> maze = Maze(("#####", "#YSR#", "#+.C#", "#####"), goal="R")
    >>> distances(maze, maze.spawn)[maze.wrong]
    2
    """
    far, queue, shut = {start: 0}, [start], set(blocked)
    for cell in queue:
        for move in MOVES:
            new = cell[0] + move[0], cell[1] + move[1]
            if new not in far and new not in shut and maze.rows[new[0]][new[1]] not in "#+":
                far[new] = far[cell] + 1
                queue.append(new)
    return far


def goal_distance(maze: Maze) -> int | None:
    """Counts the moves from the spawn to the right goal without stepping on the wrong one.

    Returns:
        The number of moves, or None if there is no such way.

    Example:

    >>> goal_distance(Maze(("#####", "#YSR#", "#+.C#", "#####"), goal="R"))
    1
    """
    return distances(maze, maze.spawn, blocked=[maze.wrong]).get(maze.right)


def load_jsonl(path: str | Path) -> list[Maze]:
    """Reads maps from a file with one JSON object on each line.

    Args:
        path: a file whose lines hold `rows` (a list of strings), `goal` (`"R"` or `"C"`) and,
            if wanted, `id`. Blank lines are skipped.

    Returns:
        The maps in the order of the file. Maps whose right goal is blocked are kept.

    Raises:
        ValueError: a line is not such a map; names file and line.

    Example:

    >>> import tempfile, os
    >>> from lemn_tf.mazes import imaze
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "maps.jsonl")
    ...     save_jsonl(path, [imaze(5, "L")])
    ...     load_jsonl(path) == [imaze(5, "L")]
    True
    """
    mazes = []
    text = Path(path).read_bytes().decode("utf-8-sig", errors="replace")
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}: "
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{where}expected one JSON object a line, got {error}") from None
        if not isinstance(record, dict):
            raise ValueError(f"{where}expected a JSON object, got {type(record).__name__}")
        missing = [key for key in ("rows", "goal") if key not in record]
        if missing:
            keys = ", ".join(sorted(record)) or "none"
            raise ValueError(f"{where}missing {' and '.join(missing)}; keys given: {keys}")
        if not isinstance(record["rows"], list):
            kind = type(record["rows"]).__name__
            raise ValueError(f"{where}expected rows to be a list of strings, got {kind}")
        try:
            mazes.append(Maze(tuple(record["rows"]), record["goal"], str(record.get("id", ""))))
        except ValueError as error:
            raise ValueError(f"{where}{error}") from None
    if not mazes:
        raise ValueError(f"{path}: expected at least one map, found none")
    return mazes


def save_jsonl(path: str | Path, mazes: Iterable[Maze]) -> None:
    """Writes maps to a file that `load_jsonl` reads.

    Args:
        path: the file to write, whole or not at all; an existing one is replaced.
        mazes: the maps.

    Example: see `load_jsonl`.
    """
    lines = [
        json.dumps({"id": maze.id, "goal": maze.goal, "rows": list(maze.rows)}) for maze in mazes
    ]
    with replacing(path) as temporary:
        temporary.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
