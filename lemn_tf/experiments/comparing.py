"""A comparison as jobs: each policy at each size of memory is a score of its own.

The result is what `lemn_tf.evaluation.compare` gives in one process. A score is a file, and stays
valid as long as the model, the stories and the settings are the same.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lemn_tf.evaluation import ORACLE, with_regret
from lemn_tf.experiments import babi
from lemn_tf.experiments.cells import CellTable
from lemn_tf.model import StreamReader
from lemn_tf.pipelines.babi import read_stories

ASKED = "asked"
"""The key of a record for what its score depends on."""


@dataclasses.dataclass(frozen=True)
class ScoreCell:
    """One score: a row of the comparison, at one size of the memory."""

    row: str
    slots: int

    @property
    def name(self) -> str:
        return re.sub(r"[^\w.=-]+", "-", f"{self.row}_slots={self.slots}").strip("-")


class ScoreTable(CellTable[ScoreCell]):
    """Scores models; nothing is trained. See `lemn_tf.experiments.cells`.

    Args:
        out: folder for logs and scores.
        models: what is compared, by name; the oracle gets the reader of the first.
        data: a file in bAbI's text format.
        store_questions: see `BabiSettings`.
        command: the arguments of `lemn` that ask for the whole comparison.
    """

    made_of = "scores"

    def __init__(
        self,
        out: str | os.PathLike,
        models: Mapping[str, StreamReader],
        data: str | os.PathLike,
        store_questions: bool,
        command: Sequence[str],
    ):
        super().__init__(out, Path(out) / "scores")
        self.models, self.data, self.store_questions = dict(models), Path(data), store_questions
        self.whole = list(command)

    def cells(self, sizes: Sequence[int]) -> list[ScoreCell]:
        """All scores: the oracle's too, if the stories say what every question needs."""
        stories = read_stories(self.data)
        known = all(question.support for story in stories for question in story.questions)
        rows = [*self.models, *([ORACLE] if known else [])]
        return [ScoreCell(row, slots) for slots in sizes for row in rows]

    def rows(self, cells: Sequence[ScoreCell]) -> list[dict[str, Any]]:
        """The scores of all cells, as `lemn_tf.evaluation.compare` gives them."""
        found = []
        for slots in dict.fromkeys(cell.slots for cell in cells):
            several = [cell for cell in cells if cell.slots == slots]
            scores = [json.loads(self.result(cell).read_text())["score"] for cell in several]
            named = zip(several, scores, strict=True)
            found += with_regret([{"name": cell.row, **score} for cell, score in named])
        return found

    def record(
        self, cell: ScoreCell, folder: Path, history: list[dict[str, Any]]
    ) -> dict[str, Any]:
        first = next(iter(self.models.values()))
        model = self.models.get(cell.row) or first.with_policy(cell.row)
        score = babi.score(model, self.data, cell.slots, self.store_questions)
        return {"score": score, ASKED: self._asked(cell)}

    def _asked(self, cell: ScoreCell) -> dict[str, Any]:
        """All that a score depends on."""
        weights = hashlib.sha256()
        model = self.models.get(cell.row) or next(iter(self.models.values()))
        for array in model.get_weights():
            weights.update(array.tobytes())
        return {
            "weights": weights.hexdigest(),
            "data": hashlib.sha256(self.data.read_bytes()).hexdigest(),
            "store_questions": self.store_questions,
            "slots": cell.slots,
        }

    def is_current(self, cell: ScoreCell, record: dict[str, Any]) -> bool:
        return record[ASKED] == self._asked(cell)

    def summary(self, record: dict[str, Any]) -> str:
        return f"{record['score']['error_rate']:.1f}% wrong"

    def command(self, cell: ScoreCell) -> list[str]:
        return self.whole

    def places(self, cell: ScoreCell) -> list[str]:
        return []  # the command says them
