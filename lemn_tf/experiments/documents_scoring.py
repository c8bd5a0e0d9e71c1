"""Scores of a model over documents: exact match and F1 by TriviaQA's rules, and what was kept."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from lemn_tf.episode import by_question
from lemn_tf.experiments import triviaqa_scoring as official
from lemn_tf.experiments.documents_evidence import with_arrival
from lemn_tf.model import StreamReader
from lemn_tf.pipelines import documents as files
from lemn_tf.pipelines import spans as pipeline
from lemn_tf.pipelines.answers import normalize
from lemn_tf.pipelines.embeddings import Words
from lemn_tf.wordlist import WordList


@dataclasses.dataclass(frozen=True)
class Answered:
    """The answer to one question from one document.

    Attributes:
        question: index into the collection's questions.
        document: index of the document.
        text: the answer.
        place: byte offsets of it in the document.
        slot: of the document that it stands in.
        confidence: its probability.
        in_memory: whether a right answer was in memory.
        held: whether the document holds one at all.
    """

    question: int
    document: int
    text: str
    place: tuple[int, int]
    slot: int
    confidence: float
    in_memory: bool
    held: bool


def words_of(model: StreamReader) -> tuple[Words, np.ndarray]:
    """The vocabulary and the idf that a model was trained with."""
    known = model.vocabulary
    if not isinstance(known, WordList):
        raise ValueError(
            "expected a model of documents, which brings its words; got one with "
            f"{type(known).__name__}"
        )
    return Words(known.words, known.buckets), np.asarray(known.idf, np.float32)


def answer(
    model: StreamReader, collection: files.Collection, slots: int | None = None, batch_size: int = 4
) -> list[Answered]:
    """Answers every question from each of its documents, read into memory slot by slot.

    Args:
        model: of documents.
        collection: what to read.
        slots: another size of the memory.
        batch_size: documents at a time.
    """
    words, idf = words_of(model)
    reader, aware = model.reader, model.memory.policy.question_aware
    layout = pipeline.Layout(slot_words=reader.words, longest=reader.longest)
    data = pipeline.dataset(collection, words, batch_size, layout, idf=idf)
    if reader.slot:
        data = data.map(with_arrival)

    def run(batch):
        episode = by_question(batch) if aware else batch
        _, kept = model.act(episode, slots=slots, seed=tf.constant([0, 0]))
        said = model.answer(episode, kept)
        best = reader.best(said)
        found = tf.reduce_any(
            (episode["answers"][..., 0, None] == tf.cast(kept, tf.int32)[..., None, :])
            & (episode["answers"][..., 0, None] >= 0),
            axis=[-2, -1],
        )
        shape = tf.shape(batch["ask_at"])
        told = {**best._asdict(), "found": found}
        return {name: tf.reshape(leaf, shape) for name, leaf in told.items()}

    run = tf.function(run, autograph=False, reduce_retracing=True)
    answered: list[Answered] = []
    for batch in data:
        told = {name: leaf.numpy() for name, leaf in run(batch).items()}
        answered += _rows(collection, {k: v.numpy() for k, v in _flat(batch).items()}, told)
    return answered


def _flat(batch: dict[str, Any]) -> dict[str, tf.Tensor]:
    return {name: batch[name] for name in ("document", "question", "offsets", "reach")}


def _rows(collection, batch, told) -> list[Answered]:
    """What came of one batch, question by question."""
    rows = []
    for row, document in enumerate(batch["document"]):
        text = collection[int(document)]
        for q in np.flatnonzero(batch["question"][row] >= 0):
            slot, start, end = (int(told[name][row, q]) for name in ("slot", "start", "end"))
            offsets = batch["offsets"][row, max(slot, 0)]
            place = (int(offsets[start, 0]), int(offsets[end, 1])) if slot >= 0 else (0, 0)
            rows.append(
                Answered(
                    question=int(batch["question"][row, q]),
                    document=int(document),
                    text=text.between(*place),
                    place=place,
                    slot=slot,
                    confidence=float(told["confidence"][row, q]),
                    in_memory=bool(told["found"][row, q]),
                    held=bool(batch["reach"][row, q] >= 1),
                )
            )
    return rows


def merged(answered: Sequence[Answered]) -> dict[int, str]:
    """One answer a question: confidences are summed by normal form, and the largest sum wins.

    Of the texts with that normal form, the most confident one is given.
    """
    sums: dict[int, dict[str, float]] = {}
    texts: dict[tuple[int, str], Answered] = {}
    for one in answered:
        key = normalize(one.text)
        table = sums.setdefault(one.question, {})
        table[key] = table.get(key, 0.0) + one.confidence
        before = texts.get((one.question, key))
        if before is None or one.confidence > before.confidence:
            texts[one.question, key] = one
    return {
        question: texts[question, max(table, key=lambda key: table[key])].text
        for question, table in sums.items()
    }


@dataclasses.dataclass(frozen=True)
class Marks:
    """How questions were answered, one row each.

    Attributes:
        exact, f1: 0 to 1.
        in_memory: whether a right answer was in memory, of any document.
        held: whether a document holds one at all.
        document: index of the (first) document, to draw whole documents in a bootstrap; -1 where a
            question has none.
    """

    exact: np.ndarray
    f1: np.ndarray
    in_memory: np.ndarray
    held: np.ndarray
    document: np.ndarray


def marks(collection: files.Collection, answered: Sequence[Answered]) -> Marks:
    """Marks every question of a collection; one without an answer counts 0."""
    predictions = merged(answered)
    count = len(collection.questions)
    exact, f1 = np.zeros(count), np.zeros(count)
    in_memory, held = np.zeros(count, bool), np.zeros(count, bool)
    document = np.full(count, -1)
    for one in reversed(answered):
        in_memory[one.question] |= one.in_memory
        held[one.question] |= one.held
        document[one.question] = one.document
    for i, question in enumerate(collection.questions):
        if i in predictions and question.normalized_aliases:
            exact[i], f1[i] = official.mark(predictions[i], question.normalized_aliases)
    return Marks(exact, f1, in_memory, held, document)


def summary(marked: Marks) -> dict[str, Any]:
    """Percentages over all questions, and over those whose document holds an answer."""

    def percent(values):
        return round(100 * float(np.mean(values)), 3) if len(values) else None

    held = marked.held
    return {
        "exact_match": percent(marked.exact),
        "f1": percent(marked.f1),
        "answer_in_memory": percent(marked.in_memory),
        "questions": len(marked.exact),
        "held": {
            "exact_match": percent(marked.exact[held]),
            "f1": percent(marked.f1[held]),
            "answer_in_memory": percent(marked.in_memory[held]),
            "questions": int(held.sum()),
        },
    }


def score(
    model: StreamReader,
    qa: str | os.PathLike,
    evidence: str | os.PathLike,
    slots: int | None = None,
) -> tuple[dict[str, Any], dict[str, str], Marks]:
    """Answers every question of a file.

    Args:
        model: of documents.
        qa: question file in TriviaQA's format.
        evidence: folder of its documents.
        slots: another size of the memory.

    Returns:
        What `lemn evaluate` shows, the predictions by question id, and the marks.
    """
    collection = files.read(qa, evidence)
    answered = answer(model, collection, slots)
    marked = marks(collection, answered)
    predictions = {collection.questions[i].id: text for i, text in merged(answered).items()}
    told = {
        **summary(marked),
        "documents": len(collection),
        "missing_documents": len(collection.missing),
        "policy": model.memory.policy.name,
        "question_aware": model.memory.policy.question_aware,
        "slots": slots or model.memory.slots,
        "data": str(qa),
    }
    return told, predictions, marked


def bootstrap(
    ours: np.ndarray, theirs: np.ndarray, group: np.ndarray, draws: int = 2000, seed: int = 0
) -> tuple[float, float, float]:
    """Difference of two means in points, with a 95% interval: whole groups are drawn again.

    Args:
        ours, theirs: marks of the same questions, 0 to 1.
        group: the document (or article) of each question.
        draws: how often.
        seed: of the draws.

    Example:

    >>> same = np.array([1.0, 0.0, 1.0])
    >>> bootstrap(same, same, np.array([0, 0, 1]))
    (0.0, 0.0, 0.0)
    """
    _, which = np.unique(group, return_inverse=True)
    gains = np.bincount(which, ours.astype(float) - theirs.astype(float))
    counts = np.bincount(which)
    drawn = np.random.default_rng(seed).integers(0, len(counts), [draws, len(counts)])
    means = 100 * gains[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(100 * gains.sum() / counts.sum()), float(low), float(high)
