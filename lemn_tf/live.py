"""A reader one can talk to: sentences in, answers out, and a memory one can look into.

reader = lemn_tf.from_preset("babi-noisy-st-lemn-5")
reader.observe("Mary took the milk.")
reader.observe("Mary went to the garden.")
reader.ask("Where is the milk?").text            # 'garden'
reader.memory()                                  # what it still holds
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from lemn_tf import memory
from lemn_tf.entries import Entry, Observation, Reply
from lemn_tf.memory import EMPTY, MemoryState
from lemn_tf.model import StreamReader
from lemn_tf.sentences import Sentences


class LiveReader:
    """A `StreamReader` with a memory of its own that is filled sentence by sentence.

    Args:
        model: trained, with a `Vocabulary`.
        sink: called with every `Entry` that leaves the memory, so that nothing is lost silently;
            `lemn_tf.seeing.FileSink` writes them to a file.
        **options: of `lemn_tf.sentences.Sentences`: `length`, `question_length`, `text_limit`.

    Attributes:
        model: the Keras model, for `evaluate`, `fit`, `save` and all the rest.
        state: the `MemoryState`: a value, to be kept, copied and put back.
    """

    def __init__(
        self, model: StreamReader, sink: Callable[[Entry], None] | None = None, **options: Any
    ):
        self.model, self.sink = model, sink
        self._sentences = Sentences(model, **options)
        self._observe = tf.function(self._observed, autograph=False)
        self._answer = tf.function(self._sentences.answer, autograph=False)
        self.reset()

    def reset(self) -> None:
        """Forgets everything."""
        self.state: MemoryState = self._sentences.memory.initial_state(1, self._sentences.entry)
        self._keep: dict[int, float] = {}

    def _observed(self, state: MemoryState, text: tf.Tensor):
        return self._sentences.memory.observe(state, self._sentences.encode(text))

    def observe(self, text: str, pin: bool = False, dry_run: bool = False) -> Observation:
        """Takes in one sentence.

        Args:
            text: the sentence.
            pin: keep it whatever comes.
            dry_run: only say what would become of it; the memory stays as it is.

        Returns:
            What became of it, and what was dropped for it.
        """
        _check_text("a sentence", text)
        before = {entry.id: entry for entry in self.memory()}
        number = int(self.state.clock[0])
        after, decision = self._observe(self.state, tf.constant([text]))
        ids, shares = decision.ids[0].numpy().tolist(), decision.keep[0].numpy().tolist()
        keep = {id_: float(p) for id_, p in zip(ids, shares, strict=True) if id_ != EMPTY}
        entry = Entry(number, text, keep.get(number), pin)
        gone = int(decision.evicted[0])
        dropped = {**before, number: entry}.get(gone)
        if dropped is not None:
            dropped = Entry(dropped.id, dropped.text, keep.get(gone), dropped.pinned)
        if dry_run:
            return Observation(entry, dropped)
        self.state, self._keep = after, keep
        if pin and gone != number:
            self.state = memory.pin(self.state, number)
        if dropped is not None and self.sink is not None:
            self.sink(dropped)
        return Observation(entry, dropped)

    def ask(self, question: str) -> Reply:
        """Answers a question from what is in memory; the memory stays as it is."""
        _check_text("a question", question)
        found = {
            name: value.numpy()[0]
            for name, value in self._answer(self.state, tf.constant([question])).items()
        }
        entries = {entry.id: entry for entry in self.memory()}
        weights = zip(found["ids"].tolist(), found["attention"].tolist(), strict=True)
        evidence = [(entries[id_], float(w)) for id_, w in weights if id_ in entries]
        evidence.sort(key=lambda pair: -pair[1])
        return Reply(found["answer"].decode(), float(found["probability"]), tuple(evidence))

    def memory(self) -> list[Entry]:
        """What it holds, oldest first."""
        ids, pinned = self.state.ids[0].numpy().tolist(), self.state.pinned[0].numpy().tolist()
        texts = self.state.entries["text"][0].numpy().tolist()
        return [
            Entry(id_, text.decode(), self._keep.get(id_), held)
            for id_, text, held in zip(ids, texts, pinned, strict=True)
            if id_ != EMPTY
        ]

    def unknown_words(self, text: str) -> list[str]:
        """The words of a text that the model has never seen."""
        found = self._sentences.vocabulary.unknown_words(tf.constant([text])).numpy()[0]
        return list(dict.fromkeys(found.decode().split()))

    def predict(self, streams: Sequence[Sequence[str]], questions: Sequence[str]) -> list[str]:
        """Reads whole streams, each into an empty memory, and answers a question about each.

        Args:
            streams: lists of sentences, of any length.
            questions: one for each stream.

        Returns:
            The answers. The memory of the conversation stays as it is.
        """
        if isinstance(streams, str) or any(isinstance(stream, str) for stream in streams):
            raise TypeError("expected a list of streams, each a list of sentences; got a string")
        if len(streams) != len(questions):
            raise ValueError(
                f"expected one question for each stream; got {len(streams)} streams and "
                f"{len(questions)} questions"
            )
        if not len(streams):
            return []
        steps = max(1, *(len(stream) for stream in streams))
        texts = np.full([len(streams), steps], "", object)
        for row, stream in enumerate(streams):
            texts[row, : len(stream)] = stream
        mask = tf.sequence_mask([len(stream) for stream in streams], steps)
        state, _ = self._sentences.memory(self._sentences.encode(tf.constant(texts)), mask=mask)
        answers = self._sentences.answer(state, tf.constant(list(questions)))["answer"]
        return [answer.decode() for answer in answers.numpy()]

    def save(self, path: str | os.PathLike) -> None:
        """Writes the memory to a file; `load` reads it."""
        memory.save(self.state, path)

    def load(self, path: str | os.PathLike) -> None:
        """Goes on with a memory that `save` wrote, here or in another process."""
        self.state = memory.load(path, like=self.state)
        self._keep = {}


def _check_text(what: str, text: Any) -> None:
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"expected {what} in words; got {text!r}")
