"""What a trained reader has to say about every slot of every document, worked out once.

Slots meet only in the softmax of a `LiteReader`. So what it answers from any memory follows from
what it says about each slot alone, and a policy is trained and tested without reading again:

    A, Z      log-sums of the scores of the right spans, and of all spans, of a slot
    best      the score of its best span: the answer from a memory is the best span of all its slots
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf

from lemn_tf.experiments.documents_words import ARRIVAL as ARRIVAL
from lemn_tf.experiments.documents_words import arrival
from lemn_tf.experiments.minilm import Store
from lemn_tf.pipelines import spans as pipeline
from lemn_tf.pipelines.documents import Collection
from lemn_tf.pipelines.embeddings import Words
from lemn_tf.readers.lite import LiteReader
from lemn_tf.readers.words import WordReader
from lemn_tf.readers.wordviews import overlap


@dataclasses.dataclass(frozen=True)
class Evidence:
    """One document of T slots with Q questions, as a reader sees it.

    Attributes:
        name: of the document.
        vectors: `[T, E]`, what a policy sees of each slot.
        lexical: `[T, 3 L]`, what rules for words see of it.
        right, total, best: `[Q, T]`, A, Z and the score of the best span.
        holds: `[Q, T]` bool, whether a right span is in the slot.
        shared: `[Q, T]`, the share of the question's idf that is in the slot.
        spans: `[Q, T, 2]`, byte offsets of the best span in the document.
        questions: `[Q]`, indices into the collection's questions.
    """

    name: str
    vectors: np.ndarray
    lexical: np.ndarray
    right: np.ndarray
    total: np.ndarray
    best: np.ndarray
    holds: np.ndarray
    shared: np.ndarray
    spans: np.ndarray
    questions: np.ndarray

    @property
    def slots(self) -> int:
        """T."""
        return len(self.vectors)


def with_arrival(batch: dict, before: bool = False) -> dict:
    """A batch of `pipelines.spans` whose items have `slot`, see `arrival`.

    Args:
        batch: the batch.
        before: whether they have the stems of the slot `before` each, too.
    """
    items = {**batch["items"], "slot": arrival(batch["items"], batch["paragraph"])}
    if before:
        items["before"] = tf.pad(items["stem"], [[0, 0], [1, 0], [0, 0]])[:, :-1]
    return {**batch, "items": items}


def sees_context(reader: WordReader, context: Store | None) -> bool:
    """Whether a reader needs the vectors of a language model; raises if they have no folder."""
    needed = bool(reader.sentence or reader.context_width)
    if needed and context is None:
        raise ValueError(
            "this model sees MiniLM's vectors: expected a folder for them (--minilm DIR)"
        )
    return needed


def with_context(
    data: tf.data.Dataset, reader: WordReader, collection: Collection, context: Store | None
) -> Iterator[dict]:
    """The batches of a dataset, with the vectors of a language model that the reader needs."""
    if not sees_context(reader, context):
        yield from data
        return
    assert context is not None
    for batch in data:
        items, questions = dict(batch["items"]), dict(batch["questions"])
        if reader.sentence:
            items["sentence"] = context.of_batch(batch, collection)
        if reader.context_width:
            items["context"], questions["context"] = context.context_of(batch, collection)
        yield {**batch, "items": items, "questions": questions}


def spec_with_context(spec: dict, reader: WordReader) -> dict:
    """Nest of `tf.TensorSpec`: batches like these, as `with_context` gives them."""
    items, questions = dict(spec["items"]), dict(spec["questions"])
    if reader.sentence:
        shape = [*items["words"].shape[:2], reader.sentence]
        items["sentence"] = tf.TensorSpec(shape, tf.float32)
    if reader.context_width:
        for texts in (items, questions):
            shape = [*texts["words"].shape, reader.context_width]
            texts["context"] = tf.TensorSpec(shape, tf.float32)
    return {**spec, "items": items, "questions": questions}


def gather(
    reader: LiteReader,
    collection: Collection,
    words: Words,
    idf: np.ndarray,
    layout: pipeline.Layout = pipeline.Layout(),  # noqa: B008 (frozen)
    read: bool = True,
    context: Store | None = None,
) -> list[Evidence]:
    """Reads every slot of every document with every question.

    Args:
        reader: trained.
        collection: the documents.
        words, idf: as the reader was trained.
        layout: how documents become slots, and which spans count as answers.
        read: whether to ask the reader. Without, everything but A, Z, `best` and `spans` is there:
            enough to learn what to keep from whether an answer is in memory.
        context: where the language model's vectors in the reader's view come from.
    """
    lexical = reader.lexical()

    def look(batch):
        items = batch["items"]
        asked = {name: leaf[:, :, None] for name, leaf in batch["questions"].items()}
        ids = tf.range(tf.shape(items["words"])[1])
        found = {
            "vectors": reader.summary(items),
            "lexical": lexical.view(items),
            "holds": tf.reduce_any(batch["answers"][..., 0, None] == ids, axis=2),
            "shared": overlap({"stem": items["stem"][:, None]}, asked),
        }
        return {**found, **(said(batch) if read else _unread(found["holds"]))}

    def said(batch):
        items = batch["items"]
        codes, query = reader.encode(items), reader.ask(batch["questions"])
        right, total, scores = reader.evidence(query, codes, batch["answers"])
        shape = tf.shape(scores)
        flat = tf.reshape(scores, [shape[0], shape[1], shape[2], -1])
        place = tf.argmax(flat, axis=-1, output_type=tf.int32)
        start = place // reader.longest
        end = start + place % reader.longest
        offsets = batch["offsets"][:, None]  # [B, 1, T, L, 2]
        offsets = tf.broadcast_to(offsets, tf.concat([shape[:3], tf.shape(offsets)[3:]], axis=0))
        found = [tf.gather(offsets[..., k], at, batch_dims=3) for k, at in ((0, start), (1, end))]
        best = tf.reduce_max(flat, axis=-1)
        return {"right": right, "total": total, "best": best, "spans": tf.stack(found, axis=-1)}

    look = tf.function(look, autograph=False, reduce_retracing=True)
    parts: dict[int, list] = {}
    data = pipeline.dataset(collection, words, 4, layout, idf=idf)
    data = data.map(with_arrival) if reader.slot else data
    for batch in with_context(data, reader, collection, context):
        seen = {name: leaf.numpy() for name, leaf in look(batch).items()}
        for row, document in enumerate(batch["document"].numpy()):
            parts.setdefault(int(document), []).append(_row(seen, batch, row))
    return [_joined(collection.entries[number].name, parts[number]) for number in sorted(parts)]


def _unread(holds: tf.Tensor) -> dict[str, tf.Tensor]:
    """What replaces the reader's scores if it is not asked: nothing is ever answered."""
    nothing = tf.fill(tf.shape(holds), -1e9)
    zero = tf.zeros(tf.shape(holds))
    spans = tf.zeros([*tf.unstack(tf.shape(holds)), 2], tf.int32)
    return {"right": nothing, "total": zero, "best": zero, "spans": spans}


PER_SLOT = ("vectors", "lexical")


def _row(seen: dict[str, np.ndarray], batch: dict, row: int) -> dict[str, np.ndarray]:
    """One document of a batch without its padding."""
    length = int(batch["length"][row])
    number = batch["question"][row].numpy()
    asked = number >= 0
    cut = {
        name: leaf[row][:length] if name in PER_SLOT else leaf[row][asked][:, :length]
        for name, leaf in seen.items()
    }
    return {**cut, "questions": number[asked]}


def _joined(name: str, parts: Sequence[dict[str, np.ndarray]]) -> Evidence:
    """A document that came in several parts, each with other questions."""
    whole = {
        key: parts[0][key] if key in PER_SLOT else np.concatenate([part[key] for part in parts])
        for key in parts[0]
    }
    return Evidence(name, **whole)


def padded(documents: Sequence[Evidence], names: Sequence[str]) -> dict[str, np.ndarray]:
    """Documents as arrays `[B, T, ...]` or `[B, Q, T]`, with their `length` and who is `asked`."""
    steps = max(document.slots for document in documents)
    questions = max(len(document.questions) for document in documents)
    arrays: dict[str, np.ndarray] = {
        "length": np.array([document.slots for document in documents], np.int32),
        "asked": np.array(
            [np.arange(questions) < len(document.questions) for document in documents]
        ),
    }
    shape: tuple[int, int]
    fill: float
    for name in names:
        leaves = [getattr(document, name) for document in documents]
        if name in PER_SLOT:
            shape, fill = (steps, leaves[0].shape[-1]), 0
        else:
            shape, fill = (questions, steps), -1e9 if name in ("right", "total", "best") else 0
        whole = np.full([len(leaves), *shape], fill, leaves[0].dtype)
        for row, leaf in enumerate(leaves):
            whole[row, : leaf.shape[0], : leaf.shape[1]] = leaf
        arrays[name] = whole
    return arrays


def by_length(documents: Sequence[Evidence], size: int) -> Iterator[list[int]]:
    """Indices of documents of similar length, a batch at a time."""
    order = np.argsort([document.slots for document in documents], kind="stable")
    for start in range(0, len(order), size):
        yield list(order[start : start + size])
