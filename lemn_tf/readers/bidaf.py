"""BiDAF (Seo et al., 2017) over the slots of a memory: every RNN runs within one slot."""

from __future__ import annotations

from typing import NamedTuple

import keras
import tensorflow as tf

from lemn_tf.memory import EMPTY
from lemn_tf.readers import spans
from lemn_tf.readers.base import take_items
from lemn_tf.readers.recurrent import BiLSTM
from lemn_tf.readers.words import WordReader, dropped, masked_softmax


class Flow(NamedTuple):
    """What the attention flow makes of slots, `[..., M, L, ...]`.

    Attributes:
        p0: 8d wide, [h; u~; h u~; h h~].
        g1: 2d wide, what the two modelling layers make of it.
        start: scores of each word as the first of the answer.
        live: bool, whether there is a word.
    """

    p0: tf.Tensor
    g1: tf.Tensor
    start: tf.Tensor
    live: tf.Tensor


def attend(h: tf.Tensor, u: tf.Tensor, weights: tf.Tensor, live: tf.Tensor, told: tf.Tensor):
    """Attention both ways between each slot and the question, [h; u~; h u~; h h~].

        s_ij = w . [h_i; u_j; h_i u_j]
        u~_i = sum_j softmax_j(s_ij) u_j        h~ = sum_i softmax_i(max_j s_ij) h_i

    Args:
        h: `[..., M, L, 2d]`, the words of the slots.
        u: `[..., J, 2d]`, the words of the question.
        weights: `[3, 2d]`, w in three parts.
        live: `[..., M, L]` bool, the words there are; `told` `[..., J]` those of the question.

    Returns:
        `[..., M, L, 8d]`.
    """
    wh, wu, whu = tf.unstack(tf.cast(weights, h.dtype), num=3)
    s = tf.einsum("...mld,...jd->...mlj", h * whu, u)
    # Not einsum: with oneDNN it writes out of bounds if a dimension of h is 1 (TensorFlow 2.21).
    s += tf.tensordot(h, wh, 1)[..., None]
    s += tf.tensordot(u, wu, 1)[..., None, None, :]
    told = told[..., None, None, :]
    asked = tf.einsum("...mlj,...jd->...mld", masked_softmax(s, told), u)
    h = tf.broadcast_to(h, tf.shape(asked))
    most = tf.reduce_max(tf.where(told, tf.cast(s, tf.float32), spans.IMPOSSIBLE), axis=-1)
    weight = tf.cast(masked_softmax(most, live), h.dtype)
    from_slot = tf.einsum("...ml,...mld->...md", weight, h)[..., None, :]
    return tf.concat([h, asked, h * asked, h * from_slot], axis=-1)


@keras.saving.register_keras_serializable("lemn_tf")
class BiDAF(WordReader):
    """Bi-directional attention flow, with M slots instead of the paper's M sentences.

        x = highway(highway([word; max over the char CNN]))         h, u = BiLSTM(x)
        p0 = attention both ways, see `attend`                      g1 = BiLSTM(BiLSTM(p0))
        p1 = softmax(w_1 . [g1; p0])                                a1 = sum p1 g1
        g2 = BiLSTM([p0; g1; a1; g1 a1])                            p2 = softmax(w_2 . [g2; p0])
        p(i, j) = p1_i p2_j,  i <= j in one slot

    Slots meet in the two softmaxes and in a1 only.

    Args:
        vocabulary_size, width, words, view: see `WordReader`.
        units: d, of each LSTM in each direction, and the number of filters of the char CNN.
        char_units, char_width: width of a char's embedding, and chars a filter sees.
        dropout: share of what each layer is given that is left out in training.
    """

    def __init__(
        self,
        vocabulary_size: int,
        width: int = 100,
        words: int = 20,
        units: int = 100,
        char_units: int = 8,
        char_width: int = 5,
        dropout: float = 0.2,
        view: tuple[str, ...] = ("hand",),
        **kwargs,
    ):
        longest = kwargs.pop("longest", words)
        super().__init__(vocabulary_size, width, words, longest, view, **kwargs)
        self.units, self.dropout = units, dropout
        self.char_units, self.char_width = char_units, char_width
        self.chars = keras.layers.Embedding(256, char_units, name="chars")
        self.filters = keras.layers.Dense(units, activation="relu", name="filters")
        both = width + units
        self.gates = [
            keras.layers.Dense(
                both,
                activation="sigmoid",
                bias_initializer=keras.initializers.Constant(-1.0),
                name=f"gate_{k}",
            )
            for k in range(2)
        ]
        self.changes = [
            keras.layers.Dense(both, activation="relu", name=f"change_{k}") for k in range(2)
        ]
        self.context = BiLSTM(units, name="context")
        self.trilinear = self.add_weight(
            shape=(3, 2 * units), initializer=keras.initializers.RandomNormal(stddev=0.1), name="s"
        )
        self.models = [BiLSTM(units, name=f"model_{k}") for k in range(2)]
        self.end_model = BiLSTM(units, name="end_model")
        self.first = keras.layers.Dense(1, name="first")
        self.last = keras.layers.Dense(1, name="last")
        self._build(both)

    def _build(self, both: int) -> None:
        d = self.units
        self.chars.build((None,))
        self.filters.build((None, self.char_width * self.char_units))
        for layer in (*self.gates, *self.changes):
            layer.build((None, both))
        self.context.build((None, None, both))
        self.models[0].build((None, None, 8 * d))
        self.models[1].build((None, None, 2 * d))
        self.end_model.build((None, None, 14 * d))
        self.first.build((None, 10 * d))
        self.last.build((None, 10 * d))
        self.build_view(2 * d)
        self.built = True

    @property
    def states(self) -> int:
        return 2 * self.units

    def contextual(self, texts, training):
        """`[..., L, 2d]`: words and their characters through two highway layers and a BiLSTM."""
        chars = self.chars(texts["chars"])  # [..., L, 16, c]
        chars = dropped(chars, self.dropout, training, self.seeds, over=-3)
        places = texts["chars"].shape[-1] - self.char_width + 1
        windows = tf.concat([chars[..., k : k + places, :] for k in range(self.char_width)], -1)
        spelt = tf.reduce_max(self.filters(windows), axis=-2)
        x = tf.concat([self.vectors_of(texts["words"]), spelt], axis=-1)
        for gate, change in zip(self.gates, self.changes, strict=True):
            g = gate(x)
            x = g * change(x) + (1.0 - g) * x
        x = dropped(x, self.dropout, training, self.seeds)
        return self.context(x, texts["words"] > 0)

    def read(self, query, codes, ids, training: bool = False) -> spans.SpanAnswer:
        """See `Reader.read`; with `training` parts are left out at random."""
        flow = self.flow(query, codes, ids, training)
        end = self.ends(flow, self.expected(flow), training)
        shape = tf.shape(flow.start)

        def log_softmax(scores):
            flat = tf.reshape(scores, tf.concat([shape[:-2], [-1]], axis=0))
            flat = tf.nn.log_softmax(flat)
            return tf.ensure_shape(tf.reshape(flat, shape), scores.shape)

        logits = spans.spans(log_softmax(flow.start), log_softmax(end), flow.live, self.longest)
        return self.answer(logits, ids)

    def flow(self, query, codes, ids, training: bool = False) -> Flow:
        """What is known of each slot before slots meet."""
        text, asked = self.unpack(codes), self.unpack_question(query)
        p0 = attend(text.states, asked.states, self.trilinear, text.live, asked.live)
        live = tf.broadcast_to(text.live & (ids != EMPTY)[..., None], tf.shape(p0)[:-1])
        g1 = p0
        for layer in self.models:
            g1 = layer(dropped(g1, self.dropout, training, self.seeds), live)
        start = self.first(self._dropped(tf.concat([g1, p0], axis=-1), training))[..., 0]
        start = tf.where(live, tf.cast(start, tf.float32), spans.IMPOSSIBLE)
        return Flow(p0, g1, start, live)

    def _dropped(self, x, training):
        return dropped(x, self.dropout, training, self.seeds)

    def expected(self, flow: Flow) -> tf.Tensor:
        """a1 `[..., 2d]`: what the answer is expected to begin with."""
        lead = tf.shape(flow.start)[:-2]
        flat = tf.concat([lead, [-1]], axis=0)
        p1 = masked_softmax(tf.reshape(flow.start, flat), tf.reshape(flow.live, flat))
        g1 = tf.reshape(flow.g1, tf.concat([lead, [-1, 2 * self.units]], axis=0))
        return tf.einsum("...i,...id->...d", tf.cast(p1, g1.dtype), g1)

    def ends(self, flow: Flow, a1: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Scores `[..., M, L]` of each word as the last of the answer."""
        a1 = tf.broadcast_to(a1[..., None, None, :], tf.shape(flow.g1))
        g2 = tf.concat([flow.p0, flow.g1, a1, flow.g1 * a1], axis=-1)
        g2 = self.end_model(self._dropped(g2, training), flow.live)
        end = self.last(self._dropped(tf.concat([g2, flow.p0], axis=-1), training))[..., 0]
        return tf.where(flow.live, tf.cast(end, tf.float32), spans.IMPOSSIBLE)

    def flipped(self, query, codes, kept, targets):
        """See `Reader.flipped`; a1 is taken from the memory as it was.

        Every slot of the stream is then read once: leaving one out, or putting one back, changes
        the two softmaxes only. The error is that of a1, which is a mean over all slots.
        """
        a1 = self.expected(self.flow(query, take_items(codes, kept), kept))
        ids = tf.broadcast_to(
            tf.range(codes.shape[1], dtype=tf.int64), [*kept.shape[:2], codes.shape[1]]
        )
        flow = self.flow(query, codes[:, None], ids)
        end = self.ends(flow, a1)
        right = spans.evidence(spans.spans(flow.start, end, flow.live, self.longest), ids, targets)
        totals = [tf.reduce_logsumexp(scores, axis=-1) for scores in (flow.start, end)]
        return spans.flipped(right, totals, kept)

    def get_config(self):
        names = ("units", "char_units", "char_width", "dropout")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}
