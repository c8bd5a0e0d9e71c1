"""A batch of documents cut into words, slots and labelled spans, in the graph.

`pipelines.spans` says what comes out.
"""

from __future__ import annotations

from dataclasses import dataclass

import tensorflow as tf
import tensorflow_text as tf_text

from . import tokens
from .embeddings import Words
from .occurrences import Aliases, Parts, Spans, find


@dataclass(frozen=True)
class Layout:
    """How documents become slots, and answers spans.

    Attributes:
        slot_words: L, words of a slot.
        max_words: read at most this many words of a document; None for all. The paper reads 800. A
            document then counts as no longer than 32 bytes a word.
        sentences: begin a slot with every sentence too.
        slots: T, to which every batch is padded or cut; None for the longest of the batch.
        questions: Q of a document.
        question_words: words of a question; the rest is cut off.
        longest: words of an answer.
        spans: K; later spans of a question are left out.
        first_only: label the first occurrence only, as the paper does.
    """

    slot_words: int = 20
    max_words: int | None = None
    sentences: bool = False
    slots: int | None = None
    questions: int = 8
    question_words: int = 30
    longest: int = 8
    spans: int = 32
    first_only: bool = False

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not isinstance(value, bool) and value is not None and value < 1:
                raise ValueError(f"expected {name} >= 1, got {value}")


def encode(
    texts: tf.Tensor, questions: tf.Tensor, aliases: Aliases, words: Words, layout: Layout
) -> dict[str, tf.Tensor]:
    """Encodes a batch of documents in the graph.

    Args:
        texts: `[B]` strings, the documents.
        questions: `[B, Q]` strings, "" for padding.
        aliases: of all questions; `document` is the row of the batch, `question` row * Q + q.
        words: the vocabulary.
        layout: how to cut.

    Returns:
        `items` and `questions` as the `tokens.ARRAYS`, `starts` `[B, T, L]` and `question_starts`,
        and the other arrays of a batch, see `pipelines.spans`.
    """
    if layout.max_words is not None:
        texts = tf.strings.substr(texts, 0, 32 * layout.max_words)
    raw, row, place, begin, end = _words(texts, layout.max_words)
    asked = tf.strings.split(tf.reshape(questions, [-1]))
    asked = asked.to_tensor("", shape=[None, layout.question_words])
    flat = tf.concat([[""], raw, tf.reshape(asked, [-1])], 0)
    distinct, where = tf.unique(flat)  # the first is "", padding
    parts = Parts(*tokens.strip(distinct))
    table = tokens.describe(*parts, words)
    kind = where[1 : tf.size(raw) + 1]
    stops = tokens.ends_sentence(parts.word, parts.after)
    line = _line(texts, row, begin)
    starts = (place == 0) | tf.roll(tf.gather(stops, kind), 1, 0) | (line != tf.roll(line, 1, 0))
    slot, column = _slots(place, starts, row, layout)
    batch, steps = tf.size(texts), layout.slots
    if steps is None:
        steps = tf.maximum(tf.reduce_max(slot) + 1, 1)  # reduce_max of nothing is the least number
    grid = _grid((row, slot, column), [batch, steps, layout.slot_words])

    def laid(values: tf.Tensor, padding: int) -> tf.Tensor:
        filler = tf.fill([1], tf.cast(padding, values.dtype))
        return tf.gather(tf.concat([filler, values], 0), grid)

    kinds = laid(kind, 0)
    question_kinds = tf.reshape(
        where[tf.size(raw) + 1 :], [batch, layout.questions, layout.question_words]
    )
    before, _, after = (tf.gather(tf.strings.length(part), kind) for part in parts)
    ends = tf.gather(stops, question_kinds)
    length = tf.math.unsorted_segment_max(slot, row, batch)
    length = tf.minimum(tf.maximum(length, -1) + 1, steps)
    spans = find(parts, kind, row, aliases, layout.longest, not layout.first_only)
    answers, reach = _answers(spans, slot, column, steps, batch * layout.questions, layout)
    shape = [batch, layout.questions]
    there = questions != ""
    return {
        "items": {name: tf.gather(table[name], kinds) for name in tokens.ARRAYS},
        "starts": laid(starts, 0),
        "paragraph": laid(_since((place == 0) | (line - tf.roll(line, 1, 0) > 1)), 0),
        "length": length,
        "questions": {name: tf.gather(table[name], question_kinds) for name in tokens.ARRAYS},
        "question_starts": tf.concat([tf.ones_like(ends[..., :1]), ends[..., :-1]], -1),
        "ask_at": tf.where(there, length[:, None], -1),
        "answers": tf.reshape(answers, [*shape, layout.spans, 3]),
        "reach": tf.where(there, tf.reshape(reach, shape), -1),
        "offsets": tf.stack([laid(begin + before, -1), laid(end - after, -1)], -1),
    }


def _grid(at: tuple[tf.Tensor, ...], shape: list[int | tf.Tensor]) -> tf.Tensor:
    """Which word lies where, `[B, T, L]`, counted from 1; 0 for none. Later slots are left out."""
    inside = tf.where(at[1] < shape[1])[:, 0]
    places = tf.stack([tf.gather(part, inside) for part in at], -1)
    return tf.scatter_nd(places, tf.cast(inside, tf.int32) + 1, shape)


def _words(texts: tf.Tensor, most: int | None) -> tuple[tf.Tensor, ...]:
    """All words of the texts: the words, their row, their place in it, and their offsets."""
    texts = tokens.plain_spaces(texts)
    raw, begin, end = tf_text.WhitespaceTokenizer().tokenize_with_offsets(texts)
    row = tf.cast(raw.value_rowids(), tf.int32)
    splits = tf.cast(raw.row_splits, tf.int32)
    place = tf.range(tf.size(row)) - tf.gather(splits, row)
    parts = (raw.values, row, place, tf.cast(begin.values, tf.int32), tf.cast(end.values, tf.int32))
    if most is None:
        return parts
    kept = tf.where(place < most)[:, 0]
    return tuple(tf.gather(part, kept) for part in parts)


def _line(texts: tf.Tensor, row: tf.Tensor, begin: tf.Tensor) -> tf.Tensor:
    """How many ends of lines come before each word, `[W]`, counted over all texts."""
    letters = tf.io.decode_raw(tf.strings.reduce_join(texts), tf.uint8)
    lines = tf.cumsum(tf.cast(letters == ord("\n"), tf.int32))
    here = tf.cumsum(tf.strings.length(texts), exclusive=True)
    return tf.gather(lines, begin + tf.gather(here, row))


def _since(begins: tf.Tensor) -> tf.Tensor:
    """How many words `[W]` lie between each and the last that `begins` something.

    The first word must."""
    last = tf.cast(tf.where(begins)[:, 0], tf.int32)
    return tf.range(tf.size(begins)) - tf.gather(last, tf.cumsum(tf.cast(begins, tf.int32)) - 1)


def _slots(
    place: tf.Tensor, starts: tf.Tensor, row: tf.Tensor, layout: Layout
) -> tuple[tf.Tensor, tf.Tensor]:
    """The slot of each word, and its column in the slot."""
    if not layout.sentences:
        return place // layout.slot_words, place % layout.slot_words
    column = _since(starts) % layout.slot_words
    count = tf.cumsum(tf.cast(column == 0, tf.int32))  # slots so far, over all rows
    before = tf.gather(count, tf.range(tf.size(place)) - place) - 1
    return count - 1 - before, column


def _answers(
    spans: Spans,
    slot: tf.Tensor,
    column: tf.Tensor,
    steps: tf.Tensor,
    questions: tf.Tensor,
    layout: Layout,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Spans as `answers` `[questions, K, 3]`, and `reach` `[questions]`."""
    first = tf.gather(slot, spans.first)
    seen = first < steps
    within = seen & (first == tf.gather(slot, spans.first + spans.more))
    value = tf.cast(seen, tf.int32) + tf.cast(within, tf.int32)
    reach = tf.maximum(tf.math.unsorted_segment_max(value, spans.question, questions), 0)
    question = tf.boolean_mask(spans.question, within)
    rank = tf.range(tf.size(question)) - tf.searchsorted(question, question)
    kept = tf.where(rank < (1 if layout.first_only else layout.spans))
    at = tf.gather_nd(tf.stack([question, rank], -1), kept)
    found = tf.stack([first, tf.gather(column, spans.first), spans.more], -1)
    found = tf.gather_nd(tf.boolean_mask(found, within), kept)
    empty = tf.fill([questions, layout.spans, 3], -1)
    return tf.tensor_scatter_nd_update(empty, at, found), reach
