"""The paper's maze experiments as a table: how a run is trained, and how it is scored."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lemn_tf import runs
from lemn_tf.experiments.cells import Table
from lemn_tf.experiments.maze_cells import MazeCell
from lemn_tf.experiments.mazes import AgentSettings, agent_settings, score_agent, train_agent


class MazeTable(Table[MazeCell]):
    """Trains and scores runs.

    Args:
        out: folder for runs and logs.
        results: folder for the report; the results of runs go to `maze` in it.
        maps: file of maps to train on in addition to generated ones (random mazes).
        frames: length of the trainings, if not that of their recipes.
        show: called with every line of the history of a training.
    """

    def __init__(
        self,
        out: str | os.PathLike,
        results: str | os.PathLike,
        maps: str | None = None,
        frames: int | None = None,
        show: Callable[[dict[str, Any]], None] = lambda line: None,
    ) -> None:
        super().__init__(out, Path(results) / "maze")
        self.maps, self.frames, self.show = maps, frames, show

    def folder(self, cell: MazeCell) -> Path:
        return self.out / cell.name

    def settings(self, cell: MazeCell) -> AgentSettings:
        """How a cell is trained."""
        given: dict[str, Any] = {"maps": self.maps} if cell.env != "imaze" else {}
        return agent_settings(
            cell.env,
            cell.reader,
            generated=1000,
            changes={"frames": self.frames} if self.frames else {},
            policy=cell.policy,
            seed=cell.seed,
            **given,
        )

    def train(self, cell: MazeCell, folder: Path) -> None:
        train_agent(self.settings(cell), folder, self.show)

    def record(self, cell: MazeCell, folder: Path, history: list[dict[str, Any]]) -> dict[str, Any]:
        keys = ("frames", "success", "val_success_rate")
        maps = None if self.maps is None else Path(self.maps).name  # wherever it is
        return {
            **dataclasses.asdict(cell),
            "row": cell.row,
            "scores": score_agent(runs.load(folder), cell.env),
            "best_validation": history[-1]["best"],
            "frames": history[-1]["frames"],
            "curve": [[line[key] for key in keys] for line in history],
            "command": " ".join(["lemn", *self.command(cell, maps)]),
        }

    def summary(self, record: dict[str, Any]) -> str:
        return f"success {record['scores']['success_rate']:.1f}%"

    def command(self, cell: MazeCell, maps: str | None) -> list[str]:
        """The arguments of `lemn` that run a cell and those of the same row with lower seeds."""
        seeds = "--seeds" if cell.env == "imaze" else "--maze-seeds"
        command = ["reproduce", "maze", "--envs", cell.env, "--readers", cell.reader]
        command += ["--policies", cell.policy, seeds, str(cell.seed + 1)]
        if cell.env != "imaze" and maps is not None:
            command += ["--maps", maps]
        return command + (["--frames", str(self.frames)] if self.frames else [])

    def process(self, cell: MazeCell) -> list[str]:
        places = ["--out", str(self.out), "--results", str(self.results.parent)]
        return [*self.command(cell, self.maps), *places, "--cell", cell.name]
