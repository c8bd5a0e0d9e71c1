"""Whether a reader can answer with everything in memory, and what is tried if it cannot.

What an item is worth to a policy is what the reader makes of it, so a policy cannot learn to keep
what its reader cannot use. Before the policy learns, the reader is therefore asked all validation
questions with the whole story in memory. If it gets too many of them wrong, other readers are tried
in its place: see `attempts`. If none of them is good enough, training goes on with the best.
"""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import tensorflow as tf

from lemn_tf import recipes
from lemn_tf.episode import Episode, random_past
from lemn_tf.experiments.babi_settings import BabiSettings
from lemn_tf.files import write_atomically
from lemn_tf.model import StreamReader
from lemn_tf.training import PhaseTrainee

LENGTHS = ((64_000, 32_000), (128_000, 64_000))
"""Episodes of the reader's last phase and of `settle` after it, in the attempts after the first."""


def whole_error(
    model: StreamReader, episodes: Iterable[Episode], window: int | None = None
) -> float:
    """Percent of the answers that are wrong with everything in memory that was seen so far.

    Args:
        model: its reader is asked; its policy has no say.
        episodes: batches of them.
        window: how many items back memory reaches; None for the whole past.
    """
    asked = right = 0
    for episode in episodes:
        past = random_past(episode, (1.0, 1.0), tf.constant([0, 0]), window)
        found = model.reader.right(model.answer(episode, past), episode["answers"])
        known = episode["ask_at"] >= 0
        asked += int(tf.math.count_nonzero(known))
        right += int(tf.math.count_nonzero(known & found))
    return 100.0 * (asked - right) / max(asked, 1)


def attempts(settings: BabiSettings) -> tuple[BabiSettings, ...]:
    """The settings to be tried one after the other, first as they were given.

    Then the reader gets `settings.wider` units, unless that is None, rectified ones, learns for
    longer, from stories with names exchanged, and in the end from larger parts of them
    (`recipes.settled`). If the lengths of its phases were given, or there is no check, there is
    only the first.
    """
    first = recipes.get(settings.chosen)[: recipes.reader_phases(settings.chosen)]
    if limit(settings) == math.inf or any(phase.name in settings.episodes for phase in first):
        return (settings,)
    others = [
        dataclasses.replace(
            settings,
            units=settings.wider or settings.units,
            rectified=True,
            episodes={**settings.episodes, first[-1].name: length},
            settle=settle,
            seed=settings.seed + number * recipes.RESTART,
        )
        for number, (length, settle) in enumerate(LENGTHS)
    ]
    return (settings, *others)


def limit(settings: BabiSettings) -> float:
    """The error up to which a reader is competent; infinite if there is no check."""
    given = settings.chosen == "paper" or settings.reader_from or settings.start_from
    return math.inf if given or settings.competent is None else settings.competent


class Examined(PhaseTrainee):
    """A trainee that stops if its reader is not competent when the policy is about to begin.

    Args:
        *parts, **options: of `PhaseTrainee`.
        settings: how it is made.

    Attributes:
        error: `whole_error` of the reader after its last phase; None before, or without a check.
    """

    def __init__(self, *parts: Any, settings: BabiSettings, **options: Any):
        super().__init__(*parts, **options)
        self.limit = limit(settings)
        self.error: float | None = None
        self._last = settings.reader_phases - 1

    @property
    def failed(self) -> bool:
        """Whether the reader was examined and is not competent."""
        return self.error is not None and self.error > self.limit

    @property
    def finished(self) -> bool:
        return self.failed or super().finished

    def advance(self) -> dict[str, Any]:
        line = super().advance()
        self._examine()
        return line if self.error is None else {**line, "whole_error": self.error}

    def restore(self, arrays: dict[str, Any]) -> None:
        super().restore(arrays)
        self._examine()

    def _examine(self) -> None:
        end = {"phase": self._last, "update": self.updates}
        self.error = None
        if self.position == end and self.limit != math.inf:
            self.error = whole_error(self.model, self.valid, self.phase.window)


class Journal:
    """The readers of a run that were not competent; its folder keeps them.

    Args:
        folder: of the run. A failed attempt is put aside in `attempt-K` there, and `reader.json`
            has its error.
        tries: what `attempts` gave.
    """

    def __init__(self, folder: Path, tries: tuple[BabiSettings, ...]):
        self.folder, self.tries, self._file = folder, tries, folder / "reader.json"
        known = json.loads(self._file.read_text()) if self._file.exists() else {}
        self.errors: list[float] = known.get("errors", [])
        self.chosen: int | None = known.get("chosen")

    @property
    def attempt(self) -> int:
        """The number of the attempt that is under way."""
        return len(self.errors) if self.chosen is None else self.chosen

    @property
    def settings(self) -> BabiSettings:
        """How the attempt that is under way is made: without a check, if it was chosen."""
        settings = self.tries[self.attempt]
        return settings if self.chosen is None else dataclasses.replace(settings, competent=None)

    def failed(self, error: float) -> None:
        """Notes that the reader was not competent, puts it aside, and says what comes next."""
        settings = self.settings
        print(f"lemn: {_verdict(error, settings)}", file=sys.stderr, flush=True)
        self._put_aside(self.folder / f"attempt-{len(self.errors)}")
        self.errors.append(error)
        if len(self.errors) < len(self.tries):
            said = f"trying {_described(self.settings)}"
        else:
            self.chosen = min(range(len(self.errors)), key=self.errors.__getitem__)
            shutil.copytree(self.folder / f"attempt-{self.chosen}", self.folder, dirs_exist_ok=True)
            best = f"the best reader, {_described(self.settings)}, errs in {min(self.errors):.1f}%"
            said = f"going on, but {best}, and no policy can do better than its reader"
        print(f"lemn: {said}", file=sys.stderr, flush=True)
        facts = {"errors": self.errors, "chosen": self.chosen, "limit": settings.competent}
        tried = [_described(one) for one in self.tries[: len(self.errors)]]
        write_atomically(self._file, json.dumps({**facts, "tried": tried}, indent=1) + "\n")

    def _put_aside(self, aside: Path) -> None:
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        for part in ("history.jsonl", "reader-*.npz", "checkpoint.npz"):
            for path in self.folder.glob(part):
                path.rename(aside / path.name)


def _verdict(error: float, settings: BabiSettings) -> str:
    return (
        f"with everything in memory, the reader ({_described(settings)}) gets {error:.1f}% of the "
        f"validation answers wrong; a policy needs at most {settings.competent:g}%"
    )


def _described(settings: BabiSettings) -> str:
    first = settings.phases()[: settings.reader_phases]
    kind = "rectified units" if settings.rectified else "units"
    return f"{settings.units} {kind}, {sum(phase.episodes for phase in first):,} episodes"
