"""Documents read into memory slot by slot, and answered from, by any policy over one reader."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import tensorflow as tf

from lemn_tf.episode import by_question
from lemn_tf.experiments.documents_evidence import (
    sees_context,
    spec_with_context,
    with_arrival,
    with_context,
)
from lemn_tf.experiments.documents_reader import holding
from lemn_tf.experiments.documents_words import words_of
from lemn_tf.experiments.minilm import Store
from lemn_tf.model import StreamReader
from lemn_tf.pipelines import documents as files
from lemn_tf.pipelines import spans as pipeline
from lemn_tf.readers.base import take_items

Batch = dict[str, Any]
"""What `pipelines.spans` gives."""
HELD = 1 << 28
"""Bytes of batches, with what the reader made of their slots, to hold for the next policy."""


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


class Reading:
    """A collection as one reader sees it: traced and read once for any number of policies.

    Batches are held if all take up to `HELD` bytes, and made again each time if they take more.

    Args:
        model: of documents; its reader reads.
        collection: what to read.
        batch_size: documents at a time.
        context: see `evidence.gather`.
    """

    def __init__(
        self,
        model: StreamReader,
        collection: files.Collection,
        batch_size: int = 4,
        context: Store | None = None,
    ):
        words, idf = words_of(model)
        self.reader, self.collection = model.reader, collection
        # An answer is in memory however long it is, if it lies within a slot.
        layout = pipeline.Layout(slot_words=self.reader.words, longest=self.reader.words)
        data = pipeline.dataset(collection, words, batch_size, layout, idf=idf)
        known = functools.partial(with_arrival, before=self.reader.before)
        self.data = data.map(known) if self.reader.slot else data
        self.context = context
        self._held: list[tuple[Batch, tf.Tensor]] = []

    def answer(self, model: StreamReader, slots: int | None = None) -> list[Answered]:
        """Answers every question from each of its documents.

        Args:
            model: any policy over the same reader.
            slots: another size of the memory.
        """
        act = self.acting(model, slots)
        return self._answered(lambda number, batch: act(batch))

    def acting(self, model: StreamReader, slots: int | None = None) -> Callable[[Batch], tf.Tensor]:
        """From a batch to what a policy has in memory at each question, ids `[B, Q, N]`.

        Args: as of `answer`.
        """
        if model.reader is not self.reader:
            raise ValueError("expected a model with the reader that read the documents")
        aware = model.memory.policy.question_aware

        def act(batch):
            episode = by_question(batch) if aware else batch
            if model.clairvoyant:  # any place that holds an answer will do: the newest is kept
                episode = {**episode, "support": episode["answers"][..., 0]}
            _, kept = model.act(episode, slots=slots, seed=tf.constant([0, 0]))
            return tf.reshape(kept, [*tf.unstack(tf.shape(batch["ask_at"])), -1])

        return tf.function(act, input_signature=[self.spec], autograph=False)

    def answer_holding(self, slots: int, seed: int = 0) -> list[Answered]:
        """Answers from slots drawn at random, one of which holds an answer if any does.

        What is `held` then is what a slot holds: an answer across the end of one does not count.

        Args:
            slots: how many for each question.
            seed: of the draw.
        """
        draw = tf.function(
            lambda batch, number: holding(batch, slots, tf.stack([seed, number])),
            input_signature=[self.spec, tf.TensorSpec([], tf.int32)],
            autograph=False,
        )
        rows = self._answered(lambda number, batch: draw(batch, tf.constant(2 * number)))
        return [dataclasses.replace(row, held=row.in_memory) for row in rows]

    def _answered(self, choose: Callable[[int, Batch], tf.Tensor]) -> list[Answered]:
        """The answers from what is chosen of every batch; several batches are under way at once."""

        def told(number, batch, codes):
            best = self._best(batch, choose(number, batch), codes)
            return _rows(self.collection, batch, best)

        answered: list[Answered] = []
        workers = os.cpu_count() or 1
        with ThreadPoolExecutor(workers) as pool:
            under_way: deque[Future[list[Answered]]] = deque()
            for number, (batch, codes) in enumerate(self._batches()):
                under_way.append(pool.submit(told, number, batch, codes))
                if len(under_way) > workers:
                    answered += under_way.popleft().result()
            for one in under_way:
                answered += one.result()
        return answered

    @functools.cached_property
    def batches(self) -> tf.data.Dataset:
        """Every batch, with the vectors of a language model that the reader needs."""
        if not sees_context(self.reader, self.context):
            return self.data

        def known():
            return with_context(self.data, self.reader, self.collection, self.context)

        made = tf.data.Dataset.from_generator(known, output_signature=self.spec)
        return made.apply(tf.data.experimental.assert_cardinality(self.data.cardinality()))

    def _batches(self) -> Iterator[tuple[Batch, tf.Tensor]]:
        """Every batch, and the codes of its slots."""
        if self._held:
            yield from self._held
            return
        held, room = [], HELD
        for batch in self.batches:
            read = batch, self._encode(batch["items"])
            room -= sum(int(tf.size(leaf)) * leaf.dtype.size for leaf in tf.nest.flatten(read))
            if room >= 0:
                held.append(read)
            yield read
        self._held = held if room >= 0 else []

    @functools.cached_property
    def spec(self) -> Batch:
        """Nest of `tf.TensorSpec`: a batch."""
        return spec_with_context(self.data.element_spec, self.reader)

    @functools.cached_property
    def _encode(self) -> Any:
        spec = self.spec["items"]
        return tf.function(self.reader.encode, input_signature=[spec], autograph=False)

    @functools.cached_property
    def _best(self) -> Callable[..., dict[str, tf.Tensor]]:
        """The best answer to every question from what was `kept` `[B, Q, N]`."""

        def best(batch, kept, codes):
            queries = self.reader.ask(batch["questions"])
            said = self.reader.read(queries, take_items(codes, kept), kept)
            right = batch["answers"][..., 0, None]
            found = tf.reduce_any(
                (right == tf.cast(kept, tf.int32)[..., None, :]) & (right >= 0), axis=[-2, -1]
            )
            return {**self.reader.best(said)._asdict(), "found": found}

        spec = self.spec
        some = [*spec["ask_at"].shape, None]
        codes = self._encode.get_concrete_function().structured_outputs
        signature = [spec, tf.TensorSpec(some, tf.int64), tf.TensorSpec(codes.shape, codes.dtype)]
        return tf.function(best, input_signature=signature, autograph=False)


def _rows(collection: files.Collection, batch: Batch, told: Batch) -> list[Answered]:
    """The answers of one batch, question by question."""
    batch = {name: batch[name].numpy() for name in ("document", "question", "offsets", "reach")}
    told = {name: leaf.numpy() for name, leaf in told.items()}
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
