"""The table of results over documents: rules, bounds and learned policies over one reader.

A cell is a keeper on a set with a size of memory and a seed.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lemn_tf.experiments import documents_evidence as evidence
from lemn_tf.experiments import documents_policy as policies
from lemn_tf.experiments import triviaqa_scoring as official
from lemn_tf.experiments.cells import CellTable
from lemn_tf.experiments.documents import PRODUCTS, viewing
from lemn_tf.experiments.documents_evidence import Evidence
from lemn_tf.experiments.documents_words import OWN, PARAGRAPH, words_of
from lemn_tf.experiments.minilm import Store
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
OPENING = "opening"
"""The rule that keeps what paragraphs begin with; not a policy by itself."""
AWARE = {"overlap": "shared", "best-span": "best"}
"""Rules that know the question, and what they go by: `Evidence`'s field of that name."""
AWARE_QUESTIONS = 2900
"""About how many training questions policies that know the question learn from: each is a stream of
its own, and has to be read with every slot."""
AWARE_RATE = 1e-3
"""Learning rate of policies that know the question: their data tells them more."""
LEARNED = ("im-lemn", "s-lemn", "st-lemn")
MARKS = ("exact", "f1", "in_memory")
AWARE_RIDGE = 30_000.0
"""The same where every question is a stream, so that there are many more rows; by folds over the
training documents 1.7 points better than 3,000."""
RIDGE = 3000.0
"""Penalty of the regression that policies begin with; 1,000 and 10,000 differ by half a point."""
SHAPE = {"units": 32, "hidden": 32}
LABELS = pipeline.Layout(longest=20)
"""An answer of any length that lies within a slot counts as in memory."""


@dataclasses.dataclass(frozen=True)
class Side:
    """The documents of one question file, as the reader sees them.

    Attributes:
        collection: the file.
        documents: what the reader says about each.
        parts: where the parts of its view stand in their `vectors`.
    """

    collection: files.Collection
    documents: list[Evidence]
    parts: Mapping[str, slice]

    def seen(self, view: Sequence[str]) -> list[Evidence]:
        """The documents with some parts of the view only."""
        return [
            dataclasses.replace(
                document, vectors=np.hstack([document.vectors[:, self.parts[p]] for p in view])
            )
            for document in self.documents
        ]


def read_side(
    model: StreamReader,
    folder: str | os.PathLike,
    name: str,
    read: bool,
    most: int | None = None,
    context: Store | None = None,
) -> Side:
    """One side of a set, `qa/wikipedia-NAME.json` and `evidence/` in a folder.

    Args:
        model: whose reader is asked.
        folder: of the set.
        name: of the side.
        read: see `evidence.gather`.
        most: take documents, evenly spread over the file, with about this many questions.
        context: where MiniLM's vectors of slots are, if they are wanted too.
    """
    words, idf = words_of(model)
    reader = viewing(model.reader, OWN if context is None else (*OWN, "sentence"))
    collection = files.read(
        Path(folder) / "qa" / f"wikipedia-{name}.json", Path(folder) / "evidence"
    )
    collection = spread(collection, most)
    seen = evidence.gather(reader, collection, words, idf, LABELS, read, context)
    return Side(collection, seen, reader.summary_parts)


def spread(collection: files.Collection, most: int | None) -> files.Collection:
    """Documents with about so many questions, evenly spread; None for all."""
    asked = sum(len(entry.questions) for entry in collection.entries)
    if most is None or most >= asked:
        return collection
    count = max(1, round(len(collection) * most / asked))
    chosen = np.linspace(0, len(collection) - 1, count).round().astype(int)
    return dataclasses.replace(collection, entries=tuple(collection.entries[i] for i in chosen))


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


def opening(side: Side, slots: float) -> list[np.ndarray]:
    """The slots that end nearest to the beginning of their paragraph, of those the earliest."""
    far = side.parts["slot"].stop - PARAGRAPH + 4  # see `documents_words._in_paragraph`
    order = [np.argsort(document.vectors[:, far], kind="stable") for document in side.documents]
    kept = zip(order, side.documents, strict=True)
    return [np.sort(ids[: policies.size_of(document, slots)]) for ids, document in kept]


def holding(side: Side, slots: int, seed: int = 0) -> dict[str, list[float]]:
    """`marks` from memories that hold the answer: its slot and others drawn at random.

    Questions that no slot answers are left out.
    """
    random = np.random.default_rng(seed)
    documents = [policies.asked(d, d.holds.any(axis=1)) for d in side.documents]
    documents = [document for document in documents if len(document.questions)]

    def draw(holds):
        score = random.random(len(holds))
        score[random.choice(np.flatnonzero(holds))] = 2.0
        return np.sort(np.argsort(-score)[:slots])

    kept = [[draw(row) for row in document.holds] for document in documents]
    return marks(dataclasses.replace(side, documents=documents), kept)


def learned(
    train: Side,
    dev: Side,
    name: str,
    slots: float,
    seed: int,
    view: Sequence[str] = OWN,
    **options: Any,
) -> list[np.ndarray]:
    """What a policy keeps that was trained on one side, blind to the questions.

    Args:
        train, dev: what it learns from, and what it then reads.
        name: of the policy.
        slots: N, or a share of a document's slots if below 1.
        seed: of everything random.
        view: what it sees of a slot.
        options: of `policies.train`; `epochs=0` leaves it as it begins, and `linear=False` without
            a linear part.
    """
    ready, unseen = _standardised(train, dev, view)
    ready = [document for document in ready if document.holds.any()]
    steps = options.pop("steps", 60 if slots < 1 else 40)
    size = int(slots) if slots >= 1 else round(slots * steps)
    linear = options.pop("linear", True)
    memory = policies.make(name, ready[0].vectors.shape[-1], size, **SHAPE, skip=linear)
    policies.begin(memory.policy, ready, ridge=RIDGE)
    if options.get("epochs", 1):
        policies.train(memory, ready, steps=steps, seed=seed, **options)
    return policies.kept_by(memory, unseen, slots)


def _standardised(
    train: Side, dev: Side, view: Sequence[str], products: int = PRODUCTS
) -> tuple[list[Evidence], ...]:
    """Both sides as a policy with that view sees them."""
    seen = train.seen(view)
    standards = policies.standards_of(seen, products)
    return policies.standardised(seen, standards), policies.standardised(dev.seen(view), standards)


def aware_rule(side: Side, slots: float, name: str = "overlap") -> list[list[np.ndarray]]:
    """What a rule of `AWARE` keeps of each document for each of its questions."""
    return [
        [
            np.sort(np.argsort(-row, kind="stable")[: policies.size_of(document, slots)])
            for row in getattr(document, AWARE[name])
        ]
        for document in side.documents
    ]


def aware(
    train: Side, dev: Side, name: str, slots: int, seed: int, **options: Any
) -> list[list[np.ndarray]]:
    """What a policy that knows the question keeps of each document for each of its questions."""
    ready, unseen = _standardised(train, dev, OWN, products=0)
    rows = policies.by_question(ready, ready)
    rows = [row for row in rows if row.holds.any()]
    asked = policies.by_question(unseen, ready)
    memory = policies.make(name, rows[0].vectors.shape[-1], slots, **SHAPE, skip=True)
    policies.begin(memory.policy, rows, ridge=AWARE_RIDGE)
    if options.get("epochs", 1):
        policies.train(memory, rows, steps=40, batch_size=64, seed=seed, **options)
    kept = iter(policies.kept_by(memory, asked, slots))
    return [[next(kept) for _ in document.questions] for document in unseen]


@dataclasses.dataclass(frozen=True)
class KeeperCell:
    """A keeper on a set, or another score of the set.

    Attributes:
        name: of the result.
        make: gives the scores.
        asked: the arguments of `lemn` that ask for them.
    """

    name: str
    make: Callable[[], dict[str, Any]]
    asked: tuple[str, ...]


class KeeperTable(CellTable[KeeperCell]):
    """Cells that share what the reader says about a set, so they run in one process.

    Args:
        results: folder for the JSON files.
    """

    made_of, indent = "scores", None

    def __init__(self, results: str | os.PathLike):
        super().__init__(results, results)

    def record(
        self, cell: KeeperCell, folder: Path, history: list[dict[str, Any]]
    ) -> dict[str, Any]:
        return cell.make()

    def summary(self, record: dict[str, Any]) -> str:
        marks = {key: value for key, value in record.items() if isinstance(value, float | int)}
        return ", ".join(f"{key} {value:g}" for key, value in marks.items())

    def command(self, cell: KeeperCell) -> list[str]:
        return list(cell.asked)


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
