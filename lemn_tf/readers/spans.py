"""Answers that are stretches of the text in memory: what readers of documents share.

An entry is a slot of L words. A span is a slot, the word it begins with, and how many more words it
has: at most W words, within one slot. A right answer may occur several times, so the targets of a
question are a list of spans, by the slots' positions in the stream:

    targets[..., k, :] = (slot, first word, words - 1), -1 where there are fewer than K

Each span must be listed once. p(y | M) is the summed probability of those that are in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from lemn_tf.memory import EMPTY
from lemn_tf.readers.base import Reader

IMPOSSIBLE = -1e9
"""Logit of a span that cannot be; finite, so that no gradient becomes NaN."""


class SpanAnswer(NamedTuple):
    """What a reader of spans answers; a `readers.Answer` that knows which slots it refers to.

    Attributes:
        logits: `[..., M * L * W]`, log-probabilities of all spans, slot by slot.
        attention: `[..., M]`, the probability that the answer is in each slot.
        ids: `[..., M]` int64, the slots' positions in the stream, -1 = unused.
    """

    logits: tf.Tensor
    attention: tf.Tensor
    ids: tf.Tensor


class Span(NamedTuple):
    """Where an answer stands: `[...]` each.

    Attributes:
        slot: position in the stream, -1 if memory is empty.
        start, end: the first and the last word in it.
        confidence: its probability.
    """

    slot: tf.Tensor
    start: tf.Tensor
    end: tf.Tensor
    confidence: tf.Tensor


class SpanReader(Reader):
    """A reader whose answers are spans. Subclasses override `encode`, `ask` and `read`.

    Args:
        words: L, the width of a slot.
        longest: W, the most words of an answer.
    """

    def __init__(self, words: int, longest: int, **kwargs):
        super().__init__(**{"autocast": False, **kwargs})
        if not 1 <= longest <= words:
            raise ValueError(
                f"expected answers of 1 to {words} words, the width of a slot; got {longest}"
            )
        self.words, self.longest = words, longest

    def loss(self, answer, targets):
        """-log of the summed probability of all right spans in memory; 0 if there are none."""
        found, log_p = in_memory(answer, targets, self.words, self.longest)
        return tf.where(found, -log_p, 0.0)

    def right(self, answer, targets):
        """Whether the likeliest span is one of the right ones."""
        index, inside = places(answer.ids, targets, self.words, self.longest)
        best = tf.argmax(answer.logits, axis=-1, output_type=index.dtype)
        return tf.reduce_any(inside & (index == best[..., None]), axis=-1)

    def probability(self, answer, targets):
        """The summed probability of all right spans in memory."""
        found, log_p = in_memory(answer, targets, self.words, self.longest)
        return tf.where(found, tf.exp(log_p), 0.0)

    def best(self, answer: SpanAnswer) -> Span:
        """The likeliest span of each answer."""
        index = tf.argmax(answer.logits, axis=-1, output_type=tf.int32)
        slot, rest = index // (self.words * self.longest), index % (self.words * self.longest)
        start = rest // self.longest
        rank = answer.ids.shape.rank - 1
        slot = tf.gather(answer.ids, slot, batch_dims=rank)
        confidence = tf.exp(tf.reduce_max(answer.logits, axis=-1))
        return Span(slot, start, start + rest % self.longest, confidence)

    def answer(self, logits: tf.Tensor, ids: tf.Tensor) -> SpanAnswer:
        """The answer made of log-probabilities `[..., M, L, W]`."""
        by_slot = tf.reduce_sum(tf.exp(logits), axis=[-2, -1])
        total = tf.reduce_sum(by_slot, axis=-1, keepdims=True)
        shape = tf.concat([tf.shape(logits)[:-3], [-1]], axis=0)
        flat = tf.reshape(logits, shape)
        if logits.shape[-3] is not None:
            flat.set_shape([*flat.shape[:-1], logits.shape[-3] * self.words * self.longest])
        return SpanAnswer(flat, tf.math.divide_no_nan(by_slot, total), ids)

    def get_config(self):
        return {**super().get_config(), "words": self.words, "longest": self.longest}


def spans(start: tf.Tensor, end: tf.Tensor, live: tf.Tensor, longest: int) -> tf.Tensor:
    """Scores of all spans of up to W words, `[..., L, W]`: start_i + end_{i+k}.

    Args:
        start, end: `[..., L]`.
        live: `[..., L]` bool, False where there is no word; no span may hold such a place.
        longest: W.

    Example:

    >>> spans(tf.constant([1.0, 2.0]), tf.constant([10.0, 20.0]), [True, True], 2).numpy().tolist()
    [[11.0, 21.0], [22.0, -1000000000.0]]
    """
    length = start.shape[-1]
    live = tf.broadcast_to(live, tf.shape(start))
    lead = [[0, 0]] * (start.shape.rank - 1)
    end = tf.where(live, end, IMPOSSIBLE)
    end = tf.pad(end, [*lead, [0, longest - 1]], constant_values=IMPOSSIBLE)
    ends = tf.stack([end[..., k : k + length] for k in range(longest)], axis=-1)
    scores = tf.where(live, start, IMPOSSIBLE)[..., None] + ends
    return tf.where(scores > 0.5 * IMPOSSIBLE, scores, IMPOSSIBLE)


def normalised(scores: tf.Tensor) -> tf.Tensor:
    """Log-probabilities of all spans of a memory, from scores `[..., M, L, W]`."""
    total = tf.reduce_logsumexp(scores, axis=[-3, -2, -1], keepdims=True)
    return tf.where(scores > 0.5 * IMPOSSIBLE, scores - total, scores)


def places(ids: tf.Tensor, targets: Any, words: int, longest: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Where the right spans stand among all spans of a memory.

    Args:
        ids: `[..., M]`, the slots in memory.
        targets: `[..., K, 3]`, see the module's first lines.
        words, longest: L and W.

    Returns:
        `[..., K]` int32 places in the logits, and `[..., K]` bool, whether the span is there.

    Example:

    >>> targets = tf.constant([[7, 1, 1], [3, 0, 0], [-1, -1, -1]])
    >>> index, inside = places(tf.constant([5, 7], tf.int64), targets, words=4, longest=2)
    >>> index.numpy().tolist(), inside.numpy().tolist()
    ([11, 0, 0], [True, False, False])
    """
    targets = tf.cast(targets, tf.int64)
    slot, start, more = tf.unstack(targets, num=3, axis=-1)
    here = (ids[..., None, :] == slot[..., None]) & (slot >= 0)[..., None]  # [..., K, M]
    inside = tf.reduce_any(here, axis=-1) & (more < longest) & (start + more < words)
    place = tf.argmax(tf.cast(here, tf.int32), axis=-1, output_type=tf.int32)
    index = (place * words + tf.cast(start, tf.int32)) * longest + tf.cast(more, tf.int32)
    return tf.where(inside, index, 0), inside


def in_memory(
    answer: SpanAnswer, targets: Any, words: int, longest: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """Whether a right span is in memory, `[...]`, and the log of their summed probability."""
    index, inside = places(answer.ids, targets, words, longest)
    lead = tf.broadcast_dynamic_shape(tf.shape(answer.logits)[:-1], tf.shape(index)[:-1])
    index, inside = (
        tf.broadcast_to(x, tf.concat([lead, tf.shape(x)[-1:]], axis=0)) for x in (index, inside)
    )
    flat = tf.reshape(answer.logits, [-1, answer.logits.shape[-1] or tf.shape(answer.logits)[-1]])
    spots = tf.reshape(index, [-1, index.shape[-1] or tf.shape(index)[-1]])
    at = tf.gather(flat, spots, batch_dims=1)
    at = tf.where(inside, tf.reshape(at, tf.shape(index)), IMPOSSIBLE)
    return tf.reduce_any(inside, axis=-1), tf.reduce_logsumexp(at, axis=-1)


def evidence(scores: tf.Tensor, ids: tf.Tensor, targets: Any) -> tf.Tensor:
    """A: the log-sum of the right spans' scores in each slot, `[..., M]`.

    Args:
        scores: `[..., M, L, W]`, of all spans.
        ids: `[..., M]`, the slots' positions in the stream.
        targets: `[..., K, 3]`, see the module's first lines.
    """
    words, longest = scores.shape[-2:]
    slots = scores.shape[-3] or tf.shape(scores)[-3]
    index, inside = places(ids, targets, words, longest)
    flat = tf.reshape(scores, [-1, slots * words * longest])
    most = index.shape[-1] or tf.shape(index)[-1]
    at = tf.gather(flat, tf.reshape(index, [-1, most]), batch_dims=1)
    at = tf.reshape(at, tf.shape(index))
    here = tf.range(slots)[:, None] == (index // (words * longest))[..., None, :]  # [..., M, K]
    at = tf.where(here & inside[..., None, :], at[..., None, :], IMPOSSIBLE)
    return tf.reduce_logsumexp(at, axis=-1)


def flipped(right: tf.Tensor, totals: Sequence[tf.Tensor], kept: tf.Tensor) -> tf.Tensor:
    """p(y | M) with one slot at a time left out or put back, where slots meet in softmaxes only.

        p(y | M) = sum_{j in M} e^A_j / prod_k sum_{j in M} e^Z_jk

    so no memory needs to be read twice.

    Args:
        right: A, `[B, Q, T]`, log-sum of the right spans' scores in each slot of the stream.
        totals: Z, `[B, Q, T]` for each softmax, log-sum of all the scores in it.
        kept: `[B, Q, N]`, ids in memory, -1 = unused.

    Returns:
        `[B, Q, T]`: slot j left out if it is in memory, put back if it is not.

    Example:

    >>> right, total = tf.math.log([[[1.0, 0.0, 1.0]]]), tf.math.log([[[2.0, 2.0, 4.0]]])
    >>> flipped(right, [total], tf.constant([[[0, 1]]], tf.int64)).numpy().round(3).tolist()
    [[[0.0, 0.5, 0.25]]]
    """
    used = kept != EMPTY
    others = ~tf.eye(kept.shape[-1], dtype=tf.bool)

    def sums(scores):
        """The log-sums `[B, Q, N]` without each slot in memory, and `[B, Q, T]` with each."""
        scores = tf.maximum(scores, IMPOSSIBLE)
        inside = tf.where(used, tf.gather(scores, tf.maximum(kept, 0), batch_dims=2), IMPOSSIBLE)
        without = tf.reduce_logsumexp(tf.where(others, inside[..., None, :], IMPOSSIBLE), axis=-1)
        together = tf.reduce_logsumexp(inside, axis=-1, keepdims=True)
        return without, tf.reduce_logsumexp(
            tf.stack([scores, together + tf.zeros_like(scores)]), axis=0
        )

    def ratio(a, z):
        return tf.where(a > 0.5 * IMPOSSIBLE, tf.exp(tf.minimum(a - tf.add_n(z), 0.0)), 0.0)

    right, totals = sums(right), [sums(total) for total in totals]
    left = ratio(right[0], [total[0] for total in totals])
    back = ratio(right[1], [total[1] for total in totals])
    steps = tf.cast(tf.shape(back)[-1], kept.dtype)
    here = (kept[..., None] == tf.range(steps)) & used[..., None]
    left = tf.reduce_sum(tf.where(here, left[..., None], 0.0), axis=-2)
    return tf.where(tf.reduce_any(here, axis=-2), left, back)
