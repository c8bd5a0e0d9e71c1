"""From a policy's opinion to a decision, under the rules that no policy may break.

All rules are in this file: unused slots fill first, pinned entries stay, expired ones go first.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import tensorflow as tf

from lemn_tf import memory
from lemn_tf.tables import Table

NEGLIGIBLE = -1e9
"""Logit of what must not be chosen; finite, so that no gradient becomes NaN."""


class Decision(NamedTuple):
    """What was decided about one item.

    Attributes:
        ids: `[B, N + 1]` int64, the candidates, newcomer last.
        slot: `[B]` int32, the candidate that left; N means that the newcomer was not stored.
        evicted: `[B]` int64, its id, or -1 if an unused slot was filled.
        keep: `[B, N + 1]`, probability of keeping each candidate, 1 - pi(m_i | M_t, x_t).
        margin: `[B]`, how much likelier the likeliest was to leave than the runner-up, 0 to 1.
        log_prob: `[B]`, log-probability of the choice.
        entropy: `[B]`, of the choice, in nats.
        free: `[B]` bool, whether there was a choice at all.
    """

    ids: tf.Tensor
    slot: tf.Tensor
    evicted: tf.Tensor
    keep: tf.Tensor
    margin: tf.Tensor
    log_prob: tf.Tensor
    entropy: tf.Tensor
    free: tf.Tensor

    def table(self, row: int = 0) -> Table:
        """One decision as a readable table: the candidates, and which of them left."""
        if self.ids.shape.rank != 2:
            raise ValueError(
                f"expected the decision of one step, ids [B, N + 1]; got {self.ids.shape}"
            )
        ids, keep = self.ids[row].numpy().tolist(), self.keep[row].numpy().tolist()
        slot, last = int(self.slot[row]), len(ids) - 1
        marks = ["left" if n == slot else "new" if n == last else "" for n in range(len(ids))]
        cells = zip(ids, keep, marks, strict=True)
        rows = [cell for cell in cells if cell[0] != memory.EMPTY]
        return Table(("id", "keep", ""), rows, f"margin {float(self.margin[row]):.2f}")

    def _repr_html_(self) -> str:
        if self.ids.shape.rank == 2:
            return self.table()._repr_html_()
        return f"<pre>decisions {self.ids.shape}</pre>"


def eligible(cells: memory.MemoryState) -> tuple[tf.Tensor, tf.Tensor]:
    """The rules: who may leave, `[B, N + 1]`, and whether there is a choice.

    1. While a slot is unused, the first unused one is taken, and nothing else leaves.
    2. Pinned entries never leave. If every slot is pinned the newcomer, even a pinned one, is not
       stored.
    3. Among the others, expired entries leave first.
    """
    unused = ~cells.filled
    first_unused = unused & (tf.cumsum(tf.cast(unused, tf.int32), axis=1) == 1)
    any_unused = tf.reduce_any(unused, axis=1, keepdims=True)
    loose = ~cells.pinned
    last = tf.one_hot(tf.shape(cells.ids)[1] - 1, tf.shape(cells.ids)[1], True, False)
    loose |= ~tf.reduce_any(loose, axis=1, keepdims=True) & last
    expired = loose & (cells.expiry <= cells.clock[:, None])
    loose = tf.where(tf.reduce_any(expired, axis=1, keepdims=True), expired, loose)
    allowed = tf.where(any_unused, first_unused, loose)
    free = tf.reduce_sum(tf.cast(allowed, tf.int32), axis=1) > 1
    return allowed, free


def decide(
    logits: tf.Tensor, cells: memory.MemoryState, noise: tf.Tensor | None = None
) -> Decision:
    """Applies the rules to a policy's opinion: argmax, or a sample if Gumbel `noise` is given.

    Args:
        logits: `[B, N + 1]` eviction logits.
        cells: the candidates, as `memory.candidates` returns them.
        noise: `[B, N + 1]` Gumbel noise; with it the choice is a sample of the softmax.
    """
    return describe(cells.ids, *choose(logits, cells, noise))


def choose(
    logits: tf.Tensor, cells: memory.MemoryState, noise: tf.Tensor | None = None
) -> tuple[tf.Tensor, tf.Tensor]:
    """The half of `decide` that the next step waits for: logits under the rules, and the slot.

    Returns:
        `[B, N + 1]` logits, `NEGLIGIBLE` for what may not leave, and the `[B]` slot that leaves.
    """
    allowed, _ = eligible(cells)
    # What is not allowed never leaves, whatever the logits, infinity and NaN included.
    logits = tf.clip_by_value(tf.cast(logits, tf.float32), 0.1 * NEGLIGIBLE, -0.1 * NEGLIGIBLE)
    logits = tf.where(tf.math.is_nan(logits), 0.1 * NEGLIGIBLE, logits)
    wish = logits if noise is None else logits + noise
    wish = tf.where(wish > -1e38, wish, -1e38)
    slot = tf.argmax(tf.where(allowed, wish, -math.inf), axis=1, output_type=tf.int32)
    return tf.where(allowed, logits, NEGLIGIBLE), slot


def describe(ids: tf.Tensor, logits: tf.Tensor, slot: tf.Tensor) -> Decision:
    """The other half of `decide`: describes choices already made, for a whole stream at once.

    Args:
        ids: `[..., N + 1]`, the candidates.
        logits: `[..., N + 1]`, as `choose` returns them.
        slot: `[...]`, as `choose` returns it.
    """
    allowed = logits > 0.5 * NEGLIGIBLE
    log_pi = tf.nn.log_softmax(logits)
    pi = tf.exp(log_pi)
    left = tf.one_hot(slot, tf.shape(ids)[-1], True, False)
    likeliest = tf.one_hot(tf.argmax(pi, axis=-1), tf.shape(ids)[-1], True, False)
    runner_up = tf.reduce_max(tf.where(likeliest, 0.0, pi), axis=-1)
    return Decision(
        ids=ids,
        slot=slot,
        evicted=tf.reduce_sum(tf.where(left, ids, tf.zeros_like(ids)), axis=-1),
        keep=1.0 - pi,
        margin=tf.reduce_max(pi, axis=-1) - runner_up,
        log_prob=tf.reduce_sum(tf.where(left, log_pi, 0.0), axis=-1),
        entropy=-tf.reduce_sum(pi * tf.where(allowed, log_pi, 0.0), axis=-1),
        free=tf.reduce_sum(tf.cast(allowed, tf.int32), axis=-1) > 1,
    )
