"""The bAbI tables of the paper: their rows, columns and cells."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

PAPER = (("original", 5), ("noisy", 5), ("original", 10), ("noisy", 10), ("large", 10))
"""The columns of the paper's two tables: data set and slots."""
COLUMNS = (*PAPER, ("original", 7), ("noisy", 7), ("large", 7))
"""Those, and three that the paper does not have."""


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of the tables: how it is trained, and what the paper reports in each column.

    `episodes` are those that train the policy and `seeds` the trainings, in each column; a row that
    has none for a column leaves it out. `hidden` is the width of h, if not the recipe's.
    """

    name: str
    policy: str
    recipe: str
    episodes: tuple[int, ...]
    paper: tuple[float, ...]
    trainer: str | None = None
    shuffle: bool = False
    seeds: tuple[int, ...] = (1, 1, 1, 1, 1)
    hidden: int | None = None

    def reported(self, column: int) -> float | None:
        """The paper's error in a column; None where it reports none."""
        return self.paper[column] if column < len(self.paper) else None


def _usual(episodes: int) -> tuple[int, ...]:
    """Fewer in the columns that learn sooner or take longer."""
    return tuple(int(episodes * share) for share in (1, 1, 0.6, 0.6, 0.5))


_FIFO = (41.40, 50.20, 16.50, 44.10, 32.40)
_IM = (23.70, 40.20, 16.10, 18.90, 9.00)
_S = (20.30, 40.60, 5.00, 4.80, 5.10)
_SHUFFLED_S = (37.50, 41.60, 12.70, 38.40, 17.70)
_SHUFFLED_ST = (34.70, 40.60, 7.10, 38.00, 6.30)
_ST = (17.50, 11.70, 4.60, 3.90, 5.60)
_HINDSIGHT = (240_000, *_usual(160_000)[1:], 160_000, 96_000, 160_000)
_ACTOR_CRITIC = (320_000, 160_000, 320_000, 160_000, 96_000)
_PAPER_STEPS = (200_000, 200_000, 200_000, 200_000, 400_000)
_THRICE = (3, 3, 3, 3, 3)
ROWS = {
    row.name: row
    for row in (
        Row("fifo", "fifo", "lemn", _usual(16_000), _FIFO, seeds=_THRICE),
        Row("st-lemn", "st-lemn", "lemn", _HINDSIGHT, _ST, seeds=8 * (3,)),
        Row("st-lemn-wide", "st-lemn", "lemn", _HINDSIGHT, _ST, seeds=8 * (3,), hidden=20),
        Row("s-lemn", "s-lemn", "lemn", _usual(64_000), _S, seeds=_THRICE),
        Row("im-lemn", "im-lemn", "lemn", _usual(160_000), _IM, seeds=_THRICE),
        Row("st-lemn-a2c", "st-lemn", "lemn", _ACTOR_CRITIC, _ST, "a2c", seeds=_THRICE),
        Row("st-lemn-both", "st-lemn", "lemn", _HINDSIGHT[:2], _ST, "both", seeds=(3, 3)),
        Row("fifo-paper", "fifo", "paper", _usual(16_000), _FIFO),
        Row("st-lemn-paper", "st-lemn", "paper", _PAPER_STEPS, _ST, seeds=(3, 3, 3, 3, 5)),
        Row("s-lemn-paper", "s-lemn", "paper", _PAPER_STEPS, _S),
        Row("im-lemn-paper", "im-lemn", "paper", _PAPER_STEPS, _IM),
        Row("shuffled-s-lemn", "s-lemn", "lemn", _usual(48_000), _SHUFFLED_S, shuffle=True),
        Row("shuffled-st-lemn", "st-lemn", "lemn", _usual(48_000), _SHUFFLED_ST, shuffle=True),
    )
}
"""Every row, in the order in which they are run."""

WINDOW = {"large": 30}
"""How many facts back the reader's random memories reach, where that is not the whole past."""

ROOMY = ("original",)
"""Where a policy for five slots learns with ten first: see `docs/training.md`."""

ENTROPY: dict[tuple[str | None, str], float] = {("a2c", "original"): 0.04}
"""The entropy bonus where it is not the recipe's, by trainer and data: see `docs/training.md`."""


@dataclasses.dataclass(frozen=True)
class BabiCell:
    """One training: a row, a column and a seed."""

    row: Row
    variant: str
    slots: int
    seed: int

    @property
    def name(self) -> str:
        return f"{self.row.name}-{self.variant}-{self.slots}-seed{self.seed}"

    @property
    def column(self) -> int:
        """The number of its column."""
        return COLUMNS.index((self.variant, self.slots))

    @property
    def first(self) -> BabiCell | None:
        """The cell whose reader this one starts from: readers are trained once."""
        name = "fifo" if self.row.recipe == "lemn" else "fifo-paper"
        slots = self.slots if self.row.recipe == "paper" else (10 if self.variant == "large" else 5)
        cell = BabiCell(ROWS[name], self.variant, slots, self.seed)
        return None if cell == self else cell


def plan(
    rows: Sequence[str], columns: Sequence[str] | None = None, seeds: int | None = None
) -> list[BabiCell]:
    """The cells to run, those first that others start from.

    Args:
        rows: names in `ROWS`.
        columns: such as "noisy-5"; None for all.
        seeds: trainings of each cell; None for as many as its row has.
    """
    names = [f"{variant}-{slots}" for variant, slots in COLUMNS]
    for what, wanted, known in (("rows", rows, list(ROWS)), ("columns", columns or (), names)):
        unknown = [name for name in wanted if name not in known]
        if unknown:
            raise ValueError(f"unknown {what} {unknown}; known are {', '.join(known)}")
    cells = {
        BabiCell(row, variant, slots, seed)
        for row in ROWS.values()
        if row.name in rows
        for number, (variant, slots) in enumerate(COLUMNS[: len(row.episodes)])
        if columns is None or names[number] in columns
        for seed in range(seeds or row.seeds[number])
    }
    if not cells:
        raise ValueError(f"{', '.join(rows)} is not trained on {', '.join(columns or names)}")
    cells |= {cell.first for cell in cells if cell.first}
    order = list(ROWS)
    return sorted(
        cells, key=lambda c: (c.first is not None, order.index(c.row.name), c.seed, c.column)
    )
