"""The paper's maze experiments as a table: how a run is trained, and how it is scored."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from lemn_tf.experiments.agent_runs import Show
from lemn_tf.experiments.agent_table import AgentTable
from lemn_tf.experiments.maze_cells import MazeCell
from lemn_tf.experiments.mazes import MazeSettings, maze_settings, score_agent, train_agent
from lemn_tf.navigation.navigator import Navigator


class MazeTable(AgentTable[MazeCell]):
    """Trains and scores runs.

    Args:
        out, results, frames, show: as of `AgentTable`.
        maps: file of maps to train on in addition to generated ones (random mazes).
    """

    task, curve = "maze", ("success", "val_success_rate")

    def __init__(
        self,
        out: str | os.PathLike,
        results: str | os.PathLike,
        maps: str | None = None,
        frames: int | None = None,
        show: Show = lambda line: None,
    ) -> None:
        super().__init__(out, results, frames, show)
        self.maps = maps

    def folder(self, cell: MazeCell) -> Path:
        return self.out / cell.name

    def settings(self, cell: MazeCell) -> MazeSettings:
        """How a cell is trained."""
        given: dict[str, Any] = {"maps": self.maps} if cell.env != "imaze" else {}
        return maze_settings(
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

    def scores(self, agent: Navigator, cell: MazeCell) -> dict[str, Any]:
        return score_agent(agent, cell.env)

    def summary(self, record: dict[str, Any]) -> str:
        return f"success {record['scores']['success_rate']:.1f}%"

    def options(self, cell: MazeCell) -> list[str]:
        seeds = "--seeds" if cell.env == "imaze" else "--maze-seeds"
        asked = ["--readers", cell.reader, "--policies", cell.policy, seeds, str(cell.seed + 1)]
        return asked + self._maps(cell, whole=False)

    def places(self, cell: MazeCell) -> list[str]:
        return super().places(cell) + self._maps(cell, whole=True)

    def _maps(self, cell: MazeCell, whole: bool) -> list[str]:
        """The option for the file of maps: its name, or the whole path, which comes later."""
        if cell.env == "imaze" or self.maps is None:
            return []
        return ["--maps", self.maps if whole else Path(self.maps).name]
