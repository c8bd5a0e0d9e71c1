"""Scores of a model over documents: exact match and F1 by TriviaQA's rules, and what was kept."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lemn_tf.experiments import triviaqa_scoring as official
from lemn_tf.experiments.documents_reading import Answered, Reading
from lemn_tf.experiments.minilm import Store
from lemn_tf.model import StreamReader
from lemn_tf.pipelines import documents as files

DRAWS = 2000
"""How often a bootstrap draws."""


def by_key(
    collection: files.Collection, answered: Sequence[Answered], domain: str
) -> dict[str, list[Answered]]:
    """The answers that compete for each official key; see `triviaqa_scoring`."""
    found: dict[str, list[Answered]] = {}
    for one in answered:
        question = collection.questions[one.question].id
        name = collection.entries[one.document].name
        found.setdefault(official.prediction_key(question, name, domain), []).append(one)
    return found


@dataclasses.dataclass(frozen=True)
class Marks:
    """How questions were answered, one row for each official key.

    Attributes:
        keys: `QuestionId`, or `QuestionId--Filename` outside the Wikipedia domain.
        exact, f1: 0 to 1.
        in_memory: whether a right answer was in memory, of any document.
        held: whether a document holds one at all.
        document: index of the (first) document, to draw whole documents in a bootstrap; -1 where a
            question has none.
    """

    keys: tuple[str, ...]
    exact: np.ndarray
    f1: np.ndarray
    in_memory: np.ndarray
    held: np.ndarray
    document: np.ndarray

    def __len__(self) -> int:
        return len(self.keys)

    def by_document(self) -> dict[int, Marks]:
        """Those of each document; questions without one are left out."""
        order = np.argsort(self.document, kind="stable")
        documents, starts = np.unique(self.document[order], return_index=True)
        parts = np.split(order, starts[1:])
        return {int(i): self._at(part) for i, part in zip(documents, parts, strict=True) if i >= 0}

    def _at(self, rows: np.ndarray) -> Marks:
        names = ("exact", "f1", "in_memory", "held", "document")
        keys = tuple(self.keys[row] for row in rows)
        return Marks(keys, **{name: getattr(self, name)[rows] for name in names})


def mark(
    truths: Mapping[str, Sequence[str]],
    predictions: Mapping[str, str],
    answers: Mapping[str, Sequence[Answered]],
) -> Marks:
    """Marks every key; one without an answer counts 0."""
    keys = tuple(truths)
    pairs = [
        official.best(predictions[key], truths[key]) if key in predictions else (False, 0.0)
        for key in keys
    ]
    said = [answers.get(key, ()) for key in keys]
    return Marks(
        keys,
        exact=np.array([float(pair[0]) for pair in pairs]),
        f1=np.array([pair[1] for pair in pairs]),
        in_memory=np.array([any(one.in_memory for one in each) for each in said], bool),
        held=np.array([any(one.held for one in each) for each in said], bool),
        document=np.array([each[0].document if each else -1 for each in said]),
    )


def summary(marks: Marks) -> dict[str, Any]:
    """Percentages over all questions, and over those whose document holds an answer.

    They are summed up in the order of the keys, so that they equal the official script's.
    """

    def part(which: np.ndarray) -> dict[str, Any]:
        names = {"exact_match": "exact", "f1": "f1", "answer_in_memory": "in_memory"}
        count = int(which.sum())
        shown: dict[str, Any] = {
            name: 100.0 * sum(getattr(marks, field)[which].tolist()) / count if count else None
            for name, field in names.items()
        }
        return {**shown, "questions": count}

    return {**part(np.ones(len(marks), bool)), "held": part(marks.held)}


@dataclasses.dataclass(frozen=True)
class Result:
    """The results for a question file.

    Attributes:
        told: what `lemn evaluate` shows.
        predictions: the answers by official key.
        marks: of every key; None for a file without answers.
        by_document: the summary of each document, by its name: of the questions that were asked
            about it first.
    """

    told: dict[str, Any]
    predictions: dict[str, str]
    marks: Marks | None
    by_document: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)


def score(
    model: StreamReader,
    qa: str | os.PathLike,
    evidence: str | os.PathLike,
    slots: int | None = None,
    reading: Reading | None = None,
    context: Store | None = None,
    holding: bool = False,
) -> Result:
    """Answers every question of a file.

    Args:
        model: of documents.
        qa: question file in TriviaQA's format; without answers there are predictions only.
        evidence: folder of its documents.
        slots: another size of the memory.
        reading: of the same file by the same reader, if several policies or sizes are scored.
        context: see `documents_evidence.gather`.
        holding: ask the reader by itself, see `Reading.answer_holding`.
    """
    reading = reading or Reading(model, files.read(qa, evidence), context=context)
    collection = reading.collection
    size = slots or model.memory.slots
    answered = reading.answer_holding(size) if holding else reading.answer(model, slots)
    answers = by_key(collection, answered, collection.domains[0])
    predictions = {
        key: official.merge((one.text, one.confidence) for one in several)
        for key, several in answers.items()
    }
    told: dict[str, Any] = {
        "documents": len(collection),
        "missing_documents": len(collection.missing),
        "policy": "holding" if holding else model.memory.policy.name,
        "question_aware": not holding and model.memory.policy.question_aware,
        "slots": size,
        "data": os.path.basename(qa),
    }
    if not any(question.aliases for question in collection.questions):
        return Result({"questions": len(collection.questions), **told}, predictions, None)
    marks = mark(official.gold(qa), predictions, answers)
    parts = marks.by_document().items()
    each = {collection.entries[number].name: summary(part) for number, part in parts}
    return Result({**summary(marks), **told}, predictions, marks, each)


def bootstrap(
    ours: np.ndarray, theirs: np.ndarray, group: np.ndarray
) -> tuple[float, float, float]:
    """Difference of two means in points, with a 95% interval: whole groups are drawn again.

    Args:
        ours, theirs: marks of the same questions, 0 to 1.
        group: the document (or article) of each question.

    Example:

    >>> same = np.array([1.0, 0.0, 1.0])
    >>> bootstrap(same, same, np.array([0, 0, 1]))
    (0.0, 0.0, 0.0)
    """
    _, which = np.unique(group, return_inverse=True)
    gains = np.bincount(which, ours.astype(float) - theirs.astype(float))
    return interval(gains, np.bincount(which))


def interval(gains: np.ndarray, counts: np.ndarray) -> tuple[float, float, float]:
    """The gain of all groups in points, with a 95% interval, from those of each and its count."""
    drawn = np.random.default_rng(0).integers(0, len(counts), [DRAWS, len(counts)])
    means = 100 * gains[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(100 * gains.sum() / counts.sum()), float(low), float(high)
