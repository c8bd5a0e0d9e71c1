"""MemN2N (Sukhbaatar et al., 2015): hops of attention over sentences, to answer a question."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from lemn_tf.memory import EMPTY
from lemn_tf.readers.base import Answer, Reader, WithReader, rank, take_items

MASKED = -1e9


def position_encoding(words: int, width: int, longest: int) -> np.ndarray:
    """l_{kj}: weights `[words, width]` by which word j adds to dimension k of a sentence.

    l = 1 + 4 (k - (d + 1) / 2) (j - (J + 1) / 2) / (d J), with J the longest sentence, so that the
    order of the words counts.
    """
    k = np.arange(1, width + 1) - (width + 1) / 2
    j = np.arange(1, words + 1) - (longest + 1) / 2
    return (1 + 4 * np.outer(j, k) / (width * longest)).astype(np.float32)


def attention_over(used: tf.Tensor, scores: tf.Tensor) -> tf.Tensor:
    """Softmax of `[..., M]` scores over the used slots, 0 if there are none; done in float32."""
    masked = tf.where(used, tf.cast(scores, tf.float32), MASKED)
    return tf.cast(tf.nn.softmax(masked) * tf.cast(used, tf.float32), scores.dtype)


@keras.saving.register_keras_serializable("lemn_tf")
class MemN2N(Reader):
    """K hops of soft attention over the sentences in memory.

        m_i = sum_j l_j A_k x_ij + TA_k(rank i)      c_i = sum_j l_j C_k x_ij + TC_k(rank i)
        p = softmax(u_k . m)                         u_{k+1} = u_k + sum_i p_i c_i
        answer = softmax(W u_K + b)

    Adjacent tying: A_{k+1} = C_k, B = A_1, W = C_K^T, and so for the temporal encoding T, which
    depends on rank in memory (newest = 0) and so works whatever has been evicted.

    Args:
        vocabulary_size: number of word ids, 0 (padding) included; also the number of answers.
        sentence_length: J, the longest sentence of the training data.
        units: d in the paper.
        hops: K in the paper.
        max_slots: the oldest rank with an encoding of its own; older ones share it.
        rectified: pass half of the units of each u_{k+1} through a ReLU, as the paper's language
            model does. Sums alone are bad at comparing, which "Is Mary in the garden?" needs.

    Entries and questions are word ids `[..., L]`, padded with 0.
    """

    def __init__(
        self,
        vocabulary_size: int,
        sentence_length: int,
        units: int = 20,
        hops: int = 3,
        max_slots: int = 128,
        rectified: bool = False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.sentence_length = sentence_length
        self.units = units
        self.hops = hops
        self.max_slots = max_slots
        self.rectified = rectified
        normal = keras.initializers.RandomNormal
        shape = (vocabulary_size, (hops + 1) * units)
        self.words = self.add_weight(shape=shape, initializer=normal(stddev=0.1), name="words")
        shape = (max_slots, (hops + 1) * units)
        self.times = self.add_weight(shape=shape, initializer=normal(stddev=0.1), name="times")
        self.bias = self.add_weight(shape=(vocabulary_size,), initializer="zeros", name="bias")
        self.built = True

    def _embed(self, tokens: tf.Tensor, table: tf.Tensor) -> tf.Tensor:
        """Position-encoded sentences: `[..., L]` ids -> `[..., width of the table]`."""
        tables = table.shape[-1] // self.units
        weights = position_encoding(tokens.shape[-1], self.units, self.sentence_length)
        weights = np.tile(weights, [1, tables])
        known = tf.cast(tokens > 0, table.dtype)[..., None]  # the padding row is zero
        weights = tf.constant(weights, table.dtype)
        return tf.reduce_sum(tf.gather(table, tokens) * known * weights, axis=-2)

    def entry_spec(self):
        return tf.TensorSpec([1], tf.int32)

    def _table(self, weight) -> tf.Tensor:
        return tf.cast(weight, self.compute_dtype)

    def encode(self, entries):
        """Sentences -> `[..., (K + 1) d]`: A_1, C_1 = A_2, ..., C_K side by side."""
        return self._embed(entries, self._table(self.words))

    def ask(self, question):
        return self._embed(question, self._table(self.words)[:, : self.units])

    def vectors(self, codes):
        """The value memory of the first hop, as in the paper, scaled to order one."""
        return codes[..., self.units : 2 * self.units] * self.units**0.5

    def read(self, query, codes, ids, linear: bool = False):
        """See `Reader.read`; with `linear` the hops attend without softmax (linear start)."""
        u, attention, _ = self._hops(query, codes, ids, linear)
        return Answer(self._answer(u), attention)

    def flipped(self, query, codes, kept, targets):
        """See `Reader.flipped`; codes are shared by all memories instead of copied into each.

        Leaving an item out, or putting it back, moves the ranks of older slots by one. So each
        slot has three codes, one for each rank it may have, and every memory attends to one or
        none.
        """
        items = tf.range(codes.shape[1], dtype=kept.dtype)
        used = (kept != EMPTY)[:, :, None]
        here = kept[:, :, None] == items[:, None]  # [B, Q, T, N]
        in_memory = tf.reduce_any(here, axis=-1)
        older = kept[:, :, None] < items[:, None]
        moved = tf.where(older, tf.where(in_memory, -1, 1)[..., None], 0)
        shifts = (-1, 0, 1)
        live = tf.concat([used & ~here & (moved == shift) for shift in shifts], axis=-1)
        live = tf.concat([live, ~in_memory[..., None]], axis=-1)  # last: the item put back
        times, taken = self._table(self.times), take_items(codes, kept)
        slots = tf.concat([taken + self._time(times, rank(kept) + s) for s in shifts], axis=2)
        newer = tf.reduce_sum(tf.cast(kept[:, :, None] > items[:, None], tf.int32), axis=-1)
        slots = tf.split(slots, self.hops + 1, axis=-1)
        back = tf.split(codes[:, None] + self._time(times, newer), self.hops + 1, axis=-1)
        u = tf.broadcast_to(query[:, :, None], [*newer.shape, self.units])
        for k in range(self.hops):
            scores = tf.einsum("bqtd,bqnd->bqtn", u, slots[k])
            score = tf.reduce_sum(u * back[k], axis=-1, keepdims=True)
            p = attention_over(live, tf.concat([scores, score], axis=-1))
            o = tf.einsum("bqtn,bqnd->bqtd", p[..., :-1], slots[k + 1]) + p[..., -1:] * back[k + 1]
            u = self._bent(u + o)
        return self.probability(Answer(self._answer(u), p), targets[..., None])

    def _time(self, times, ranks):
        """The temporal encoding of ranks `[...]`, `[..., (K + 1) d]`."""
        return tf.gather(times, tf.clip_by_value(ranks, 0, self.max_slots - 1))

    def _bent(self, u):
        """What a hop found, as input to the next one."""
        if not self.rectified:
            return u
        half = self.units // 2
        return tf.concat([u[..., :half], tf.nn.relu(u[..., half:])], axis=-1)

    def _answer(self, u):
        output = self._table(self.words)[:, -self.units :]
        logits = tf.einsum("...d,vd->...v", u, output) + self._table(self.bias)
        return tf.cast(logits, tf.float32)

    def match(self, query, codes, ids) -> tf.Tensor:
        """The attention logits averaged over the hops, `[..., M]`."""
        return self._hops(query, codes, ids)[2]

    def _hops(self, query, codes, ids, linear=False):
        used = ids != EMPTY
        places = min(ids.shape[-1] or self.max_slots, self.max_slots)
        by_rank = tf.one_hot(tf.minimum(rank(ids), places - 1), places, dtype=query.dtype)
        by_rank *= tf.cast(used, query.dtype)[..., None]
        times = tf.split(self._table(self.times)[:places], self.hops + 1, axis=-1)
        codes = tf.split(codes, self.hops + 1, axis=-1)
        u, attention, match = query, 0.0, 0.0
        for k in range(self.hops):
            # u . (m_i + T(rank i)), with the second part found for every rank once, then chosen.
            scores = tf.einsum("...d,...md->...m", u, codes[k])
            by_time = tf.einsum("...d,rd->...r", u, times[k])
            scores += tf.einsum("...r,...mr->...m", by_time, by_rank)
            match += scores
            soft = attention_over(used, scores)
            p = tf.where(used, scores, tf.zeros([], scores.dtype)) if linear else soft
            o = tf.einsum("...m,...md->...d", p, codes[k + 1])
            o += tf.einsum("...r,rd->...d", tf.einsum("...m,...mr->...r", p, by_rank), times[k + 1])
            u = self._bent(u + o)
            attention += tf.cast(soft, tf.float32)
        return u, attention / self.hops, match / self.hops

    def matching(self) -> Matching:
        """What IM-LEMN matches the input with: this reader's own attention."""
        return Matching(self, name="matching")

    def get_config(self):
        names = ("vocabulary_size", "sentence_length", "units", "hops", "max_slots", "rectified")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}


@keras.saving.register_keras_serializable("lemn_tf")
class Matching(WithReader):
    """z of IM-LEMN on a MemN2N: the attention logits of the input, averaged over the hops.

    A GRU over its words embeds the input as c_t, which is asked like a question. So what the
    policy sees of an entry (`view`) is its code in the reader, with its c beside it.
    """

    def __init__(self, reader: MemN2N, **kwargs):
        super().__init__(reader, **kwargs)
        self.controller = keras.layers.GRU(reader.units, dtype="float32", name="controller")
        self.controller.build((None, None, reader.units))
        self.built = True

    def view(self, tokens: tf.Tensor) -> tf.Tensor:
        """Sentences `[..., L]` -> `[..., (K + 1) d + d]`."""
        reader = self.reader
        table = tf.cast(reader.words, reader.compute_dtype)[:, : reader.units]
        flat = tf.reshape(tokens, [-1, tokens.shape[-1]])
        words = tf.gather(table, flat) * reader.units**0.5
        c = self.controller(words, mask=flat > 0)
        c = tf.reshape(c, tf.concat([tf.shape(tokens)[:-1], [reader.units]], axis=0))
        return tf.concat([reader.encode(tokens), tf.cast(c, reader.compute_dtype)], axis=-1)

    def call(self, inputs):
        newcomer, vectors, ids = inputs
        newcomer, vectors = (tf.cast(x, self.reader.compute_dtype) for x in (newcomer, vectors))
        c = newcomer[..., -self.reader.units :]
        codes = vectors[..., : -self.reader.units]
        return c, self.reader.match(c, codes, ids)
