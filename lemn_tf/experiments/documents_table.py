"""The table of results over documents: rules, bounds and learned policies over one reader.

A cell is a keeper on a set with a size of memory and a seed. Its result is a JSON file; cells that
have one are not run again.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lemn_tf.experiments import documents_evidence as evidence
from lemn_tf.experiments import documents_policy as policies
from lemn_tf.experiments import triviaqa_scoring as official
from lemn_tf.experiments.documents import Told
from lemn_tf.experiments.documents_evidence import Evidence
from lemn_tf.experiments.documents_scoring import words_of
from lemn_tf.files import write_atomically
from lemn_tf.model import StreamReader
from lemn_tf.pipelines import documents as files
from lemn_tf.pipelines import spans as pipeline

RULES = {
    "fifo": "vectors",
    "lifo": "vectors",
    "uniform": "vectors",
    "salient": "lexical",
    "distinct-salient": "lexical",
    "novelty": "lexical",
    "salient-first": "lexical",
}
"""Rules that do not know the question, and what they see of a slot."""
LEARNED = ("im-lemn", "s-lemn", "st-lemn")
MARKS = ("exact", "f1", "in_memory")
LABELS = pipeline.Layout(longest=20)
"""An answer of any length that lies within a slot counts as in memory."""


@dataclasses.dataclass(frozen=True)
class Side:
    """The documents of one question file, as the reader sees them."""

    collection: files.Collection
    documents: list[Evidence]


def read_side(model: StreamReader, folder: str | os.PathLike, name: str, read: bool) -> Side:
    """One side of a set, `qa/wikipedia-NAME.json` and `evidence/` in a folder."""
    words, idf = words_of(model)
    collection = files.read(
        Path(folder) / "qa" / f"wikipedia-{name}.json", Path(folder) / "evidence"
    )
    seen = evidence.gather(model.reader, collection, words, idf, LABELS, read)
    return Side(collection, seen)


Kept = Sequence[Any]
"""Ids of the slots kept of each document, or of each document for each of its questions."""


def marks(side: Side, kept: Kept) -> dict[str, list[float]]:
    """Exact match, F1 and answer in memory of every question, document by document.

    Args:
        side: what was asked.
        kept: what was in memory at the end of each document.
    """
    told: dict[str, list[float]] = {"exact": [], "f1": [], "in_memory": [], "document": []}
    numbers = {entry.name: i for i, entry in enumerate(side.collection.entries)}
    for document, ids in zip(side.documents, kept, strict=True):
        text = side.collection[numbers[document.name]]
        for q in range(len(document.questions)):
            one: np.ndarray = ids if isinstance(ids, np.ndarray) else ids[q]
            one = one[one >= 0]
            slot = one[np.argmax(document.best[q, one])]
            said = text.between(*document.spans[q, slot])
            question = side.collection.questions[document.questions[q]]
            exact, f1 = official.best(said, question.normalized_aliases)
            told["exact"].append(float(exact))
            told["f1"].append(round(float(f1), 4))
            told["in_memory"].append(float(document.holds[q, one].any()))
            told["document"].append(numbers[document.name])
    return told


def greedy(document: Evidence, slots: int, shuffle: np.random.Generator | None = None) -> float:
    """Share of questions answered by slots that are chosen with all questions known.

    Each slot is the one that answers most of the questions left. With `shuffle` the slots that
    answer each question are moved to random places first: what is found then is chance.
    """
    holds = document.holds
    if shuffle is not None:
        holds = np.stack([shuffle.permutation(row) for row in holds])
    left = np.ones(len(holds), bool)
    for _ in range(min(slots, document.slots)):
        best = int(np.argmax(holds[left].sum(axis=0)))
        left &= ~holds[:, best]
    return 1.0 - float(np.mean(left))


def bound(side: Side, slots: float, seed: int | None = None) -> float:
    """Questions that the greedy bound answers, in percent; shuffled if there is a seed."""
    random = None if seed is None else np.random.default_rng(seed)
    counts = [len(document.questions) for document in side.documents]
    shares = [greedy(d, policies.size_of(d, slots), random) for d in side.documents]
    return 100 * float(np.average(shares, weights=counts))


def rule(side: Side, name: str, slots: float) -> list[np.ndarray]:
    """What a rule keeps."""
    width = getattr(side.documents[0], RULES[name]).shape[-1]
    memory = policies.make(name, width, max(1, int(slots)))
    return policies.kept_by(memory, side.documents, slots, RULES[name])


def learned(
    train: Side, dev: Side, name: str, slots: float, seed: int, **options: Any
) -> list[np.ndarray]:
    """What a policy keeps that was trained on one side, blind to the questions."""
    ready = policies.standardised(train.documents, train.documents)
    unseen = policies.standardised(dev.documents, train.documents)
    ready = [document for document in ready if document.holds.any()]
    steps = options.pop("steps", 60 if slots < 1 else 40)
    size = int(slots) if slots >= 1 else round(slots * steps)
    memory = policies.make(name, ready[0].vectors.shape[-1], size, units=32, hidden=32, skip=True)
    policies.begin(memory.policy, ready, ridge=3000.0)
    if options.get("epochs", 1):
        policies.train(memory, ready, steps=steps, seed=seed, **options)
    return policies.kept_by(memory, unseen, slots)


def aware_rule(side: Side, slots: float) -> list[list[np.ndarray]]:
    """What `overlap` keeps of each document for each of its questions."""
    return [
        [
            np.sort(np.argsort(-row, kind="stable")[: policies.size_of(document, slots)])
            for row in document.shared
        ]
        for document in side.documents
    ]


def aware(
    train: Side, dev: Side, name: str, slots: int, seed: int, **options: Any
) -> list[list[np.ndarray]]:
    """What a policy that knows the question keeps of each document for each of its questions."""
    ready = policies.standardised(train.documents, train.documents)
    unseen = policies.standardised(dev.documents, train.documents)
    rows = policies.by_question(ready, ready)
    rows = [row for row in rows if row.holds.any()]
    asked = policies.by_question(unseen, ready)
    memory = policies.make(name, rows[0].vectors.shape[-1], slots, units=32, hidden=32, skip=True)
    policies.begin(memory.policy, rows, ridge=3000.0)
    if options.get("epochs", 1):
        policies.train(memory, rows, steps=40, batch_size=64, seed=seed, **options)
    kept = iter(policies.kept_by(memory, asked, slots))
    return [[next(kept) for _ in document.questions] for document in unseen]


class Cells:
    """Results in a folder, one file each."""

    def __init__(self, folder: str | Path, told: Told = lambda text: None):
        self.folder, self.told = Path(folder), told
        self.folder.mkdir(parents=True, exist_ok=True)

    def run(self, name: str, make: Any) -> dict[str, Any]:
        """The result of that name; made and kept if it is not there yet."""
        path = self.folder / f"{name}.json"
        if path.exists():
            return json.loads(path.read_text())
        result = make()
        write_atomically(path, json.dumps(result))
        shown = {key: value for key, value in result.items() if not isinstance(value, list)}
        self.told(f"{name}: {json.dumps(shown)}")
        return result


def summary(told: dict[str, list[float]]) -> dict[str, Any]:
    """Means in percent, and for a bootstrap the counts of each document.

    `documents` has for each document how many questions there are, how many were answered exactly,
    and for how many an answer was in memory.
    """
    means = {name: round(100 * float(np.mean(told[name])), 2) for name in MARKS}
    _, which = np.unique(told["document"], return_inverse=True)
    rows = [
        np.bincount(which),
        *(np.bincount(which, told[name]) for name in ("exact", "in_memory")),
    ]
    counts = np.stack(rows, axis=1).astype(int).tolist()
    return {**means, "questions": len(which), "documents": counts}
