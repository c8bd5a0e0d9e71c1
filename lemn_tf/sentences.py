"""How a reader of text takes in sentences and answers in words.

A `StreamReader` works on word ids. Here entries also hold the text itself, and questions and
answers are strings. Exported models and `lemn_tf.live` both build on this.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from lemn_tf import memory
from lemn_tf.layer import EpisodicMemory
from lemn_tf.memory import MemoryState
from lemn_tf.model import StreamReader
from lemn_tf.retention.decision import Decision
from lemn_tf.text import Vocabulary

Nest = Any


class Taken(NamedTuple):
    """Texts in the form that a memory takes in.

    Attributes:
        entries: nest of `[B, T, ...]`.
        mask: `[B, T]` bool, False for padding; None if there is none.
        stream: what is known about the stream afterwards, see `MemoryState`.
    """

    entries: Nest
    mask: tf.Tensor | None
    stream: Nest


class TextReader:
    """Text in and text out for a `StreamReader`. Subclasses define the entries.

    Args:
        model: reads live streams, so its policy must not need the future.
        text_limit: characters that are kept with an entry, so that a memory's size stays bounded.

    Attributes:
        memory: the layer that observes, over entries as `entry` says.
        stream: nest of `tf.TensorSpec`, what is kept of the stream as a whole.
        aware: whether the policy must be told the question before it reads.
    """

    memory: EpisodicMemory
    stream: Nest = ()

    def __init__(self, model: StreamReader, text_limit: int):
        if model.clairvoyant:
            raise ValueError(
                f"policy {model.memory.policy.name!r} needs to know the future: it cannot read a "
                "live stream"
            )
        self.model, self.text_limit = model, text_limit
        self.aware = model.memory.policy.question_aware

    @property
    def entry(self) -> dict[str, tf.TensorSpec]:
        """What a slot holds; `text` is the text itself."""
        raise NotImplementedError(f"{type(self).__name__} does not override entry")

    def initial_state(self, batch: int) -> MemoryState:
        """An empty memory for each of `batch` rows."""
        policy = self.memory.policy
        return memory.empty(batch, self.memory.slots, self.entry, policy.carry_spec(), self.stream)

    def take(self, state: MemoryState, texts: tf.Tensor, asked: tf.Tensor | None = None) -> Taken:
        """Converts the next texts `[B, T]`, "" for padding, into entries.

        Args:
            state: the memory.
            texts: one may fill several slots, or none.
            asked: `[B]`, the question, for a policy that is `aware`.
        """
        raise NotImplementedError(f"{type(self).__name__} does not override take()")

    def read(
        self, state: MemoryState, texts: tf.Tensor, asked: tf.Tensor | None = None
    ) -> tuple[MemoryState, Decision, tf.Tensor]:
        """Reads texts, see `take`: returns the memory, the decisions and the slots' texts.

        The decisions and texts are `[B, T', ...]`, slot by slot, "" for padding.
        """
        taken = self.take(state, texts, asked)
        after, decisions = self.memory(taken.entries, initial_state=state, mask=taken.mask)
        text = taken.entries["text"]
        told = text if taken.mask is None else tf.where(taken.mask, text, "")
        return after._replace(stream=taken.stream), decisions, told

    def answer(self, state: MemoryState, questions: tf.Tensor) -> dict[str, tf.Tensor]:
        """Answers a question `[B]` from each row of a memory; all results are `[B, ...]`."""
        raise NotImplementedError(f"{type(self).__name__} does not override answer()")

    def unknown(self, text: str) -> list[str]:
        """The words of a text that the model does not know."""
        raise NotImplementedError(f"{type(self).__name__} does not override unknown()")


class Sentences(TextReader):
    """Text in and text out for a `StreamReader` over word ids: a sentence is an entry.

    Args:
        model: has a `Vocabulary`, and a reader over word ids.
        length: words of an item, cut or padded; default the reader's `sentence_length`.
        question_length: words of a question; default as `length`.
        text_limit: characters of a sentence that are kept with its entry, so that the size of a
            memory stays bounded.
    """

    def __init__(
        self,
        model: StreamReader,
        length: int | None = None,
        question_length: int | None = None,
        text_limit: int = 512,
    ):
        if not isinstance(model.vocabulary, Vocabulary):
            raise ValueError(
                "text needs the model's words: expected a StreamReader with a Vocabulary; got "
                f"vocabulary={model.vocabulary!r}"
            )
        length = length or getattr(model.reader, "sentence_length", None)
        if not length:
            raise ValueError("the reader does not say how long a sentence is: pass length=")
        super().__init__(model, text_limit)
        self.vocabulary = model.vocabulary
        self.length, self.question_length = length, question_length or length
        inner = model.memory
        self.memory = EpisodicMemory(
            inner.slots, inner.policy, lambda entries: inner.encode(entries["tokens"])
        )

    @property
    def entry(self) -> dict[str, tf.TensorSpec]:
        return {
            "tokens": tf.TensorSpec([self.length], tf.int32),
            "text": tf.TensorSpec([], tf.string),
        }

    def encode(self, sentences: tf.Tensor) -> Nest:
        """Turns sentences with any leading dimensions into entries with the same."""
        text = tf.strings.unicode_transcode(sentences, "UTF-8", "UTF-8", errors="replace")
        text = tf.strings.substr(text, 0, self.text_limit, unit="UTF8_CHAR")
        return {"tokens": self.vocabulary(text, length=self.length), "text": text}

    def take(self, state, texts, asked=None):
        return Taken(self.encode(texts), texts != "", state.stream)

    def answer(self, state: MemoryState, questions: tf.Tensor) -> dict[str, tf.Tensor]:
        """Answers a question `[B]` from each row of a memory; all results are `[B, ...]`."""
        reader = self.model.reader
        query = reader.ask(self.vocabulary(questions, length=self.question_length))
        result = reader.read(query, reader.encode(state.entries["tokens"]), state.ids)
        probabilities = tf.nn.softmax(result.logits)
        best = tf.argmax(result.logits, axis=-1)
        return {
            "answer": self.vocabulary.text(best[:, None]),
            "probability": tf.reduce_max(probabilities, axis=-1),
            "probabilities": probabilities,
            "answers": tf.tile(
                tf.constant([["", "[unk]", *self.vocabulary.words]]), [tf.shape(best)[0], 1]
            ),
            "attention": result.attention,
            "texts": state.entries["text"],
            "ids": state.ids,
        }

    def unknown(self, text):
        found = self.vocabulary.unknown_words(tf.constant([text])).numpy()[0]
        return list(dict.fromkeys(found.decode().split()))
