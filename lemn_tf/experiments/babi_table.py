"""The bAbI tables of the paper: their rows, columns and cells, and how a cell is trained."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lemn_tf import recipes, runs, training
from lemn_tf.experiments import babi
from lemn_tf.experiments.cells import Table
from lemn_tf.pipelines import babi as pipeline
from lemn_tf.pipelines import babi_generator

PAPER = (("original", 5), ("noisy", 5), ("original", 10), ("noisy", 10), ("large", 10))
"""The columns of the paper's two tables: data set and slots."""
COLUMNS = (*PAPER, ("original", 7), ("noisy", 7), ("large", 7))
"""Those, and three that the paper does not have."""


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of the tables: how it is trained, and what the paper reports in each column.

    `episodes` are those that train the policy and `seeds` the trainings, in each column; a row that
    has none for a column leaves it out.
    """

    name: str
    policy: str
    recipe: str
    episodes: tuple[int, ...]
    paper: tuple[float, ...]
    trainer: str | None = None
    shuffle: bool = False
    seeds: tuple[int, ...] = (1, 1, 1, 1, 1)

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
_HINDSIGHT = (240_000, *_usual(160_000)[1:], 160_000, 96_000, 80_000)
_ACTOR_CRITIC = (320_000, 160_000, 320_000, 160_000, 96_000)
_PAPER_STEPS = (200_000, 200_000, 200_000, 200_000, 400_000)
_THRICE = (3, 3, 3, 3, 3)
ROWS = {
    row.name: row
    for row in (
        Row("fifo", "fifo", "lemn", _usual(16_000), _FIFO, seeds=_THRICE),
        Row("st-lemn", "st-lemn", "lemn", _HINDSIGHT, _ST, seeds=(*_THRICE, 3, 3, 3)),
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

FILES = ("train", "valid", "reader_from")
"""The settings that are paths."""


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


class BabiTable(Table[BabiCell]):
    """Trains and scores the cells; see `lemn_tf.experiments.cells`.

    Args:
        out: folder for data, runs and logs.
        results: folder for the JSON files.
    """

    def data(self, variant: str, split: str) -> Path:
        """A file of stories."""
        return self.out / "data" / f"{variant}_{split}.txt"

    def prepare(self, given: str | Path | None = None) -> None:
        """Puts every file of stories in place.

        Args:
            given: a folder with files of the same names; those that it lacks are generated.
        """
        sizes = {"train": 1800, "valid": 200, "test": 1000}
        for variant in ("original", "noisy", "large"):
            for number, (split, size) in enumerate(sizes.items()):
                path = self.data(variant, split)
                source = Path(given) / path.name if given else None
                if source is not None and source.exists():
                    stories = pipeline.read_stories(source)
                    if path.exists() and pipeline.read_stories(path) != stories:
                        raise ValueError(
                            f"{path} holds other stories than {source}: the runs beside it were "
                            "made with them; choose another --out"
                        )
                    pipeline.write_stories(stories, path)
                elif not path.exists():
                    made = babi_generator.generate(variant, size, seed=1000 + number)
                    pipeline.write_stories(made, path)
                    path.with_suffix(".generated").touch()  # so that the report can say so

    def settings(self, cell: BabiCell) -> babi.Settings:
        """How a cell is trained."""
        entropy = ENTROPY.get((cell.row.trainer, cell.variant))
        settings = babi.Settings(
            train=str(self.data(cell.variant, "train")),
            valid=str(self.data(cell.variant, "valid")),
            policy=cell.row.policy,
            slots=cell.slots,
            recipe=cell.row.recipe,
            trainer=cell.row.trainer,
            shuffle=cell.row.shuffle,
            window=WINDOW.get(cell.variant),
            room=cell.variant in ROOMY,
            seed=cell.seed,
            reader_from=str(self.folder(cell.first)) if cell.first else None,
            changes={} if entropy is None else {"entropy": entropy},
        )
        return settings.lasting(cell.row.episodes[cell.column])

    def is_current(self, cell: BabiCell, record: dict[str, Any]) -> bool:
        return record["settings"]["episodes"] == self.settings(cell).episodes

    def is_ready(self, cell: BabiCell) -> bool:
        if cell.first is None:
            return True
        last = recipes.reader_phases(cell.row.recipe) - 1
        return training.reader_file(self.folder(cell.first), last).exists()

    def unfinished(self, cells: Sequence[BabiCell]) -> list[BabiCell]:
        """The cells without a result, and those whose readers they lack.

        A result may have come from elsewhere, without the run that others start from.
        """
        todo = {cell for cell in cells if not self.is_done(cell)}
        todo |= {cell.first for cell in todo if cell.first and not self.is_ready(cell)}
        return [cell for cell in cells if cell in todo]

    def train(self, cell: BabiCell, folder: Path) -> None:
        babi.train(self.settings(cell), folder)

    def record(self, cell: BabiCell, folder: Path, history: list[dict[str, Any]]) -> dict[str, Any]:
        model, scores = runs.load(folder), {}
        for split in ("valid", "test"):
            path = self.data(cell.variant, split)
            generated = path.with_suffix(".generated").exists()
            scores[split] = {**babi.score(model, path), "generated": generated}
        return {
            "row": cell.row.name,
            "variant": cell.variant,
            "slots": cell.slots,
            "seed": cell.seed,
            "paper": cell.row.reported(cell.column),
            "scores": scores,
            "settings": {  # files by their names: where they lay does not matter
                key: Path(value).name if key in FILES and value else value
                for key, value in dataclasses.asdict(self.settings(cell)).items()
            },
            "validation_curve": [
                [line["phase"], line["episodes"], round(100 * (1 - line["val_accuracy"]), 2)]
                for line in history
            ],
            "command": f"lemn reproduce babi --rows {cell.row.name} "
            f"--columns {cell.variant}-{cell.slots} --seeds {cell.seed + 1}",
        }

    def summary(self, record: dict[str, Any]) -> str:
        return f"test error {record['scores']['test']['error_rate']:.1f}%"
