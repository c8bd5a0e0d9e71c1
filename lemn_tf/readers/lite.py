"""LiteReader: a small reader of documents that finds answers by the words a question shares."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from lemn_tf.memory import EMPTY
from lemn_tf.readers import spans
from lemn_tf.readers.recurrent import BiGRU
from lemn_tf.readers.words import WordReader, dropped, masked_softmax


@keras.saving.register_keras_serializable("lemn_tf")
class LiteReader(WordReader):
    """Match features, two bidirectional GRUs and one softmax over the spans in memory.

        h = BiGRU(relu(W [word; shape; suffix; punctuation; features]))     once a slot, blind
        u                                                                   of the question, alike
        s_ij = w . [h_i; u_j; h_i u_j]      c_i = sum_j softmax_j(s_ij) u_j
        g = BiGRU(relu(V [h; c; h c; matches]))                             within a slot
        score(i, k) = (w_1 + B_1 q) . g_i + (w_2 + B_2 q) . g_{i+k} + b_k   q pools the question
        p = softmax over all spans of all slots

    The matches of a word are: it is in the question; its stem is; the same times its idf; its idf;
    and how much of the question's idf the slot holds. With `context` m, what a language model makes
    of each word, m is seen beside the word vector, s_ij gains v . (m_i m_j), and there are three
    more matches, see `alike`. Slots meet in the softmax only, so hindsight
    credit needs no second reading (`spans.flipped`).

    Args:
        vocabulary_size, width, words, view: see `WordReader`.
        longest: the most words of an answer.
        units: of each GRU, in each direction.
        dropout: share of what `mix` and `join` are given that is left out in training, the same for
            all words of a text. What the GRUs are given is left whole: dropout there kept the
            reader from fitting even its training data.
    """

    def __init__(
        self,
        vocabulary_size: int,
        width: int = 100,
        words: int = 20,
        longest: int = 8,
        units: int = 64,
        dropout: float = 0.25,
        view: tuple[str, ...] = ("hand",),
        **kwargs,
    ):
        super().__init__(vocabulary_size, width, words, longest, view, **kwargs)
        self.units, self.dropout = units, dropout
        self.shapes, self.suffixes, self.punctuation = self.embeddings()
        both = 2 * units
        self.mix = keras.layers.Dense(both, activation="relu", name="mix")
        self.context = BiGRU(units, name="context")
        self.trilinear = self.add_weight(
            shape=(3, both), initializer=keras.initializers.RandomNormal(stddev=0.1), name="s"
        )
        self.pool = keras.layers.Dense(1, name="pool")
        self.join = keras.layers.Dense(both, activation="relu", name="join")
        self.model = BiGRU(units, name="model")
        self.ends = keras.layers.Dense(2, name="ends")
        self.bilinear = keras.layers.Dense(2 * both, use_bias=False, name="bilinear")
        self.lengths = self.add_weight(shape=(longest,), initializer="zeros", name="lengths")
        if self.context_width:
            self.alike = self.add_weight(
                shape=(self.context_width,), initializer="zeros", name="alike"
            )
        self.mix.build((None, self.described))
        self.context.build((None, None, both))
        self.pool.build((None, both))
        self.join.build((None, 3 * both + (8 if self.context_width else 5)))
        self.model.build((None, None, both))
        self.ends.build((None, both))
        self.bilinear.build((None, both))
        self.build_view(both)
        self.built = True

    @property
    def states(self) -> int:
        return 2 * self.units

    def contextual(self, texts, training):
        """`[..., L, 2 units]`: each word in its text."""
        x = self.described_words(texts, training)
        x = self.mix(dropped(x, self.dropout, training, self.seeds))
        return self.context(x, texts["words"] > 0)

    def read(self, query, codes, ids, training: bool = False) -> spans.SpanAnswer:
        """See `Reader.read`; with `training` parts are left out at random."""
        return self.answer(spans.normalised(self.scores(query, codes, ids, training)), ids)

    def scores(self, query, codes, ids, training: bool = False) -> tf.Tensor:
        """The scores of all spans, `[..., M, L, W]`, before any softmax."""
        text, asked = self.unpack(codes), self.unpack_question(query)
        h, u = text.states, asked.states
        live, told = text.live, asked.live[..., None, None, :]
        wh, wu, whu = tf.unstack(tf.cast(self.trilinear, h.dtype), num=3)
        s = tf.einsum("...mld,...jd->...mlj", h * whu, u)
        # Not einsum: with oneDNN it writes out of bounds if a dimension of h is 1.
        s += tf.tensordot(h, wh, 1)[..., None]
        s += tf.tensordot(u, wu, 1)[..., None, None, :]
        found = matches(text, asked)
        if self.context_width:
            weighed = text.context * tf.cast(self.alike, h.dtype)
            s += tf.einsum("...mld,...jd->...mlj", weighed, asked.context)
            found = tf.concat([found, alike(text, asked)], axis=-1)
        c = tf.einsum("...mlj,...jd->...mld", masked_softmax(s, told), u)
        h = tf.broadcast_to(h, tf.shape(c))
        g = dropped(tf.concat([h, c, h * c], axis=-1), self.dropout, training, self.seeds)
        g = self.join(tf.concat([g, tf.cast(found, h.dtype)], axis=-1))
        live = tf.broadcast_to(live, tf.shape(g)[:-1])
        g = self.model(g, live)
        weight = masked_softmax(self.pool(u)[..., 0], asked.live)
        q = tf.einsum("...j,...jd->...d", weight, u)
        by_question = tf.split(self.bilinear(q)[..., None, None, :], 2, axis=-1)
        own = self.ends(g)
        start, end = (
            tf.cast(own[..., k] + tf.reduce_sum(g * by_question[k], axis=-1), tf.float32)
            for k in range(2)
        )
        used = live & (ids != EMPTY)[..., None]
        scores = spans.spans(start, end, used, self.longest)
        scores += tf.cast(self.lengths, tf.float32)
        return tf.where(scores > 0.5 * spans.IMPOSSIBLE, scores, spans.IMPOSSIBLE)

    def evidence(self, query, codes, targets: Any) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """What each slot of a stream has to say to each question.

        Args:
            query: `[B, Q, d]`.
            codes: `[B, T, C]`.
            targets: `[B, Q, K, 3]`.

        Returns:
            `[B, Q, T]` log-sums of the scores of the right spans, A, and of all spans, Z; and the
            scores themselves, `[B, Q, T, L, W]`.
        """
        shape = tf.stack([tf.shape(query)[0], tf.shape(query)[1], tf.shape(codes)[1]])
        ids = tf.broadcast_to(tf.range(shape[2], dtype=tf.int64), shape)
        ids = tf.ensure_shape(ids, [*query.shape[:2], codes.shape[1]])
        scores = self.scores(query, codes[:, None], ids)
        return (
            spans.evidence(scores, ids, targets),
            tf.reduce_logsumexp(scores, axis=[-2, -1]),
            scores,
        )

    def flipped(self, query, codes, kept, targets):
        """See `Reader.flipped`; every slot is read once, whatever is in memory."""
        right, total, _ = self.evidence(query, codes, targets)
        return spans.flipped(right, [total], kept)

    def get_config(self):
        return {**super().get_config(), "units": self.units, "dropout": self.dropout}


def matches(text, asked) -> tf.Tensor:
    """How the words of slots match a question, `[..., M, L, 5]`; see `LiteReader`."""
    told = asked.live[..., None, None, :]
    same_word = (text.words[..., None] == asked.words[..., None, None, :]) & told
    same_stem = (text.stems[..., None] == asked.stems[..., None, None, :]) & told
    live = tf.cast(text.live, tf.float32)
    word = tf.cast(tf.reduce_any(same_word, axis=-1), tf.float32) * live
    stem = tf.cast(tf.reduce_any(same_stem, axis=-1), tf.float32) * live
    found = tf.cast(tf.reduce_any(same_stem & text.live[..., None], axis=-2), tf.float32)
    weight = asked.idf * tf.cast(asked.live, tf.float32)
    whole = tf.reduce_sum(weight, axis=-1)[..., None]
    overlap = tf.math.divide_no_nan(tf.einsum("...mj,...j->...m", found, weight), whole)  # [..., M]
    idf = tf.broadcast_to(text.idf, tf.shape(word))
    overlap = tf.broadcast_to(overlap[..., None], tf.shape(word))
    return tf.stack([word, stem, stem * idf, idf, overlap], axis=-1)


def alike(text, asked) -> tf.Tensor:
    """How like a question the words of slots are to a language model, `[..., M, L, 3]`.

    The cosine of a word and the question's word that is most like it; how much of the question's
    idf the slot holds if what is like a word counts for a part of it; and the cosine of the means
    of both texts.
    """
    told = asked.live[..., None, None, :]
    here = text.live[..., None]
    size = float(text.context.shape[-1])
    cosine = tf.einsum("...mld,...jd->...mlj", text.context, asked.context) / size
    cosine = tf.where(told & here, tf.cast(cosine, tf.float32), 0.0)
    word = tf.reduce_max(cosine, axis=-1)
    weight = asked.idf * tf.cast(asked.live, tf.float32)
    best = tf.reduce_max(cosine, axis=-2)  # [..., M, J]
    whole = tf.reduce_sum(weight, axis=-1)[..., None]
    share = tf.math.divide_no_nan(tf.einsum("...mj,...j->...m", best, weight), whole)
    means = [
        tf.math.l2_normalize(tf.reduce_sum(tf.cast(each.context, tf.float32), axis=-2), axis=-1)
        for each in (text, asked)
    ]
    both = tf.einsum("...md,...d->...m", *means)
    slots = [tf.broadcast_to(x[..., None], tf.shape(word)) for x in (share, both)]
    return tf.stack([word, *slots], axis=-1)
