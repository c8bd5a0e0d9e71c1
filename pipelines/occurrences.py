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
_HASHES = 1 << 62
_PLAIN = 24
_SEPARATORS = r"[!-/:-@\[-`{-~‘’´\pZ]"
_KEPT = r"([“”„«»‹›–—…¿¡·•†‡\x{feff}])"
_POWERS = np.cumprod([1] + [_BASE] * 63, dtype=np.int64)


class Fingerprint(NamedTuple):
    """The tokens of strings `[U]`: their number, the first one's hash, and their sum.

    The sum of "x y" is `x.value * y.power + y.value`.
    """

    tokens: tf.Tensor
    first: tf.Tensor
    value: tf.Tensor
    power: tf.Tensor


class Aliases(NamedTuple):
    """What is looked for, `[A]` each: fingerprints (first hash and sum), document, question."""

    first: tf.Tensor
    value: tf.Tensor
    document: tf.Tensor
    question: tf.Tensor


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
    lower = tf.strings.lower(text, encoding="utf-8")
    letters = tf.io.decode_raw(lower, tf.uint8, fixed_length=_PLAIN)
    low = (letters >= ord("a")) & (letters <= ord("z")) | (letters == 0)
    plain = tf.reduce_all(low | (letters >= ord("0")) & (letters <= ord("9")), -1)
    plain &= tf.strings.length(lower) <= _PLAIN  # most words are one token as they stand
    others = tf.where(~plain)
    found = _fingerprint(tf.gather_nd(lower, others))
    hashes = tf.strings.to_hash_bucket_fast(lower, _HASHES)
    filled = tf.cast(_counts(hashes) & (lower != ""), tf.int32)
    hashes *= tf.cast(filled, tf.int64)
    powers = tf.gather(tf.constant(_POWERS), filled)
    one = Fingerprint(filled, hashes, hashes, powers)
    return Fingerprint(
        *(tf.tensor_scatter_nd_update(a, others, b) for a, b in zip(one, found, strict=True))
    )


def _counts(hashes: tf.Tensor) -> tf.Tensor:
    """Whether a token counts: it is no article."""
    articles = tf.strings.to_hash_bucket_fast(tf.constant(["a", "an", "the"]), _HASHES)
    return tf.reduce_all(hashes[:, None] != articles, axis=-1)


def _fingerprint(lower: tf.Tensor) -> Fingerprint:
    """As `fingerprint`, of strings in lower case that may be several tokens."""
    text = tf.strings.regex_replace(lower, _SEPARATORS, " ")
    tokens = tf.strings.split(tf.strings.regex_replace(text, _KEPT, r" \1 "))
    hashes = tf.strings.to_hash_bucket_fast(tokens.values, _HASHES)
    kept = tf.where(_counts(hashes))[:, 0]
    rows, hashes = tf.gather(tokens.value_rowids(), kept), tf.gather(hashes, kept)
    count = tf.math.bincount(tf.cast(rows, tf.int32), minlength=tf.size(text))
    ends = tf.cumsum(count)
    powers = tf.constant(_POWERS)
    place = tf.gather(ends, rows) - 1 - tf.range(tf.size(hashes))
    terms = hashes * tf.gather(powers, tf.minimum(place, len(_POWERS) - 1))
    value = tf.math.unsorted_segment_sum(terms, rows, tf.size(text))
    first = tf.gather(tf.concat([hashes, [0]], 0), ends - count)
    first = tf.where(count > 0, first, 0)
    return Fingerprint(count, first, value, tf.gather(powers, tf.minimum(count, len(_POWERS) - 1)))


def _append(left: Fingerprint, right: Fingerprint) -> Fingerprint:
    return Fingerprint(
        left.tokens + right.tokens,
        tf.where(left.tokens > 0, left.first, right.first),
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
    aliases: Aliases,
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
        aliases: what to look for.
        longest: words of a span.
        articles: whether to give "the Beatles" beside "Beatles": both are right.

    Returns:
        The spans, ordered by question, first word and length.
    """
    few, where = tf.unique(tf.concat([parts.before, parts.after], 0))
    edges, cores = fingerprint(few), fingerprint(parts.word)
    leads, tails = where[: tf.size(parts.word)], where[tf.size(parts.word) :]
    rows = tf.cast(document, tf.int64) * _ROW
    filled = tf.gather(cores.tokens > 0, words)
    wanted = _Filter(aliases.first + tf.cast(aliases.document, tf.int64) * _ROW)
    begins = filled & wanted(tf.gather(cores.first, words) + rows)
    if articles:
        lower = tf.strings.lower(parts.word)
        article = (lower == "a") | (lower == "an") | (lower == "the")
        begins |= tf.gather(article, words) & tf.concat([begins[1:], [False]], 0)
    first = tf.cast(tf.where(begins)[:, 0], tf.int32)  # only here can a span begin
    kind, row = tf.gather(words, first), tf.gather(rows, first)
    keys, valid = [tf.gather(cores.value, kind) + row], [tf.gather(filled, first)]
    for more in range(1, longest):
        last = tf.minimum(first + more, tf.size(words) - 1)
        before, kind = kind, tf.gather(words, last)
        step = _append(_take(edges, tf.gather(tails, before)), _take(edges, tf.gather(leads, kind)))
        step = _append(step, _take(cores, kind))
        keys.append((keys[-1] - row) * step.power + step.value + row)
        same = (first + more == last) & (tf.gather(rows, last) == row)
        valid.append(same & tf.gather(filled, last))
    question, start, more = _look_up(tf.stack(keys, -1), tf.stack(valid, -1), aliases)
    return Spans(question, tf.gather(first, start), more)


class _Filter:
    """Tells quickly that a number is not among those wanted; errs only on the other side."""

    def __init__(self, wanted: tf.Tensor) -> None:
        self.bits = tf.tensor_scatter_nd_update(
            tf.zeros([_BITS], tf.bool), self.place(wanted)[:, None], tf.ones_like(wanted, tf.bool)
        )

    def place(self, numbers: tf.Tensor) -> tf.Tensor:
        mixed = tf.bitwise.bitwise_xor(numbers, tf.bitwise.right_shift(numbers, 32))
        return tf.cast(tf.bitwise.bitwise_and(mixed, _BITS - 1), tf.int32)

    def __call__(self, numbers: tf.Tensor) -> tf.Tensor:
        return tf.gather(self.bits, self.place(numbers))


def _look_up(keys: tf.Tensor, valid: tf.Tensor, aliases: Aliases) -> Spans:
    """The pairs of keys `[S, longest]` and aliases that are equal, with places in `keys`."""
    wanted = aliases.value + tf.cast(aliases.document, tf.int64) * _ROW
    hits = tf.where(_Filter(wanted)(keys) & valid)
    order = tf.argsort(wanted)
    wanted, question = tf.gather(wanted, order), tf.gather(aliases.question, order)
    sought = tf.gather_nd(keys, hits)
    low = tf.searchsorted(wanted, sought)
    count = tf.searchsorted(wanted, sought, side="right") - low
    hit = tf.repeat(tf.range(tf.size(low)), count)
    nth = tf.range(tf.size(hit)) - tf.gather(tf.cumsum(count, exclusive=True), hit)
    asked = tf.gather(question, tf.gather(low, hit) + nth)
    first, more = tf.unstack(tf.cast(tf.gather(hits, hit), tf.int32), num=2, axis=-1)
    by_question = tf.argsort(asked, stable=True)
    return Spans(*(tf.gather(part, by_question) for part in (asked, first, more)))
