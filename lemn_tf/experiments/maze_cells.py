"""The runs of the paper's maze experiments: which there are, and what they are called."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from lemn_tf import retention
from lemn_tf.navigation.recipe import READERS, SLOTS


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
    asked = (("envs", envs, SLOTS), ("readers", readers, READERS))
    for what, values, known in (*asked, ("policies", policies, retention.names())):
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
