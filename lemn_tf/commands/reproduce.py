"""`lemn reproduce`: every cell of the paper's tables, run by run, resumable."""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import os
import sys
import time
from pathlib import Path

from lemn_tf.commands import maze_reproduce
from lemn_tf.commands.common import commit, whole_number, words
from lemn_tf.experiments.cells import run_cells

COLUMNS = (("original", 5), ("noisy", 5), ("original", 10), ("noisy", 10), ("large", 10))
"""The columns of the paper's two tables: data set and slots."""


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of the tables: how it is trained, and what the paper reports in each column.

    `episodes` are those that train the policy and `seeds` the trainings, in each column.
    """

    name: str
    policy: str
    recipe: str
    episodes: tuple[int, ...]
    paper: tuple[float, ...]
    trainer: str | None = None
    shuffle: bool = False
    seeds: tuple[int, ...] = (1, 1, 1, 1, 1)


def _usual(episodes: int) -> tuple[int, ...]:
    """Fewer in the columns that learn sooner, or cost more."""
    return tuple(int(episodes * share) for share in (1, 1, 0.6, 0.6, 0.5))


_FIFO = (41.40, 50.20, 16.50, 44.10, 32.40)
_IM = (23.70, 40.20, 16.10, 18.90, 9.00)
_S = (20.30, 40.60, 5.00, 4.80, 5.10)
_SHUFFLED_S = (37.50, 41.60, 12.70, 38.40, 17.70)
_SHUFFLED_ST = (34.70, 40.60, 7.10, 38.00, 6.30)
_ST = (17.50, 11.70, 4.60, 3.90, 5.60)
_ACTOR_CRITIC = (320_000, 160_000, 320_000, 160_000, 96_000)
_PAPER_STEPS = (200_000, 200_000, 200_000, 200_000, 400_000)
_THRICE = (3, 3, 3, 3, 3)
ROWS = {
    row.name: row
    for row in (
        Row("fifo", "fifo", "lemn", _usual(16_000), _FIFO, seeds=_THRICE),
        Row("st-lemn", "st-lemn", "lemn", (240_000, *_usual(160_000)[1:]), _ST, seeds=_THRICE),
        Row("s-lemn", "s-lemn", "lemn", _usual(64_000), _S, seeds=_THRICE),
        Row("im-lemn", "im-lemn", "lemn", _usual(160_000), _IM, seeds=_THRICE),
        Row("st-lemn-a2c", "st-lemn", "lemn", _ACTOR_CRITIC, _ST, "a2c", seeds=_THRICE),
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

ENTROPY = {("a2c", "original"): 0.04}
"""The entropy bonus where it is not the recipe's, by trainer and data: see `docs/training.md`."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """One training: a row, a column and a seed."""

    row: Row
    variant: str
    slots: int
    seed: int

    @property
    def name(self) -> str:
        return f"{self.row.name}-{self.variant}-{self.slots}-seed{self.seed}"

    @property
    def first(self) -> Cell | None:
        """The cell whose reader this one starts from: readers are trained once."""
        name = "fifo" if self.row.recipe == "lemn" else "fifo-paper"
        slots = self.slots if self.row.recipe == "paper" else (10 if self.variant == "large" else 5)
        cell = Cell(ROWS[name], self.variant, slots, self.seed)
        return None if cell == self else cell


class Reproduce:
    """Trains and scores every cell of the paper's tables."""

    name = "reproduce"
    help = "run every cell of the paper's tables; resumable"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        tasks = parser.add_subparsers(dest="task", metavar="task", required=True)
        babi = tasks.add_parser("babi", help="the bAbI tables and the shuffling table")
        babi.add_argument(
            "--seeds", type=whole_number(1), help="runs a cell; default as many as its row has"
        )
        babi.add_argument(
            "--data",
            metavar="DIR",
            help="folder with {original,noisy,large}_{train,valid,test}.txt; what is missing is "
            "generated",
        )
        babi.add_argument("--rows", type=words, default=list(ROWS), help=", ".join(ROWS))
        babi.add_argument(
            "--columns", type=words, help="such as noisy-5,large-10; default all of them"
        )
        babi.add_argument("--jobs", type=whole_number(1), default=2, help="cells at a time")
        babi.add_argument("--out", default="runs/babi", metavar="DIR", help="for the runs")
        babi.add_argument("--results", default="results", metavar="DIR", help="for the tables")
        babi.add_argument(
            "--presets", metavar="DIR", help="also copy the best ST-LEMN models there as presets"
        )
        babi.add_argument("--report-only", action="store_true", help="only write the tables")
        babi.add_argument("--cell", help=argparse.SUPPRESS)
        maze = tasks.add_parser("maze", help="the I-Maze figure and the random-maze table")
        maze_reproduce.add_reproduce_arguments(maze)

    def run(self, arguments: argparse.Namespace) -> int | None:
        if arguments.task == "maze":
            return maze_reproduce.run_reproduce(arguments)
        return self._run_babi(arguments)

    def _run_babi(self, arguments: argparse.Namespace) -> int | None:
        from lemn_tf.commands import report

        out, results = Path(arguments.out), Path(arguments.results)
        cells = plan(arguments.rows, arguments.columns, arguments.seeds)
        if arguments.cell:
            cell = next(cell for cell in cells if cell.name == arguments.cell)
            run_cell(cell, out, results / "babi")
            return 0
        if not arguments.report_only:
            prepare_data(out / "data", arguments.data)
            failed = run_all(cells, arguments, out, results)
            if failed:
                print(f"lemn: {len(failed)} cells failed: {', '.join(failed)}", file=sys.stderr)
        report.write(results)
        print(f"wrote {results / 'babi.md'}")
        if arguments.presets:
            chosen = report.copy_presets(results, out, Path(arguments.presets))
            for path, errors in chosen.items():
                told = ", ".join(f"{name} {error:.2f}%" for name, error in errors.items())
                print(f"wrote {path}, the best by validation with names exchanged: {told}")
        return None if arguments.report_only or not failed else 1


def plan(rows: list[str], columns: list[str] | None, seeds: int | None = None) -> list[Cell]:
    """The cells to run, those first that others start from; without `seeds`, each row's own."""
    unknown = [row for row in rows if row not in ROWS]
    if unknown:
        raise ValueError(f"unknown rows {unknown}; known are {', '.join(ROWS)}")
    known = [f"{variant}-{slots}" for variant, slots in COLUMNS]
    unknown = [column for column in columns or () if column not in known]
    if unknown:
        raise ValueError(f"unknown columns {unknown}; known are {', '.join(known)}")
    wanted = {
        Cell(row, variant, slots, seed)
        for row in ROWS.values()
        if row.name in rows
        for number, (variant, slots) in enumerate(COLUMNS)
        if columns is None or f"{variant}-{slots}" in columns
        for seed in range(seeds or row.seeds[number])
    }
    wanted |= {cell.first for cell in wanted if cell.first}
    order = list(ROWS)
    return sorted(
        wanted,
        key=lambda c: (
            c.first is not None,
            order.index(c.row.name),
            c.seed,
            COLUMNS.index((c.variant, c.slots)),
        ),
    )


def prepare_data(folder: Path, given: str | None) -> None:
    """Puts every data file in place: the given ones, and generated ones for the rest."""
    from lemn_tf.pipelines import babi, babi_generator

    folder.mkdir(parents=True, exist_ok=True)
    sizes = {"train": 1800, "valid": 200, "test": 1000}
    for variant in ("original", "noisy", "large"):
        for number, (split, size) in enumerate(sizes.items()):
            path = folder / f"{variant}_{split}.txt"
            source = Path(given) / path.name if given else None
            if source is not None and source.exists():
                stories = babi.read_stories(source)
                if path.exists() and babi.read_stories(path) != stories:
                    raise ValueError(
                        f"{path} holds other stories than {source}: the runs beside it were made "
                        "with them; choose another --out"
                    )
                babi.write_stories(stories, path)
                continue
            if path.exists():
                continue
            # A generated file says so in its name's companion: the report tells them apart.
            babi.write_stories(babi_generator.generate(variant, size, seed=1000 + number), path)
            path.with_suffix(".generated").touch()


def settings_of(cell: Cell, out: Path):
    """How a cell is trained."""
    from lemn_tf.experiments import babi

    entropy = ENTROPY.get((cell.row.trainer, cell.variant))
    settings = babi.Settings(
        train=str(out / "data" / f"{cell.variant}_train.txt"),
        valid=str(out / "data" / f"{cell.variant}_valid.txt"),
        policy=cell.row.policy,
        slots=cell.slots,
        recipe=cell.row.recipe,
        trainer=cell.row.trainer,
        shuffle=cell.row.shuffle,
        window=WINDOW.get(cell.variant),
        room=cell.variant in ROOMY,
        seed=cell.seed,
        reader_from=str(out / "runs" / cell.first.name) if cell.first else None,
        changes={} if entropy is None else {"entropy": entropy},
    )
    return settings.lasting(cell.row.episodes[COLUMNS.index((cell.variant, cell.slots))])


def reader_of(cell: Cell, out: Path) -> Path:
    """The reader that a cell starts from, as the run that trains it will leave it."""
    from lemn_tf import recipes

    last = recipes.reader_phases(cell.row.recipe) - 1
    return out / "runs" / cell.first.name / f"reader-{last}.npz"


def run_cell(cell: Cell, out: Path, results: Path) -> None:
    """Trains and scores one cell, and writes its JSON."""
    from lemn_tf import runs
    from lemn_tf.experiments import babi

    folder, began = out / "runs" / cell.name, time.time()
    settings = settings_of(cell, out)
    if (results / f"{cell.name}.json").exists() and not is_done(cell, out, results):
        put_aside(folder)  # it was made with other phases
    babi.train(settings, folder)
    model = runs.load(folder)
    scores = {}
    for split in ("valid", "test"):
        path = out / "data" / f"{cell.variant}_{split}.txt"
        scores[split] = babi.score(model, path)
        scores[split]["generated"] = path.with_suffix(".generated").exists()
    history = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    curve = [
        [line["phase"], line["episodes"], round(100 * (1 - line["val_accuracy"]), 2)]
        for line in history
    ]
    record = {
        "row": cell.row.name,
        "variant": cell.variant,
        "slots": cell.slots,
        "seed": cell.seed,
        "paper": cell.row.paper[COLUMNS.index((cell.variant, cell.slots))],
        "scores": scores,
        "settings": {  # files by their names: where they lay is nobody's business
            key: Path(value).name if key in ("train", "valid", "reader_from") and value else value
            for key, value in dataclasses.asdict(settings).items()
        },
        "validation_curve": curve,
        "training_seconds": history[-1]["seconds"],
        "seconds": round(time.time() - began, 1),
        "commit": commit(),
        "command": f"lemn reproduce babi --rows {cell.row.name} "
        f"--columns {cell.variant}-{cell.slots} --seeds {cell.seed + 1}",
    }
    results.mkdir(parents=True, exist_ok=True)
    temporary = results / f".{cell.name}.json"
    temporary.write_text(json.dumps(record, indent=1) + "\n")
    os.replace(temporary, results / f"{cell.name}.json")


def put_aside(folder: Path) -> None:
    """Gives a folder, if there is one, a name that nothing looks for."""
    if folder.exists():
        number = next(n for n in itertools.count() if not folder.with_suffix(f".old{n}").exists())
        folder.rename(folder.with_suffix(f".old{number}"))


def is_done(cell: Cell, out: Path, results: Path) -> bool:
    """Whether a cell has a result, made with phases of the length they have now."""
    path = results / f"{cell.name}.json"
    if not path.exists():
        return False
    return json.loads(path.read_text())["settings"]["episodes"] == settings_of(cell, out).episodes


def run_all(cells: list[Cell], arguments, out: Path, results: Path) -> list[str]:
    """Runs the cells that have no result yet; returns the names of those that failed."""
    todo = [cell for cell in cells if not is_done(cell, out, results / "babi")]
    # A result may have come from elsewhere, without the run that others start from.
    readers = {cell.first for cell in todo if cell.first and not reader_of(cell, out).exists()}
    todo = [cell for cell in cells if cell in todo or cell in readers]

    def command(cell):
        given = ["--out", str(out), "--results", str(results)]
        given += ["--seeds", str(arguments.seeds)] if arguments.seeds else []
        return ["reproduce", "babi", "--cell", cell.name, *given]

    return run_cells(
        todo,
        results / "babi",
        out,
        command,
        told=lambda record: f"test error {record['scores']['test']['error_rate']:.1f}%",
        jobs=arguments.jobs,
        ready=lambda cell: cell.first is None or reader_of(cell, out).exists(),
        total=len(cells),
    )
