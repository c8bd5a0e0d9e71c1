"""An exam that nobody here wrote: tests of memory from popgym, bsuite and minigrid, as a table.

Bounded memory, one recipe for every world and every row; only the size of the memory and the length
of a training belong to a world. `lemn reproduce worlds` runs it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple


class Exam(NamedTuple):
    """What belongs to a world.

    Attributes:
        slots: size of the memory.
        frames: length of a training.
        best: the largest return.
    """

    slots: int
    frames: int
    best: float = 1.0


EXAMS = {
    # Two slots more than the steps that RepeatPrevious looks back, 4 and 32.
    "popgym-RepeatFirstEasy-v0": Exam(6, 250_000),
    "popgym-RepeatPreviousEasy-v0": Exam(6, 250_000),
    "popgym-RepeatFirstMedium-v0": Exam(6, 300_000),
    "popgym-RepeatPreviousMedium-v0": Exam(34, 300_000),
    # The number is that of bsuite's sweep; the steps are those of the 10,000 episodes that it asks
    # for, in memories of 10, 30 and 100 steps, and of 5 and 10 bits.
    **{f"bsuite/memory_len/{n}": Exam(4, 10_016 * t) for n, t in ((9, 11), (15, 31), (22, 101))},
    **{f"bsuite/memory_size/{n}": Exam(4, 10_016 * 3) for n in (4, 9)},
    **{f"MiniGrid-MemoryS{n}-v0": Exam(8, 500_000) for n in (7, 9, 11)},
}
"""The worlds by id."""
ROWS = {
    "st-lemn": ("mqn", "st-lemn"),
    "fifo": ("mqn", "fifo"),
    "lifo": ("mqn", "lifo"),
    "lstm": ("lstm", "fifo"),
}
"""Reader and policy of each row; an LSTM reads nothing, so it does not use its memory."""


@dataclasses.dataclass(frozen=True)
class WorldCell:
    """One training: world, row, seed."""

    env: str
    row: str
    seed: int

    @property
    def name(self) -> str:
        """The name of the run."""
        return f"{self.env.replace('/', '-')}-{self.row}-seed{self.seed}"


def plan(envs: Sequence[str], rows: Sequence[str], seeds: int = 3) -> list[WorldCell]:
    """The trainings of a table, those of the first world first.

    Args:
        envs: some of `EXAMS`.
        rows: some of `ROWS`.
        seeds: trainings of each.
    """
    for what, given, known in (("worlds", envs, EXAMS), ("rows", rows, ROWS)):
        unknown = [one for one in given if one not in known]
        if unknown:
            raise ValueError(f"expected {what} among {', '.join(known)}; got {unknown}")
    return [WorldCell(env, row, seed) for env in envs for seed in range(seeds) for row in rows]
