"""A table of trainings or scores: one job for each cell, several at a time, and no cell twice.

The result of a cell is the file `NAME.json`: its scores, how it was trained, how long that took,
the commit and the command. A cell that has one is not run again. A cell that was stopped goes on
from its checkpoint, so the same command resumes the whole table. Where the jobs run is the
scheduler's business: `lemn_tf.experiments.scheduling`. Cells that share what takes long to read are
run one after another in this process instead (`CellTable.run_here`).
"""

from __future__ import annotations

import abc
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from lemn_tf import loop
from lemn_tf.experiments.scheduling import Job, Scheduler
from lemn_tf.experiments.standing import View
from lemn_tf.files import write_atomically

PATIENCE = 60.0
"""Seconds that cells have to save what they have when a table is stopped."""


class Cell(Protocol):
    """One training of a table."""

    @property
    def name(self) -> str: ...


C = TypeVar("C", bound=Cell)


class CellTable(abc.ABC, Generic[C]):
    """What the cells of a table are and how one is trained and scored; the rest is done here.

    Args:
        out: folder for runs and logs.
        results: folder for the JSON files.
    """

    made_of = "trainings"
    """What its cells are, in words."""
    indent: int | None = 1
    """Of the JSON files; None for results with long lists of numbers."""

    def __init__(self, out: str | os.PathLike, results: str | os.PathLike):
        self.out, self.results = Path(out), Path(results)

    def train(self, cell: C, folder: Path) -> None:
        """Trains a cell, or goes on with its run in the folder; nothing if it is only scored."""

    @abc.abstractmethod
    def record(self, cell: C, folder: Path, history: list[dict[str, Any]]) -> dict[str, Any]:
        """The result of a trained cell: scores, settings, validation curve."""

    @abc.abstractmethod
    def summary(self, record: dict[str, Any]) -> str:
        """A result in a few words."""

    @abc.abstractmethod
    def command(self, cell: C) -> list[str]:
        """The arguments of `lemn` that ask for this cell, perhaps among others.

        They are also kept with the result, so they do not say where files lie.
        """

    def places(self, cell: C) -> list[str]:
        """The options that say where the files of a cell lie."""
        return ["--out", str(self.out), "--results", str(self.results.parent)]

    def process(self, cell: C) -> list[str]:
        """The arguments of `lemn` with which a job runs this cell alone."""
        return [*self.command(cell), *self.places(cell), "--cell", cell.name]

    def is_current(self, cell: C, record: dict[str, Any]) -> bool:
        """Whether a result was made with the settings that the cell has now."""
        return True

    def is_ready(self, cell: C) -> bool:
        """Whether a cell can begin; others wait."""
        return True

    def folder(self, cell: C) -> Path:
        """The folder of a cell's run."""
        return self.out / "runs" / cell.name

    def result(self, cell: C) -> Path:
        """The file of a cell's result."""
        return self.results / f"{cell.name}.json"

    def is_done(self, cell: C) -> bool:
        """Whether a cell has a result, made with the settings it has now."""
        path = self.result(cell)
        return path.exists() and self.is_current(cell, json.loads(path.read_text()))

    def unfinished(self, cells: Sequence[C]) -> list[C]:
        """The cells that are to be run, in the same order."""
        return [cell for cell in cells if not self.is_done(cell)]

    def run_cell(self, cell: C) -> None:
        """Trains and scores a cell in this process, and writes its result."""
        folder, began = self.folder(cell), time.time()
        if self.result(cell).exists() and not self.is_done(cell):
            put_aside(folder)  # it was made with other settings
        self.train(cell, folder)
        history = loop.history(folder)  # empty if nothing is trained
        record = {
            **self.record(cell, folder, history),
            **({"training_seconds": history[-1]["seconds"]} if history else {}),
            "seconds": round(time.time() - began, 1),
            "commit": commit(),
            "command": " ".join(["lemn", *self.command(cell)]),
        }
        self.results.mkdir(parents=True, exist_ok=True)
        write_atomically(self.result(cell), json.dumps(record, indent=self.indent) + "\n")

    def run_here(self, cells: Sequence[C], told: Callable[[str], None]) -> None:
        """Runs those cells that have no result in this process, one after another.

        Args:
            cells: the table, in the order in which they are run.
            told: called with a line for each.
        """
        for cell in self.unfinished(cells):
            self.run_cell(cell)
            told(f"{cell.name}: {self.summary(json.loads(self.result(cell).read_text()))}")

    def run(self, cells: Sequence[C], scheduler: Scheduler) -> list[str]:
        """Runs those cells that have no result, and says how each one came out.

        Args:
            cells: the table, in the order in which they are run as far as they are ready.
            scheduler: where they run.

        Returns:
            Names of the cells that left no result, or never could begin.
        """
        todo = self.unfinished(cells)
        said = self.forecast(len(cells), len(todo), scheduler.width)
        print(said, file=sys.stderr, flush=True)
        return _Course(self, todo, scheduler, len(cells)).run()

    def forecast(self, total: int, todo: int, jobs: int) -> str:
        """What is to be done and how long it may take, by what trainings took that are known.

        Args:
            total: cells of the table.
            todo: those that have no result.
            jobs: how many run at a time.
        """
        said = f"{total} {self.made_of}, {total - todo} have results"
        if not todo:
            return said
        records = [json.loads(path.read_text()) for path in self.results.glob("*.json")]
        known = [record["seconds"] for record in records if "seconds" in record]
        said += f"; {todo} to run, {jobs} at a time, logs in {self.out / 'logs'}"
        if not known:
            return f"{said}; an estimate of the time follows after the first"
        hours = sum(known) / len(known) * todo / jobs / 3600
        return f"{said}; about {hours:.1f} hours, if they take as long as those in {self.results}"


class _Course(Generic[C]):
    """A table while it runs; see `CellTable.run`."""

    def __init__(self, table: CellTable[C], todo: list[C], scheduler: Scheduler, total: int):
        self.table, self.todo, self.scheduler, self.total = table, todo, scheduler, total
        self.running: dict[str, tuple[C, float]] = {}
        self.failed: list[str] = []
        self.began, self.finished, self.before = time.time(), 0, total - len(todo)
        self.view = View()

    def run(self) -> list[str]:
        (self.table.out / "logs").mkdir(parents=True, exist_ok=True)
        try:
            while self.todo or self.running:
                waiting = self._start_what_can()
                if not (self.running or waiting):  # what is left waits for a cell that failed
                    self.failed += [cell.name for cell in self.todo]
                    break
                time.sleep(1)
                for name, well in self.scheduler.ended().items():
                    self._end(name, well)
                folders = {
                    name: self.table.folder(cell) for name, (cell, _) in self.running.items()
                }
                self.view.show(folders)
        except KeyboardInterrupt:
            self.scheduler.stop(PATIENCE)
            self.view.tell("stopped; finished cells are kept, and the same command again goes on")
            raise
        finally:
            self.view.close()
        return self.failed

    def _start_what_can(self) -> bool:
        """Starts cells that are ready; says whether another process is running others."""
        held = False
        for cell in [cell for cell in self.todo if self.table.is_ready(cell)]:
            if len(self.running) >= self.scheduler.queue:
                break
            if loop.is_claimed(self.table.folder(cell)):  # by a killed table, or another one
                held = True
                continue
            self.todo.remove(cell)
            log = self.table.out / "logs" / f"{cell.name}.log"
            self.scheduler.start(Job(cell.name, tuple(self.table.process(cell)), log))
            self.running[cell.name] = cell, time.time()
        return held

    def _end(self, name: str, well: bool) -> None:
        cell, began = self.running.pop(name)
        path = self.table.result(cell)
        if not (well and path.exists()):
            self.failed.append(name)
            self.view.tell(f"{name} failed: see {self.table.out / 'logs' / name}.log")
            return
        self.finished += 1
        each = (time.time() - self.began) / self.finished
        left = each * (len(self.todo) + len(self.running)) / 60
        self.view.tell(
            f"[{self.before + self.finished}/{self.total}] {name}: "
            f"{self.table.summary(json.loads(path.read_text()))} "
            f"({time.time() - began:.0f} s; about {left:.0f} min left)"
        )


def put_aside(folder: Path) -> None:
    """Renames a folder, if there is one, to `NAME.old0`, `NAME.old1` and so on."""
    if folder.exists():
        number = next(n for n in itertools.count() if not folder.with_suffix(f".old{n}").exists())
        folder.rename(folder.with_suffix(f".old{number}"))


def commit() -> str:
    """The commit that is checked out, or "unknown" outside a checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else "unknown"
