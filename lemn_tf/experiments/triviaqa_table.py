"""The paper's table on TriviaQA: one reader, its policies, the distant and the verified questions.

Every run is a folder that a second call goes on with, and every score a JSON file that it does not
make again.
"""

from __future__ import annotations

import dataclasses
import json
import os
from functools import partial
from pathlib import Path
from typing import Any

from lemn_tf import runs
from lemn_tf.evaluation import with_rule
from lemn_tf.experiments import documents_scoring as scoring
from lemn_tf.experiments import documents_training
from lemn_tf.experiments.documents import Settings, Told
from lemn_tf.experiments.documents_table import KeeperCell, KeeperTable
from lemn_tf.files import write_atomically

TRAIN = "wikipedia-train.json"
SIDES = {"distant": "wikipedia-dev.json", "verified": "verified-wikipedia-dev.json"}
"""The question files that are scored, by what the paper calls them."""
ROWS = ("fifo", "im-lemn", "s-lemn", "st-lemn", "overlap", "im-lemn-aware", "st-lemn-aware")
"""Policies; those that end in "-aware" know the question, and so does `overlap`."""
PAPER = {
    "distant": {
        "fifo": (18.49, 20.33),
        "im-lemn": (34.92, 38.72),
        "s-lemn": (42.97, 46.61),
        "st-lemn": (45.21, 49.04),
    },
    "verified": {
        "fifo": (16.04, 17.63),
        "im-lemn": (32.07, 33.75),
        "s-lemn": (38.36, 41.27),
        "st-lemn": (44.33, 47.24),
    },
}
"""Exact match and F1 in the paper, which does not say whether its policies know the question."""
HEAD = """# TriviaQA, Wikipedia domain

Exact match and F1 by the official rules, over all questions (and over those whose documents hold an
answer). In memory: questions with a right answer within a slot that was kept, of any of their
documents. Ten slots of 20 words. The paper does not say whether its policies know the question.
"""


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is trained and scored.

    Attributes:
        qa: folder of the official question files.
        evidence: folder of the documents.
        base: settings of all runs; question files, policy and reader are set for each.
        rows: some of `ROWS`.
    """

    qa: Path
    evidence: Path
    base: Settings
    rows: tuple[str, ...] = ROWS

    def __post_init__(self) -> None:
        unknown = sorted(set(self.rows) - set(ROWS))
        if unknown or not self.rows:
            raise ValueError(f"unknown rows {unknown}; known are {', '.join(ROWS)}")
        for name in (TRAIN, SIDES["distant"]):
            if not (self.qa / name).is_file():
                raise FileNotFoundError(
                    f"{self.qa}: expected TriviaQA's question files, {name} among them, found none"
                )

    @property
    def sides(self) -> dict[str, Path]:
        """The question files that are there to be scored."""
        found = {name: self.qa / file for name, file in SIDES.items()}
        return {name: path for name, path in found.items() if path.is_file()}


def reproduce(
    plan: Plan,
    out: str | os.PathLike,
    results: str | os.PathLike,
    told: Told = lambda text: None,
) -> Path:
    """Trains and scores what has no score yet, and writes the table.

    Args:
        plan: what.
        out: folder for the runs.
        results: folder for `triviaqa.md`, and for the scores in `triviaqa/`.
        told: called with lines to show.
    """
    for name in sorted(set(SIDES) - set(plan.sides)):
        told(f"{plan.qa / SIDES[name]}: not found, left out")
    for row in plan.rows:
        asked = ("reproduce", "triviaqa", "--rows", row)
        cells = [
            KeeperCell(f"{side}-{row}", partial(_cell, plan, out, row, path, told), asked)
            for side, path in plan.sides.items()
        ]
        KeeperTable(Path(results) / "triviaqa").run_here(cells, told)
    return write(results)


def _cell(plan: Plan, out: str | os.PathLike, row: str, qa: Path, told: Told) -> dict[str, Any]:
    """The score of one policy on one question file; its run is trained if it is missing."""
    rule = row == "overlap"
    folder = Path(out) / ("fifo" if rule else row)
    _trained(plan, Path(out), "fifo" if rule else row, told)
    model = runs.load(folder)
    if rule:
        model = with_rule(model, row)
    return scoring.score(model, qa, plan.evidence).told


def _trained(plan: Plan, out: Path, row: str, told: Told) -> None:
    """Trains the run of a row; all take the reader of the first, unless the paper's recipe."""
    if (out / row / "model.keras").is_file():
        return
    policy, aware = row.removesuffix("-aware"), row.endswith("-aware")
    settings = dataclasses.replace(plan.base, policy=policy, question_aware=aware)
    if row != "fifo" and settings.recipe != "paper":
        _trained(plan, out, "fifo", told)
        settings = dataclasses.replace(settings, reader_from=str(out / "fifo"))
    told(f"{row}: training in {out / row}")
    documents_training.train(settings, out / row, told)


def write(results: str | os.PathLike) -> Path:
    """Writes `triviaqa.md` from the scores that are there."""
    parts = [HEAD]
    for side in SIDES:
        files = {row: Path(results) / "triviaqa" / f"{side}-{row}.json" for row in ROWS}
        found = {row: json.loads(path.read_text()) for row, path in files.items() if path.exists()}
        if not found:
            continue
        first = next(iter(found.values()))
        parts.append(
            f"\n## {side.capitalize()}: {first['questions']:,} questions, {first['documents']:,} "
            f"documents, {first['missing_documents']:,} missing\n\n"
            "| policy | EM | F1 | in memory % | the paper's EM | F1 |\n|---|---|---|---|---|---|\n"
        )
        parts += [_line(row, score, PAPER[side].get(row)) for row, score in found.items()]
    path = Path(results) / "triviaqa.md"
    write_atomically(path, "".join(parts))
    return path


def _line(row: str, score: dict[str, Any], paper: tuple[float, float] | None) -> str:
    held = score["held"]
    numbers = [
        f"{score[name]:.2f}" + (f" ({held[name]:.2f})" if held["questions"] else "")
        for name in ("exact_match", "f1", "answer_in_memory")
    ]
    theirs = [f"{value:.2f}" for value in paper] if paper else ["", ""]
    return f"| {row} | {' | '.join([*numbers, *theirs])} |\n"
