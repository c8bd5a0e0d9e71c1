"""The paper's maze experiments as a table: its runs, how one is trained, and how it is scored."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lemn_tf import runs
from lemn_tf.experiments.cells import Table
from lemn_tf.experiments.mazes import SLOTS, AgentSettings, agent_settings, score_agent, train_agent
from lemn_tf.navigation.navigator import READERS


@dataclasses.dataclass(frozen=True)
class MazeCell:
    """One run: environment, reader, policy, seed."""

    env: str
    reader: str
    policy: str
    seed: int

    @property
    def slots(self) -> int:
        """The size of the memory."""
        return SLOTS[self.env]

    @property
    def row(self) -> str:
        """The name that all seeds share."""
        return f"{self.env}-{self.reader}-{self.policy}-{self.slots}"

    @property
    def name(self) -> str:
        """The name of the run."""
        return f"{self.row}-seed{self.seed}"


def plan(
    envs: Sequence[str] = tuple(SLOTS),
    readers: Sequence[str] = tuple(READERS),
    policies: Sequence[str] = ("st-lemn", "fifo"),
    seeds: int = 3,
    maze_seeds: int = 1,
) -> list[MazeCell]:
    """The runs of a table, those of the first environment first.

    Args:
        envs: some of "imaze" and "single-indicator".
        readers: some of "mqn" and "frmqn".
        policies: names of retention policies.
        seeds: runs of each row of the I-Maze.
        maze_seeds: runs of each row of the random mazes.
    """
    for what, values, known in (("envs", envs, SLOTS), ("readers", readers, READERS)):
        unknown = [one for one in values if one not in known]
        if unknown:
            raise ValueError(f"expected {what} among {', '.join(known)}, got {unknown}")
    return [
        MazeCell(env, reader, policy, seed)
        for env in envs
        for seed in range(seeds if env == "imaze" else maze_seeds)
        for reader in readers
        for policy in policies
    ]


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
