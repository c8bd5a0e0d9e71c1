"""A table of trainings: one process for each cell, several at a time, and no cell twice.

The result of a cell is the file `NAME.json`: its scores, how it was trained, how long that took,
the commit and the command. A cell that has one is not run again. A cell that was stopped goes on
from its checkpoint, so the same command resumes the whole table.
"""

from __future__ import annotations

import abc
import contextlib
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from lemn_tf.files import write_atomically

LEMN = (sys.executable, "-m", "lemn_tf.cli")
"""How the process of a cell is started."""


class Cell(Protocol):
    """One training of a table."""

    @property
    def name(self) -> str: ...


C = TypeVar("C", bound=Cell)


class Table(abc.ABC, Generic[C]):
    """What the cells of a table are and how one is trained and scored; the rest is done here.

    Args:
        out: folder for runs and logs.
        results: folder for the JSON files.
    """

    def __init__(self, out: str | os.PathLike, results: str | os.PathLike):
        self.out, self.results = Path(out), Path(results)

    @abc.abstractmethod
    def train(self, cell: C, folder: Path) -> None:
        """Trains a cell, or goes on with its run in the folder."""

    @abc.abstractmethod
    def record(self, cell: C, folder: Path, history: list[dict[str, Any]]) -> dict[str, Any]:
        """The result of a trained cell: scores, settings, validation curve, command."""

    @abc.abstractmethod
    def summary(self, record: dict[str, Any]) -> str:
        """A result in a few words."""

    @abc.abstractmethod
    def process(self, cell: C) -> list[str]:
        """The arguments of `lemn` with which a process runs this cell alone."""

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
        lines = (folder / "history.jsonl").read_text().splitlines()
        history = [json.loads(line) for line in lines]
        record = {
            **self.record(cell, folder, history),
            "training_seconds": history[-1]["seconds"],
            "seconds": round(time.time() - began, 1),
            "commit": commit(),
        }
        self.results.mkdir(parents=True, exist_ok=True)
        write_atomically(self.result(cell), json.dumps(record, indent=1) + "\n")

    def run(self, cells: Sequence[C], jobs: int = 2) -> list[str]:
        """Runs those cells that have no result, and says how each one came out.

        Args:
            cells: the table, in the order in which they are run as far as they are ready.
            jobs: processes at a time; with more than one, each keeps to one thread.

        Returns:
            Names of the cells that left no result, or never could begin.
        """
        todo = self.unfinished(cells)
        print(self.forecast(len(cells), len(todo), jobs), file=sys.stderr, flush=True)
        return _Pool(self, todo, jobs, len(cells)).run()

    def forecast(self, total: int, todo: int, jobs: int) -> str:
        """What is to be done and how long it may take, by what trainings took that are known.

        Args:
            total: cells of the table.
            todo: those that have no result.
            jobs: processes at a time.
        """
        said = f"{total} trainings, {total - todo} have results"
        if not todo:
            return said
        records = [json.loads(path.read_text()) for path in self.results.glob("*.json")]
        known = [record["seconds"] for record in records if "seconds" in record]
        said += f"; {todo} to run, {jobs} at a time, logs in {self.out / 'logs'}"
        if not known:
            return f"{said}; how long it takes is told after the first"
        hours = sum(known) / len(known) * todo / jobs / 3600
        return f"{said}; about {hours:.1f} hours, if they take as long as those in {self.results}"


class _Process(NamedTuple):
    """The process of a cell, and its log."""

    process: subprocess.Popen
    began: float
    log: Path


class _Pool(Generic[C]):
    """The processes of a table; see `Table.run`."""

    def __init__(self, table: Table[C], todo: list[C], jobs: int, total: int):
        self.table, self.todo, self.jobs, self.total = table, todo, jobs, total
        self.running: dict[C, _Process] = {}
        self.failed: list[str] = []
        self.began, self.finished, self.before = time.time(), 0, total - len(todo)
        # Cells share XLA programs: compile each once.
        cache = f"--tf_xla_persistent_cache_directory={(table.out / 'xla').absolute()}"
        flags = f"{os.environ.get('TF_XLA_FLAGS', '')} {cache}".strip()
        self.environment = {**os.environ, "TF_XLA_FLAGS": flags, "TF_CPP_MIN_LOG_LEVEL": "3"}
        if jobs > 1:
            self.environment |= {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}

    def run(self) -> list[str]:
        (self.table.out / "logs").mkdir(parents=True, exist_ok=True)
        try:
            while self.todo or self.running:
                ready = [cell for cell in self.todo if self.table.is_ready(cell)]
                for cell in ready[: self.jobs - len(self.running)]:
                    self._start(cell)
                if not self.running:  # what is left waits for a cell that failed
                    self.failed += [cell.name for cell in self.todo]
                    break
                time.sleep(1)
                for cell, started in list(self.running.items()):
                    if started.process.poll() is not None:
                        self._end(cell)
        except KeyboardInterrupt:
            self._let_them_save()
            raise
        finally:
            for started in self.running.values():
                started.process.terminate()
        return self.failed

    def _start(self, cell: C) -> None:
        self.todo.remove(cell)
        log = self.table.out / "logs" / f"{cell.name}.log"
        with open(log, "ab") as file:
            command = [*LEMN, *self.table.process(cell)]
            process = subprocess.Popen(command, stdout=file, stderr=file, env=self.environment)
        self.running[cell] = _Process(process, time.time(), log)

    def _end(self, cell: C) -> None:
        process, began, log = self.running.pop(cell)
        path = self.table.result(cell)
        if process.returncode or not path.exists():
            self.failed.append(cell.name)
            print(f"{cell.name} failed: see {log}", file=sys.stderr, flush=True)
            return
        self.finished += 1
        each = (time.time() - self.began) / self.finished
        left = each * (len(self.todo) + len(self.running)) / 60
        print(
            f"[{self.before + self.finished}/{self.total}] {cell.name}: "
            f"{self.table.summary(json.loads(path.read_text()))} "
            f"({time.time() - began:.0f} s; about {left:.0f} min left)",
            file=sys.stderr,
            flush=True,
        )

    def _let_them_save(self) -> None:
        """Waits for the processes, which Ctrl-C reaches too."""
        deadline = time.time() + 60
        for started in self.running.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                started.process.wait(max(deadline - time.time(), 0))
        print(
            "stopped; finished cells are kept, and the same command again goes on", file=sys.stderr
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
