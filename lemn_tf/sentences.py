"""How a reader of text takes in sentences and answers in words, whoever drives it.

A `StreamReader` works on word ids. Here entries also hold the sentence itself, for people, and
questions and answers are strings. Exported models and `lemn_tf.live` both stand on this.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from lemn_tf.layer import EpisodicMemory
from lemn_tf.memory import MemoryState
from lemn_tf.model import StreamReader
from lemn_tf.text import Vocabulary

Nest = Any


class Sentences:
    """Text in and text out for a `StreamReader`.

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
        if model.clairvoyant:
            raise ValueError(
                f"policy {model.memory.policy.name!r} needs to know the future: it cannot read a "
                "live stream"
            )
        self.model, self.vocabulary = model, model.vocabulary
        self.length, self.question_length = length, question_length or length
        self.text_limit = text_limit
        inner = model.memory
        self.memory = EpisodicMemory(
            inner.slots, inner.policy, lambda entries: inner.encode(entries["tokens"])
        )

    @property
    def entry(self) -> dict[str, tf.TensorSpec]:
        """What a slot holds."""
        return {
            "tokens": tf.TensorSpec([self.length], tf.int32),
            "text": tf.TensorSpec([], tf.string),
        }

    def encode(self, sentences: tf.Tensor) -> Nest:
        """Sentences with any leading dimensions to entries with the same."""
        text = tf.strings.unicode_transcode(sentences, "UTF-8", "UTF-8", errors="replace")
        text = tf.strings.substr(text, 0, self.text_limit, unit="UTF8_CHAR")
        return {"tokens": self.vocabulary(text, length=self.length), "text": text}

    def answer(self, state: MemoryState, questions: tf.Tensor) -> dict[str, tf.Tensor]:
        """Answers a question `[B]` from each row of a memory; all that comes back is `[B, ...]`."""
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
