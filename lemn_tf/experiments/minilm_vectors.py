"""Contextual vectors of documents, encoded once by MiniLM and kept in a file.

    vectors = Vectors.make("squad.npz", collection, words, layout)      # read if it is there
    data = vectors.attach(spans.dataset(collection, words, 4, layout))

A batch then has `items["vectors"]` `[B, T, 384]` and `questions["vectors"]` `[B, Q, 384]`, float32,
and with `each_word=True` `items["word_vectors"]` `[B, T, L, 384]`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from pathlib import Path

import numpy as np
import tensorflow as tf

from lemn_tf.experiments.minilm import DIMENSIONS, MiniLM
from lemn_tf.files import replacing
from lemn_tf.pipelines import spans
from lemn_tf.pipelines.documents import Collection
from lemn_tf.pipelines.embeddings import Words
from lemn_tf.pipelines.slots import Layout


@dataclasses.dataclass(frozen=True)
class Vectors:
    """Vectors of a collection's slots and questions.

    Attributes:
        slots: `[S, 384]`, those of all documents one after another.
        splits: `[D + 1]`, where those of each document begin.
        questions: `[len(collection.questions), 384]`.
        words: `[S, L, 384]`, or None.
    """

    slots: np.ndarray
    splits: np.ndarray
    questions: np.ndarray
    words: np.ndarray | None = None

    @classmethod
    def make(
        cls,
        path: str | os.PathLike,
        collection: Collection,
        words: Words,
        layout: Layout = Layout(),  # noqa: B008 (frozen)
        *,
        each_word: bool = False,
        model: MiniLM | None = None,
    ) -> Vectors:
        """Reads the file, or encodes the collection and writes it; whole or not at all.

        Args:
            path: the `.npz` file.
            collection, words, layout: as for `spans.dataset`.
            each_word: keep a vector for each word too.
            model: the encoder; None loads MiniLM when it is needed.

        Returns:
            The vectors.
        """
        path, key = Path(path), _key(collection, layout, each_word)
        if path.exists():
            with np.load(path, allow_pickle=False) as stored:
                if str(stored["key"]) != key:
                    raise ValueError(
                        f"{path}: made for other documents or slots; remove it or name another file"
                    )
                return cls(**{name: stored[name] for name in stored.files if name != "key"})
        made = cls._encode(collection, words, layout, each_word, model or MiniLM())
        path.parent.mkdir(parents=True, exist_ok=True)
        arrays = {name: array for name, array in vars(made).items() if array is not None}
        with replacing(path) as temporary, temporary.open("wb") as file:
            np.savez(file, key=np.array(key), **arrays)
        return made

    @classmethod
    def _encode(
        cls, collection: Collection, words: Words, layout: Layout, each_word: bool, model: MiniLM
    ) -> Vectors:
        count = layout.slot_words if each_word else 0
        slots: dict[int, np.ndarray] = {}
        of_words: dict[int, np.ndarray] = {}
        for batch in spans.encoded(collection, words, 8, layout).as_numpy_iterator():
            for row, number in enumerate(batch["document"].tolist()):
                if number not in slots:
                    document = collection[number]
                    offsets = batch["offsets"][row, : batch["length"][row]]
                    texts = [
                        [document.between(*pair) for pair in slot if pair[0] >= 0]
                        for slot in offsets
                    ]
                    slots[number], found = model(texts, count)
                    if found is not None:
                        of_words[number] = found.astype(np.float16)
        ordered = [slots.get(n, np.zeros((0, DIMENSIONS))) for n in range(len(collection))]
        asked = model([question.text.split() for question in collection.questions])[0]
        return cls(
            np.concatenate(ordered).astype(np.float16),
            np.cumsum([0, *map(len, ordered)]),
            asked.astype(np.float16),
            np.concatenate([of_words[n] for n in sorted(of_words)]) if of_words else None,
        )

    def attach(self, data: tf.data.Dataset) -> tf.data.Dataset:
        """Adds the vectors to the batches of `spans.dataset` or `records.read`."""
        slots, questions = tf.constant(self.slots), tf.constant(self.questions)
        words = None if self.words is None else tf.constant(self.words)
        splits = tf.constant(self.splits, tf.int32)

        def add(batch: spans.Batch) -> spans.Batch:
            steps = tf.range(tf.shape(batch["items"]["words"])[1])
            there = steps < batch["length"][:, None]
            index = tf.where(there, tf.gather(splits, batch["document"])[:, None] + steps, 0)
            out = {**batch, "items": dict(batch["items"]), "questions": dict(batch["questions"])}
            out["items"]["vectors"] = _masked(tf.gather(slots, index), there)
            if words is not None:
                out["items"]["word_vectors"] = _masked(tf.gather(words, index), there)
            asked = batch["question"]
            found = tf.gather(questions, tf.maximum(asked, 0))
            out["questions"]["vectors"] = _masked(found, asked >= 0)
            return out

        return data.map(add, tf.data.AUTOTUNE)


def _masked(values: tf.Tensor, there: tf.Tensor) -> tf.Tensor:
    mask = tf.reshape(there, tf.concat([tf.shape(there), [1] * (values.ndim - there.ndim)], 0))
    return tf.where(mask, tf.cast(values, tf.float32), 0.0)


def _key(collection: Collection, layout: Layout, each_word: bool) -> str:
    """What the vectors depend on: the documents, their slots and the questions."""
    about = [
        [(entry.name, entry.size) for entry in collection.entries],
        [question.text for question in collection.questions],
        [layout.slot_words, layout.max_words, layout.sentences, layout.slots, each_word],
    ]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()
