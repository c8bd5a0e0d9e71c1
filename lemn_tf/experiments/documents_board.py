"""A training over documents in TensorBoard: one curve over its stages, and what memory holds.

Some of the documents are looked at along each stage: what is answered and kept beside the rules,
life-lines, and memory tables. Once compiled, that takes a few seconds each time. It does not change
the numbers of the training.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from lemn_tf import loop
from lemn_tf.experiments.documents_reading import Batch, Reading
from lemn_tf.experiments.minilm import Store
from lemn_tf.model import StreamReader
from lemn_tf.pipelines import documents as files
from lemn_tf.seeing.boards import Board
from lemn_tf.seeing.subjects_documents import DocumentSubject

LOOKED_AT = 8
"""How many documents are looked at, and how many questions of each."""
LOOKS = 5
"""How often they are looked at in a stage, beside its beginning."""


class BoardedRun(loop.Run):
    """A run whose history is written for TensorBoard too, to `logs/` in its folder.

    Args: as of `loop.Run`.
    """

    def __init__(self, folder: str | os.PathLike, config: dict[str, Any]):
        super().__init__(folder, config)
        self.board = Board(self.folder / "logs", config, recall=True)
        self.subject: DocumentSubject | None = None
        self.stages: list[str] = []
        self.began = self.step = 0  # updates, of all stages together
        for line in self.history():
            self._enter(line["stage"], marked=False)
            self.step = self.began + _updates(line)

    def _enter(self, stage: str, marked: bool = True) -> None:
        """A stage begins, unless it has already."""
        if stage in self.stages:
            return
        self.stages.append(stage)
        self.began = self.step
        if marked:
            self.board.phase(stage, len(self.stages) - 1, self.began)

    def log(self, line: dict[str, Any]) -> None:
        """Adds a line to the history, which is a point of the curve."""
        super().log(line)
        self._enter(line["stage"])
        self.step = self.began + _updates(line)
        self.board.scalars(line, self.step)

    def look(self, stage: str, updates: int) -> None:
        """Looks at what the model does now, after so many updates of a stage."""
        self._enter(stage)
        if self.subject is not None:
            self.board.look(self.subject, self.began + updates)


def _updates(line: dict[str, Any]) -> int:
    """How many updates of its stage were made; older histories only count epochs."""
    return line.get("update", line.get("epoch", 0) + 1)


class Looks(keras.callbacks.Callback):
    """Has a run look at the model when a stage begins, along it, and at its end.

    Args:
        run: of the training.
        stage: its name.
        updates: how many it has.
        done: how many of them were made before.
        before: called before each look.
    """

    def __init__(
        self,
        run: BoardedRun,
        stage: str,
        updates: int,
        done: int = 0,
        before: Callable[[], None] = lambda: None,
    ):
        super().__init__()
        self.run, self.stage, self.done, self.before = run, stage, done, before
        self.updates, self.every = updates, max(1, -(-updates // LOOKS))

    def _look(self) -> None:
        self.before()
        self.run.look(self.stage, self.done)

    def on_train_begin(self, logs=None):
        self._look()

    def on_train_batch_end(self, batch, logs=None):
        self.done += 1
        if self.done % self.every == 0 and self.done < self.updates:  # the end comes by itself
            self._look()

    def on_train_end(self, logs=None):
        self._look()


class InTraining(DocumentSubject):
    """A model, looked at as it is each time, and some of the documents that it is trained on.

    Args:
        model: in training.
        collection: what it is trained on.
        context: where the vectors of a language model come from, if it sees them.
    """

    measure = "wrong answers"

    def __init__(
        self, model: StreamReader, collection: files.Collection, context: Store | None = None
    ):
        self._read(model, Reading(model, few(collection), batch_size=1, context=context))
        self.name = self.data = "training"
        self._acting = functools.cache(self._act)

    def score(self, policy: str | None = None, slots: int | None = None) -> dict[str, Any]:
        act = self._acting(self._as(policy), slots)
        counts = [self._marks(batch, act(batch)) for batch in self._batches]
        asked, right, found = np.sum(counts, axis=0).tolist()
        return {
            "result": round(100 * (1 - right / asked), 3),
            "recall": round(100 * found / asked, 3),
            "count": asked,
        }

    @functools.cached_property
    def _batches(self) -> list[Batch]:
        return list(self._reading.batches)

    def _act(self, policy: str | None, slots: int | None) -> Callable[[Batch], tf.Tensor]:
        return self._reading.acting(self._with(policy), slots)

    @functools.cached_property
    def _marks(self) -> Callable[[Batch, tf.Tensor], tf.Tensor]:
        """How many questions there are, answered right, with an answer in memory."""

        def marks(batch, kept):
            right = self.model.reader.right(self.model.answer(batch, kept), batch["answers"])
            places = tf.cast(batch["answers"][..., 0, None], tf.int64)
            here = (places == kept[..., None, :]) & (places >= 0)
            asked = batch["ask_at"] >= 0
            parts = (asked, asked & right, asked & tf.reduce_any(here, axis=[-2, -1]))
            return tf.stack([tf.reduce_sum(tf.cast(part, tf.int32)) for part in parts])

        spec = self._reading.spec
        kept = tf.TensorSpec([*spec["ask_at"].shape, None], tf.int64)
        return tf.function(marks, input_signature=[spec, kept], autograph=False)


def few(collection: files.Collection) -> files.Collection:
    """Some of the documents, evenly spread, with some of their questions."""
    chosen = np.linspace(0, len(collection) - 1, min(LOOKED_AT, len(collection))).round()
    entries = [collection.entries[int(number)] for number in chosen]
    cut = [dataclasses.replace(entry, questions=entry.questions[:LOOKED_AT]) for entry in entries]
    return dataclasses.replace(collection, entries=tuple(cut))
