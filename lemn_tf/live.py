"""A reader to talk to: text goes in, answers come out, and its memory can be inspected.

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
from lemn_tf.retention.decision import Decision
from lemn_tf.sentences import Sentences, TextReader


class LiveReader:
    """A `StreamReader` with a memory of its own, which is filled text by text.

    Args:
        model: trained, with a `Vocabulary`, or with what `text` needs.
        text: how text goes in and answers come out; default `Sentences(model, **options)`.
        sink: called with every `Entry` that leaves the memory, so that nothing is lost silently;
            `lemn_tf.seeing.FileSink` writes them to a file.
        **options: of `lemn_tf.sentences.Sentences`: `length`, `question_length`, `text_limit`.

    Attributes:
        model: the Keras model, for `evaluate`, `fit`, `save` and all the rest.
        state: the `MemoryState`: a value, to be kept, copied and put back.
    """

    def __init__(
        self,
        model: StreamReader,
        text: TextReader | None = None,
        sink: Callable[[Entry], None] | None = None,
        **options: Any,
    ):
        self.model, self.sink = model, sink
        self._text = Sentences(model, **options) if text is None else text
        self._read = tf.function(self._text.read, autograph=False, reduce_retracing=True)
        self._answer = tf.function(self._text.answer, autograph=False)
        self.reset()

    def reset(self) -> None:
        """Forgets everything, including an expected question."""
        self.state: MemoryState = self._text.initial_state(1)
        self._keep: dict[int, float] = {}
        self._expected: str | None = None

    def expect(self, question: str) -> None:
        """Tells a policy that knows the question what will be asked, before it reads anything."""
        _check_text("a question", question)
        if not self._text.aware:
            raise ValueError(
                f"policy {self.model.memory.policy.name!r} does not use the question: just ask"
            )
        self._expected = question

    def observe(self, text: str, pin: bool = False, dry_run: bool = False) -> Observation:
        """Takes in a sentence; of a text that fills several slots see `observe_many`.

        Args:
            text: the sentence.
            pin: never drop it.
            dry_run: only say what would happen; the memory stays as it is.

        Returns:
            What happened to it (to its last slot, if it fills several), and what was dropped for
            it.
        """
        return self.observe_many([text], pin, dry_run)[-1]

    def observe_many(
        self, texts: Sequence[str], pin: bool = False, dry_run: bool = False
    ) -> list[Observation]:
        """Takes in texts in order; for a reader of documents they may have any length.

        Args:
            texts: sentences, or paragraphs.
            pin: never drop what is stored of them.
            dry_run: only say what would happen; the memory stays as it is.

        Returns:
            What happened to each slot that they filled, and what was dropped for it.
        """
        for text in texts:
            _check_text("a sentence", text)
        known = {entry.id: entry for entry in self.memory()}
        number = int(self.state.clock[0])
        read = self._read_pinned if pin else self._read
        after, decisions, told = read(
            self.state, tf.constant([list(texts)], tf.string), self._asked()
        )
        seen: list[Observation] = []
        keep = self._keep
        slots = [text.decode() for text in told[0].numpy().tolist() if text]
        for step, text in enumerate(slots):
            keep = _kept(decisions, step)
            gone = int(decisions.evicted[0, step])
            # With every slot pinned nothing more can be stored.
            entry = Entry(number, text, keep.get(number), pin and gone != number)
            known[number] = entry
            dropped = known.pop(gone, None)
            if dropped is not None:
                dropped = Entry(dropped.id, dropped.text, keep.get(gone), dropped.pinned)
            seen.append(Observation(entry, dropped))
            number += 1
        if not dry_run:
            self.state, self._keep = after, keep
            for one in seen:
                if one.dropped is not None and self.sink is not None:
                    self.sink(one.dropped)
        return seen

    def _read_pinned(
        self, state: MemoryState, texts: tf.Tensor, asked: tf.Tensor | None
    ) -> tuple[MemoryState, Any, tf.Tensor]:
        """Reads texts `[1, T]` as `TextReader.read` does, with every slot pinned as it comes."""
        taken = self._text.take(state, texts, asked)
        told = taken.entries["text"]
        mask = told != "" if taken.mask is None else taken.mask
        places = tf.where(mask[0])[:, 0]
        entries = tf.nest.map_structure(lambda x: tf.gather(x, places, axis=1), taken.entries)
        made = []
        for step in range(len(places)):
            item = tf.nest.map_structure(lambda x, step=step: x[:, step], entries)
            state, decision = self._text.memory.observe(state, item, pinned=True)
            made.append(decision)
        decisions = tf.nest.map_structure(lambda *x: tf.stack(x, axis=1), *made) if made else None
        return state._replace(stream=taken.stream), decisions, entries["text"]

    def _asked(self, questions: Sequence[str] = ()) -> tf.Tensor | None:
        """The questions `[B]` for a policy that needs them, else None."""
        if not self._text.aware:
            return None
        asked = list(questions) or ([self._expected] if self._expected else [])
        if not asked:
            raise ValueError(
                f"policy {self.model.memory.policy.name!r} needs the question: say what will be "
                "asked first, expect(question)"
            )
        return tf.constant(asked)

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
        source = entries.get(int(found["source"])) if "source" in found else None
        text, probability = found["answer"].decode(), float(found["probability"])
        return Reply(text, probability, tuple(evidence), source)

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
        """The words of a text that the model does not know."""
        return self._text.unknown(text)

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
        state, asked = self._text.initial_state(len(streams)), list(questions)
        state, _, _ = self._text.read(state, tf.constant(texts), self._asked(asked))
        answers = self._text.answer(state, tf.constant(asked))["answer"]
        return [answer.decode() for answer in answers.numpy()]

    def save(self, path: str | os.PathLike) -> None:
        """Writes the memory to a file; `load` reads it."""
        memory.save(self.state, path)

    def load(self, path: str | os.PathLike) -> None:
        """Goes on with a memory that `save` wrote, here or in another process."""
        self.state = memory.load(path, like=self.state)
        self._keep = {}


def _kept(decisions: Decision, step: int) -> dict[int, float]:
    """How likely each candidate of a step was to be kept, by id."""
    ids, keep = (leaf[0, step].numpy().tolist() for leaf in (decisions.ids, decisions.keep))
    return {id_: float(p) for id_, p in zip(ids, keep, strict=True) if id_ != EMPTY}


def _check_text(what: str, text: Any) -> None:
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"expected {what} in words; got {text!r}")
