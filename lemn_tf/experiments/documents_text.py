"""Text in and text out for readers of documents: articles are cut into slots as they come.

A slot holds up to L words and its text. What the reader makes of them is worked out from the text
whenever it is needed, so that a memory stays small and can be read by people. Of the stream as a
whole a memory carries which stems have occurred, for the view of a policy (`arrival`). All of it
is made of core operations of TensorFlow, so that a model can be exported with it.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from lemn_tf.experiments.documents_words import arrival, words_of
from lemn_tf.export.servable import Servable
from lemn_tf.layer import EpisodicMemory
from lemn_tf.memory import MemoryState
from lemn_tf.model import StreamReader
from lemn_tf.pipelines import tokens
from lemn_tf.readers.spans import SpanReader
from lemn_tf.readers.words import QUESTION
from lemn_tf.sentences import Taken, TextReader

BITS = 32
EXAMPLE = {
    "item": [
        "The leaning tower stands in Pisa, a town in Tuscany.",
        "It took 199 years to build, and began to sink in 1178 when the second floor was added.",
    ],
    "question": "When did the tower of Pisa begin to sink?",
}
"""The example on the card of a reader of documents."""


class Passages(TextReader):
    """Text in and text out for a `StreamReader` of documents.

    Args:
        model: has a `WordList`, and a reader of spans.
        text_limit: characters that are kept of a slot, so that the size of a memory stays bounded.
    """

    def __init__(self, model: StreamReader, text_limit: int = 512):
        self.words, _ = words_of(model)
        self.known: Any = model.vocabulary
        if not isinstance(model.reader, SpanReader):
            raise ValueError(f"expected a reader of spans; got {type(model.reader).__name__}")
        if model.reader.sentence or model.reader.context_width:
            raise ValueError(
                "this model sees MiniLM's vectors, which are made of whole files before "
                "they are read: it cannot be given text as it comes, use lemn evaluate"
            )
        super().__init__(model, text_limit)
        self.length = model.reader.words
        inner = model.memory
        self.memory = EpisodicMemory(
            inner.slots, inner.policy, lambda entries: inner.encode(self._described(entries))
        )

    @property
    def entry(self) -> dict[str, tf.TensorSpec]:
        spec = {
            "text": tf.TensorSpec([], tf.string),
            "starts": tf.TensorSpec([self.length], tf.bool),
        }
        if self.model.reader.slot:
            spec["arrival"] = tf.TensorSpec([self.model.reader.slot], tf.float32)
        if self.aware:
            spec["asked"] = tf.TensorSpec([], tf.string)
        if self.model.reader.before:
            spec["before"] = tf.TensorSpec([self.length], tf.int32)
        return spec

    @property
    def stream(self) -> dict[str, tf.TensorSpec] | tuple:
        if not self.model.reader.slot:
            return ()
        spec = {"stems": tf.TensorSpec([tokens.IDF // BITS], tf.int32)}
        if self.model.reader.before:
            spec["last"] = tf.TensorSpec([self.length], tf.int32)
        return spec

    @property
    def _idf(self) -> tf.Tensor:
        return tf.cast(tf.convert_to_tensor(self.known.idf), tf.float32)

    # -- texts to slots ---------------------------------------------------------------------------

    def take(self, state: MemoryState, texts: tf.Tensor, asked: tf.Tensor | None = None) -> Taken:
        """Texts `[B, T]` of any length as slots `[B, T']`; each text begins a new one."""
        raw, starts, paragraph, mask = self._cut(texts)
        text = tf.strings.strip(tf.strings.reduce_join(raw, axis=-1, separator=" "))
        text = tf.strings.substr(text, 0, self.text_limit, unit="UTF8_CHAR")
        entries = {"text": text, "starts": starts}
        stream = state.stream
        if self.model.reader.slot:
            described = tokens.encode(raw, self.words, self._idf, starts)
            seen = _unpacked(stream["stems"])
            known = arrival(described, paragraph, seen, state.clock)
            entries["arrival"] = known[..., : self.model.reader.slot]
            stream = {"stems": _packed(seen | _marked(described))}
            if self.model.reader.before:
                stems = tf.concat([state.stream["last"][:, None], described["stem"]], axis=1)
                entries["before"] = stems[:, :-1]
                count = tf.reduce_sum(tf.cast(mask, tf.int32), axis=1)
                stream["last"] = tf.gather(stems, count, batch_dims=1)
        if self.aware:
            known = self._asked(texts, asked)
            entries["asked"] = tf.broadcast_to(known[:, None], tf.shape(text))
        return Taken(entries, mask, stream)

    def _cut(self, texts: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Words, sentence starts, words of the paragraph before, `[B, T', L]` each, and which slots
        there are, `[B, T']`."""
        rows, length = tf.shape(texts)[0], self.length
        words, starts, before = tokens.split(tf.reshape(texts, [-1]))
        longest = tf.cast(tf.maximum(words.bounding_shape()[1], 1), tf.int32)
        pieces = -(-longest // length)
        shape = [tf.size(texts), pieces * length]

        def laid(ragged, fill):
            whole = ragged.to_tensor(fill, shape=shape)
            return tf.reshape(whole, [rows, tf.shape(texts)[1] * pieces, length])

        raw, begins, before = laid(words, ""), laid(starts, False), laid(before, 0)
        mask = raw[..., 0] != ""
        order = tf.argsort(tf.cast(~mask, tf.int32), axis=1, stable=True)
        most = tf.maximum(tf.reduce_max(tf.reduce_sum(tf.cast(mask, tf.int32), axis=1)), 1)
        order = order[:, :most]
        return tuple(tf.gather(x, order, batch_dims=1) for x in (raw, begins, before, mask))

    def _asked(self, texts: tf.Tensor, asked: tf.Tensor | None) -> tf.Tensor:
        if asked is None:
            raise ValueError("the policy knows the question: expected it beside the text, got none")
        return tf.strings.substr(_valid(asked), 0, self.text_limit, unit="UTF8_CHAR")

    # -- slots to what the reader gets ------------------------------------------------------------

    def _raw(self, texts: tf.Tensor, length: int) -> tf.Tensor:
        """Words `[..., length]` of texts `[...]`."""
        words = tokens.split(tf.reshape(texts, [-1]))[0].to_tensor("", shape=[None, length])
        whole = tf.reshape(words, tf.concat([tf.shape(texts), [length]], axis=0))
        return tf.ensure_shape(whole, [*texts.shape, length])

    def _described(self, entries: dict[str, tf.Tensor]) -> dict[str, Any]:
        raw = self._raw(entries["text"], self.length)
        found: dict[str, Any] = tokens.encode(raw, self.words, self._idf, entries["starts"])
        if "arrival" in entries:
            found["slot"] = entries["arrival"]
        if "before" in entries:
            found["before"] = entries["before"]
        if "asked" in entries:
            found["asked"] = self._question(entries["asked"])
        return found

    def _question(self, texts: tf.Tensor) -> dict[str, tf.Tensor]:
        return tokens.encode(self._raw(texts, QUESTION), self.words, self._idf)

    def answer(self, state: MemoryState, questions: tf.Tensor) -> dict[str, tf.Tensor]:
        """Answers a question `[B]` from each row of a memory; all results are `[B, ...]`.

        `source` is the id of the slot that the answer stands in, -1 if memory is empty, and `span`
        its first and last word there.
        """
        reader = self.model.reader
        entries = {k: leaf for k, leaf in state.entries.items() if k not in ("asked", "before")}
        codes = reader.encode(self._described(entries))
        said = reader.read(reader.ask(self._question(questions)), codes, state.ids)
        best = reader.best(said)
        here = tf.argmax(state.ids == best.slot[:, None], axis=-1)
        text = tf.gather(state.entries["text"], here, batch_dims=1)
        found = _between(self._raw(text, self.length), best.start, best.end)
        return {
            "answer": tf.where(best.slot >= 0, found, ""),
            "probability": best.confidence,
            "source": best.slot,
            "span": tf.stack([best.start, best.end], axis=-1),
            "attention": said.attention,
            "texts": state.entries["text"],
            "ids": state.ids,
        }

    def unknown(self, text: str) -> list[str]:
        """The words of a text that have no vector of their own."""
        raw, *_ = tokens.split(tf.constant([text]))
        _, word, _ = tokens.strip(raw.values)
        lower = tf.strings.lower(word, encoding="utf-8")
        told = tf.boolean_mask(lower, self.words(lower) > self.words.known).numpy()
        return list(dict.fromkeys(each.decode() for each in told))


def _valid(texts: tf.Tensor) -> tf.Tensor:
    return tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")


def _between(raw: tf.Tensor, start: tf.Tensor, end: tf.Tensor) -> tf.Tensor:
    """The text from one word to another, without the punctuation around it: `[B]`.

    Args:
        raw: words `[B, L]`.
        start, end: `[B]`, the first and the last word.
    """
    places = tf.range(tf.shape(raw)[1])
    inside = (places >= start[:, None]) & (places <= end[:, None])
    text = tf.strings.strip(
        tf.strings.reduce_join(tf.where(inside, raw, ""), axis=-1, separator=" ")
    )
    before, _, _ = tokens.strip(tf.gather(raw, start, batch_dims=1))
    _, _, after = tokens.strip(tf.gather(raw, end, batch_dims=1))
    left, right = tf.strings.length(before), tf.strings.length(after)
    return tf.strings.substr(text, left, tf.maximum(tf.strings.length(text) - left - right, 0))


def _unpacked(bits: tf.Tensor) -> tf.Tensor:
    """`[B, IDF / 32]` int32 -> `[B, IDF]` bool."""
    each = tf.bitwise.right_shift(bits[..., None], tf.range(BITS)) & 1
    return tf.reshape(each > 0, [-1, tokens.IDF])


def _packed(flags: tf.Tensor) -> tf.Tensor:
    """The inverse of `_unpacked`."""
    each = tf.cast(tf.reshape(flags, [-1, tokens.IDF // BITS, BITS]), tf.int32)
    return tf.reduce_sum(tf.bitwise.left_shift(each, tf.range(BITS)), axis=-1)


def _marked(items: dict[str, tf.Tensor]) -> tf.Tensor:
    """`[B, IDF]` bool: the stems of slots `[B, T, L]`."""
    stems = tf.reshape(items["stem"] % tokens.IDF, [tf.shape(items["stem"])[0], -1])
    live = tf.where(tf.reshape(items["words"], tf.shape(stems)) > 0)
    rows, stem = tf.cast(live[:, 0], tf.int32), tf.gather_nd(stems, live)
    shape = [tf.shape(stems)[0], tokens.IDF]
    return tf.scatter_nd(tf.stack([rows, stem], -1), tf.ones_like(stem), shape) > 0


def documents_servable(model: StreamReader, text_limit: int = 512) -> Servable:
    """A `StreamReader` of documents: articles and questions in, spans of text out.

    Args:
        model: see `Passages`.
        text_limit: characters that are kept of a slot.
    """
    text = Passages(model, text_limit)
    reader, policy, known = model.reader, model.memory.policy, text.known
    one = tf.TensorSpec([], tf.string)
    return Servable(
        memory=text.memory,
        entry=text.entry,
        stream=text.stream,
        item={"item": one},
        question={"question": one},
        encode=None,
        asked={"asked": "question"} if text.aware else {},
        take=lambda state, items, asked: text.take(state, items["item"], asked.get("asked")),
        answer=lambda state, asked: text.answer(state, asked["question"]),
        layers=(reader, policy, model.memory.encoder, known),
        tables=(text.words.table,),
        identity={
            "reader": type(reader).__name__,
            "policy": type(policy).__name__,
            "words": list(known.words),
        },
        streams={"item": "sentences"},
        example=EXAMPLE,
        facts={
            "reader": type(reader).__name__,
            "question_aware": text.aware,
            "slot_words": text.length,
            "text_limit": text_limit,
        },
    )
