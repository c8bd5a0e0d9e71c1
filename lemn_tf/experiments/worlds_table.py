"""The exam of memory as a table: how a cell is trained and scored, and the report."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lemn_tf.experiments.agent_table import AgentTable
from lemn_tf.experiments.worlds import WorldSettings, score_world, train_world
from lemn_tf.experiments.worlds_cells import EXAMS, ROWS, WorldCell
from lemn_tf.files import write_atomically
from lemn_tf.navigation.agent import MemoryAgent
from lemn_tf.navigation.recipe import WORLD_RECIPE

BSUITE = ("memory_len", "memory_size")
"""The experiments of bsuite that have a score of their own."""
COUNTED, LEARNED = 10_000, 0.75
"""bsuite counts the mistakes of the first 10,000 episodes of a training; a world is learned if they
are fewer than this share of those made by chance."""


class WorldTable(AgentTable[WorldCell]):
    """Trains and scores the cells; see `AgentTable`."""

    task, curve = "worlds", ("return", "val_return")

    def settings(self, cell: WorldCell) -> WorldSettings:
        """How a cell is trained."""
        exam, (reader, policy) = EXAMS[cell.env], ROWS[cell.row]
        recipe = dataclasses.replace(WORLD_RECIPE, frames=self.frames or exam.frames)
        return WorldSettings(
            cell.env,
            reader=reader,
            policy=policy,
            slots=exam.slots,
            seed=cell.seed,
            recipe=recipe,
        )

    def recipe(self, cell: WorldCell) -> dict[str, Any]:
        """The recipe of a cell, as its result says it."""
        return dataclasses.asdict(self.settings(cell).recipe)

    def is_current(self, cell: WorldCell, record: dict[str, Any]) -> bool:
        return record.get("recipe") == self.recipe(cell)

    def train(self, cell: WorldCell, folder: Path) -> None:
        train_world(self.settings(cell), folder, self.show)

    def scores(self, agent: MemoryAgent, cell: WorldCell) -> dict[str, Any]:
        return score_world(agent, cell.env)

    def record(
        self, cell: WorldCell, folder: Path, history: list[dict[str, Any]]
    ) -> dict[str, Any]:
        made = super().record(cell, folder, history) | {"recipe": self.recipe(cell)}
        if cell.env.startswith("bsuite/"):
            made["regret_ratio"] = round(regret_ratio(history, WORLD_RECIPE.episodes), 4)
        return made

    def summary(self, record: dict[str, Any]) -> str:
        return f"return {record['scores']['return']:.3f}"

    def options(self, cell: WorldCell) -> list[str]:
        return ["--rows", cell.row, "--seeds", str(cell.seed + 1)]


def regret_ratio(history: Sequence[Mapping[str, Any]], episodes: int) -> float:
    """bsuite's measure of a training: mistakes in 10,000 episodes against those of chance.

    An episode is right or wrong, with a return of 1 or -1, and by chance half of them are wrong;
    so it is 1 minus the mean return. bsuite's score is the share of worlds where it is below
    `LEARNED`.

    Args:
        history: lines with the mean `return` of the training up to an `update`.
        episodes: in each update.

    Example:

    >>> regret_ratio([{"update": 100, "return": 0.0}, {"update": 200, "return": 1.0}], 32)
    0.5
    """
    wrong, counted = 0.0, 0
    for line in history:
        more = min(line["update"] * episodes, COUNTED) - counted
        wrong += more * (1.0 - line["return"])
        counted += more
    return wrong / counted


def _bsuite_scores(cells: Mapping[tuple[str, str, int], Any], seeds: int) -> list[str]:
    """A table of bsuite's own scores; those of which all worlds were run."""
    lines = [
        "",
        "bsuite's own score: in what share of the worlds above fewer than 75% of the mistakes of "
        "chance were made in the first 10,000 episodes of the training, learning included.",
        "",
        "| experiment | " + " | ".join(ROWS) + " |",
        "|---|" + "---|" * len(ROWS),
    ]
    for name in BSUITE:
        envs, told = [env for env in EXAMS if env.startswith(f"bsuite/{name}/")], []
        for row in ROWS:
            tried = [[cells.get((env, row, seed)) for env in envs] for seed in range(seeds)]
            told.append(", ".join(_score(ones) for ones in tried))
        lines.append(f"| {name} | " + " | ".join(told) + " |")
    return lines


def _score(ones: Sequence[Mapping[str, Any] | None]) -> str:
    learned = [one["regret_ratio"] < LEARNED for one in ones if one is not None]
    return f"{sum(learned) / len(ones):.2f}" if len(learned) == len(ones) else "-"


def write_report(results: Path) -> Path:
    """Writes `worlds.md` from the results at hand: every seed, and what was not run."""
    found = [json.loads(path.read_text()) for path in sorted((results / "worlds").glob("*.json"))]
    if not found:
        raise ValueError(f"expected results in {results / 'worlds'}, found none")
    cells = {(one["env"], one["row"], one["seed"]): one for one in found}
    seeds = max(one["seed"] for one in found) + 1
    lines = [
        "# Tests of memory from elsewhere",
        "",
        "Mean return of 200 test episodes, every seed; the largest return is 1. One recipe for all "
        "(docs/worlds.md); the agent that validated best plays, the likeliest action each time. "
        "A dash: not run.",
        "",
        "| world | slots | " + " | ".join(ROWS) + " |",
        "|---|---:|" + "---|" * len(ROWS),
    ]
    for env, exam in EXAMS.items():
        told = []
        for row in ROWS:
            ones = [cells.get((env, row, seed)) for seed in range(seeds)]
            told.append(", ".join(f"{one['scores']['return']:.2f}" if one else "-" for one in ones))
        lines.append(f"| {env} | {exam.slots} | " + " | ".join(told) + " |")
    lines += _bsuite_scores(cells, seeds)
    hours = sum(one["training_seconds"] for one in found) / 3600
    lines += ["", f"Trainings: {len(found)}, {hours:.1f} hours of one core in all.", ""]
    lines += [
        f"- `{one['command']}` ({one['frames']:,} frames, {one['training_seconds'] / 60:.0f} min, "
        f"commit {one['commit']})"
        for one in found
    ]
    path = results / "worlds.md"
    write_atomically(path, "\n".join(lines) + "\n")
    return path
