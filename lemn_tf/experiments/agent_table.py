"""A table of trained agents: what mazes and other worlds have in common."""

from __future__ import annotations

import abc
import dataclasses
import os
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from lemn_tf import runs
from lemn_tf.experiments.agent_runs import Show
from lemn_tf.experiments.cells import Cell, CellTable
from lemn_tf.navigation.agent import MemoryAgent


class AgentCell(Cell, Protocol):
    """A training: in which environment, and in which row of the table."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def env(self) -> str: ...
    @property
    def row(self) -> str: ...


A = TypeVar("A", bound=AgentCell)


class AgentTable(CellTable[A]):
    """Trains and scores agents.

    Args:
        out: folder for runs and logs.
        results: folder for the report; the results of trainings go to a folder in it.
        frames: length of the trainings; None for that of their recipes.
        show: called with every line of the history of a training.
    """

    task: ClassVar[str]
    """The name of the table for `lemn reproduce`, and of the folder of its results."""
    curve: ClassVar[tuple[str, str]]
    """What a result keeps of each line of the history, beside the frames."""

    def __init__(
        self,
        out: str | os.PathLike,
        results: str | os.PathLike,
        frames: int | None = None,
        show: Show = lambda line: None,
    ) -> None:
        super().__init__(out, Path(results) / self.task)
        self.frames, self.show = frames, show

    @abc.abstractmethod
    def scores(self, agent: MemoryAgent, cell: A) -> dict[str, Any]:
        """The scores of a trained agent."""

    @abc.abstractmethod
    def options(self, cell: A) -> list[str]:
        """The options of `lemn reproduce` that say which training of its environment it is."""

    def record(self, cell: A, folder: Path, history: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            **dataclasses.asdict(cell),
            "row": cell.row,
            "scores": self.scores(runs.load(folder), cell),
            "best_validation": history[-1]["best"],
            "frames": history[-1]["frames"],
            "curve": [[line[key] for key in ("frames", *self.curve)] for line in history],
        }

    def command(self, cell: A) -> list[str]:
        command = ["reproduce", self.task, "--envs", cell.env, *self.options(cell)]
        return command + (["--frames", str(self.frames)] if self.frames else [])
