"""Where the answers are: spans of words whose normal form is that of an alias, found by hashing.

Both are read as lists of tokens, as the official rules split them: `AC/DC` is "ac dc". A list is
summed up in one number (a polynomial of the tokens' 64-bit hashes), and the number of a span comes
from that of the span one word shorter. So all spans of all documents of a batch are looked up in a
few operations. Two lists meet in one number once in 10^18 cases; labels bear that, scores never
depend on it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

_BASE = 0x1E3779B97F4A7C15
_ROW = 0x2545F4914F6CDD1D
_BITS = 1 << 16
_SEPARATORS = r"[!-/:-@\[-`{-~‘’´\pZ]"
_KEPT = r"([“”„«»‹›–—…¿¡·•†‡\x{feff}])"
_POWERS = np.cumprod([1] + [_BASE] * 63, dtype=np.int64)


class Fingerprint(NamedTuple):
    """The tokens of strings `[U]`: their number, their sum, and what appending them multiplies by.

    The sum of "x y" is `x.value * y.power + y.value`.
    """

    tokens: tf.Tensor
    value: tf.Tensor
    power: tf.Tensor


class Spans(NamedTuple):
    """Right spans, by question and place: question `[n]`, first word `[n]`, words - 1 `[n]`."""

    question: tf.Tensor
    first: tf.Tensor
    more: tf.Tensor


def fingerprint(text: tf.Tensor) -> Fingerprint:
    """Sums up the normal forms of strings `[U]`; articles and punctuation add nothing.

    Example:

    >>> a, b, c = fingerprint(tf.constant(["AC/DC", "the ac dc!", "dc ac"])).value.numpy()
    >>> bool(a == b), bool(a == c)
    (True, False)
    """
    text = tf.strings.regex_replace(tf.strings.lower(text, encoding="utf-8"), _SEPARATORS, " ")
    tokens = tf.strings.split(tf.strings.regex_replace(text, _KEPT, r" \1 "))
    hashes = tf.strings.to_hash_bucket_fast(tokens.values, 1 << 62)
    articles = tf.strings.to_hash_bucket_fast(tf.constant(["a", "an", "the"]), 1 << 62)
    kept = tf.reduce_all(hashes[:, None] != articles, axis=-1)
    rows = tf.boolean_mask(tokens.value_rowids(), kept)
    hashes = tf.boolean_mask(hashes, kept)
    count = tf.math.bincount(tf.cast(rows, tf.int32), minlength=tf.size(text))
    ends = tf.gather(tf.cumsum(count), rows)  # one past the last token of the row
    powers = tf.constant(_POWERS)
    place = tf.minimum(ends - 1 - tf.range(tf.size(hashes)), len(_POWERS) - 1)
    value = tf.math.unsorted_segment_sum(hashes * tf.gather(powers, place), rows, tf.size(text))
    return Fingerprint(count, value, tf.gather(powers, tf.minimum(count, len(_POWERS) - 1)))


def _append(left: Fingerprint, right: Fingerprint) -> Fingerprint:
    return Fingerprint(
        left.tokens + right.tokens,
        left.value * right.power + right.value,
        left.power * right.power,
    )


def _take(of: Fingerprint, index: tf.Tensor) -> Fingerprint:
    return Fingerprint(*(tf.gather(part, index) for part in of))


class Parts(NamedTuple):
    """Distinct words `[U]` as `tokens.strip` gives them."""

    before: tf.Tensor
    word: tf.Tensor
    after: tf.Tensor


def find(
    parts: Parts,
    words: tf.Tensor,
    document: tf.Tensor,
    aliases: tuple[tf.Tensor, tf.Tensor, tf.Tensor],
    longest: int,
    articles: bool = True,
) -> Spans:
    """Finds every span of up to `longest` words that says an alias of a question.

    The span begins without the punctuation before its first word and ends without that after its
    last one.

    Args:
        parts: the distinct words.
        words: `[W]` index into them, all words of all documents in order.
        document: `[W]` int32, the document of each word.
        aliases: value of the fingerprint `[A]` int64, document `[A]`, question `[A]` int32.
        longest: words of a span.
        articles: whether to give "the Beatles" beside "Beatles": both are right.

    Returns:
        The spans, ordered by question, first word and length.
    """
    few, where = tf.unique(tf.concat([parts.before, parts.after], 0))
    edges = fingerprint(few)
    core = _take(fingerprint(parts.word), words)
    lead = _take(edges, tf.gather(where[: tf.size(parts.word)], words))
    tail = _take(edges, tf.gather(where[tf.size(parts.word) :], words))
    previous = Fingerprint(*(tf.roll(part, 1, 0) for part in tail))
    step = _append(_append(previous, lead), core)
    filled = core.tokens > 0
    starts = filled
    if articles:
        lower = tf.strings.lower(parts.word)
        article = (lower == "a") | (lower == "an") | (lower == "the")
        starts |= tf.gather(article, words) & _ahead(filled, 1, False)
    sums, here = core.value, filled
    keys, valid = [], []
    for more in range(longest):
        if more:
            sums = sums * _ahead(step.power, more, 1) + _ahead(step.value, more, 0)
            here = starts & _ahead(filled, more, False) & (_ahead(document, more, -1) == document)
        keys.append(sums)
        valid.append(here)
    row = tf.cast(document, tf.int64) * _ROW
    return _look_up(tf.stack(keys, -1) + row[:, None], tf.stack(valid, -1), aliases)


def _ahead(of: tf.Tensor, by: int, padding: int | bool) -> tf.Tensor:
    """The values `by` places further on; `padding` beyond the end."""
    filler = tf.fill(tf.minimum(tf.shape(of), by), tf.cast(padding, of.dtype))
    return tf.concat([of[by:], filler], 0)


def _look_up(
    keys: tf.Tensor, valid: tf.Tensor, aliases: tuple[tf.Tensor, tf.Tensor, tf.Tensor]
) -> Spans:
    value, document, question = aliases
    wanted = value + tf.cast(document, tf.int64) * _ROW
    order = tf.argsort(wanted)
    wanted, question = tf.gather(wanted, order), tf.gather(question, order)

    def bits(numbers: tf.Tensor) -> tf.Tensor:
        mixed = tf.bitwise.bitwise_xor(numbers, tf.bitwise.right_shift(numbers, 32))
        return tf.cast(tf.bitwise.bitwise_and(mixed, _BITS - 1), tf.int32)

    maybe = tf.tensor_scatter_nd_update(
        tf.zeros([_BITS], tf.bool), bits(wanted)[:, None], tf.ones_like(wanted, tf.bool)
    )
    hits = tf.where(tf.gather(maybe, bits(keys)) & valid)  # a few more than there are
    sought = tf.gather_nd(keys, hits)
    low = tf.searchsorted(wanted, sought)
    count = tf.searchsorted(wanted, sought, side="right") - low
    hit = tf.repeat(tf.range(tf.size(low)), count)
    nth = tf.range(tf.size(hit)) - tf.gather(tf.cumsum(count, exclusive=True), hit)
    asked = tf.gather(question, tf.gather(low, hit) + nth)
    first, more = tf.unstack(tf.cast(tf.gather(hits, hit), tf.int32), num=2, axis=-1)
    by_question = tf.argsort(asked, stable=True)
    return Spans(*(tf.gather(part, by_question) for part in (asked, first, more)))
