"""S-LEMN: a bidirectional GRU over the cells, so that each is judged relative to the others."""

from __future__ import annotations

import keras
import tensorflow as tf

from lemn_tf.retention import gru
from lemn_tf.retention.base import Cells, RetentionPolicy
from lemn_tf.retention.chance import salt_of, scramble


@keras.saving.register_keras_serializable("lemn_tf")
class SpatialEncoder(keras.layers.Layer):
    """f_i = ReLU(W_f [GRU_fw(e_i), GRU_bw(e_i)] + b_f), over the cells that hold something.

    Args:
        units: width of each direction and of f, d in the paper; default the width of e.

    Call arguments:
        inputs: `(vectors [..., M, D], filled [..., M] bool)`; any leading dimensions.

    Returns:
        `[..., M, units]`.
    """

    def __init__(self, units: int | None = None, **kwargs):
        super().__init__(**kwargs)
        self.units = units

    def build(self, shapes):
        width = shapes[0][-1]
        units = self.units or width
        one_way = keras.layers.GRU(
            units, return_sequences=True, dtype=self.dtype_policy, name="gru"
        )
        self.gru = keras.layers.Bidirectional(one_way, dtype=self.dtype_policy, name="cells")
        self.projection = keras.layers.Dense(
            units, activation="relu", dtype=self.dtype_policy, name="projection"
        )
        self.gru.build((None, None, width))
        self.projection.build((None, None, 2 * units))

    def call(self, inputs):
        vectors, filled = inputs
        shape = tf.shape(vectors)
        flat = tf.reshape(vectors, [-1, shape[-2], vectors.shape[-1]])
        flat.set_shape([None, vectors.shape[-2], None])
        mask = tf.reshape(filled, [-1, shape[-2]])
        if flat.shape[1] is None:
            both = self.gru(flat, mask=mask)
        else:  # the same numbers, faster
            forward, backward = self.gru.forward_layer.cell, self.gru.backward_layer.cell
            both = gru.bidirectional(flat, mask, forward, backward)
        f = self.projection(both)
        return tf.reshape(f, tf.concat([shape[:-1], [f.shape[-1]]], axis=0))

    def get_config(self):
        return {**super().get_config(), "units": self.units}


@keras.saving.register_keras_serializable("lemn_tf")
class Spatial(RetentionPolicy):
    """S-LEMN (section 3.1): importance of a cell relative to the others.

        f_{t,i} = ReLU(W_f [e_fw_{t,i}, e_bw_{t,i}] + b_f)
        h_{t,i} = W_h f_{t,i} + b_h
        g_{t,i} = W_g h_{t,i} + b_g

    The newcomer takes the place of the NOP cell, so it can be chosen too.

    Args:
        units: d in the paper, width of the GRU in each direction; default the width of the entries.
        hidden: width of h; default a quarter of `units`, as in the paper.
        shuffle: the appendix's ablation: in training, cells are scored in random order.
        skip: adds a linear score of each entry alone, w . e_{t,i}, to the logits: for vectors of
            many features, most of which matter on their own.
        reservoir: adds log(t - N) to the newcomer's logit, t being the items seen. A policy that
            finds all entries alike then keeps a fair sample of the stream (Vitter's algorithm R):
            each of t items is still there with probability N / t, not (N / (N + 1)) ** t. So one
            that learns by trial finds out what an old entry is good for.
    """

    def __init__(
        self,
        units: int | None = None,
        hidden: int | None = None,
        shuffle: bool = False,
        skip: bool = False,
        reservoir: bool = False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.units, self.hidden, self.shuffle = units, hidden, shuffle
        self.skip, self.reservoir = skip, reservoir
        self.encoder = SpatialEncoder(units, dtype=self.dtype_policy, name="spatial")
        self.importance = keras.layers.Dense(1, dtype=self.dtype_policy, name="importance")
        if skip:
            self.alone = keras.layers.Dense(
                1, use_bias=False, kernel_initializer="zeros", dtype=self.dtype_policy, name="alone"
            )

    def build(self, shape):
        units = self.units or shape[-1]
        self.hidden_width = self.hidden or max(1, units // 4)
        self.encoder.build([shape, shape[:-1]])
        self.build_hidden(units)
        self.importance.build((None, self.hidden_width))
        if self.skip:
            self.alone.build((None, shape[-1]))

    def build_hidden(self, units):
        """Creates W_h: the part that ST-LEMN replaces."""
        self.to_hidden = keras.layers.Dense(
            self.hidden_width, dtype=self.dtype_policy, name="hidden"
        )
        self.to_hidden.build((None, units))

    def look(self, cells: Cells):
        vectors, filled = cells.vectors, cells.filled
        if not self.shuffle or cells.seed is None:
            return self.encoder((vectors, filled))
        order = tf.argsort(scramble(cells.ids, cells.clock, salt_of(cells.seed)))
        axis = vectors.shape.rank - 2
        vectors = tf.gather(vectors, order, batch_dims=axis)
        filled = tf.gather(filled, order, batch_dims=axis)
        f = self.encoder((vectors, filled))
        return tf.gather(f, tf.argsort(order), batch_dims=axis)

    def score(self, seen, cells, carry):
        h = self.to_hidden(seen)
        return self._opinion(seen, h, cells, ())

    def _opinion(self, f, h, cells, carry):
        logits = tf.squeeze(self.importance(h), axis=-1)
        if self.skip:
            logits += tf.squeeze(self.alone(cells.vectors), axis=-1)
        if self.reservoir:
            logits += tf.cast(fair(cells), logits.dtype)
        summary = tf.concat([f, tf.cast(h, f.dtype)], axis=-1)
        weight = tf.cast(cells.filled, summary.dtype)[..., None]
        mean = tf.reduce_sum(summary * weight, -2) / tf.maximum(tf.reduce_sum(weight, -2), 1.0)
        return self.opinion(logits, carry, mean)

    def get_config(self):
        names = ("units", "hidden", "shuffle", "skip", "reservoir")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}


def fair(cells: Cells) -> tf.Tensor:
    """What makes a draw from equal logits keep a fair sample of the stream, `[..., N + 1]`.

    The newcomer leaves with probability 1 - N / t, and each other entry with 1 / t: log(t - N) for
    the newcomer, 0 for the others.
    """
    places = cells.ids.shape[-1] or tf.shape(cells.ids)[-1]
    held = tf.reduce_sum(tf.cast(cells.filled, cells.clock.dtype), axis=-1) - 1
    odds = tf.cast(tf.maximum(cells.clock - held, 1), tf.float32)
    return tf.math.log(odds)[..., None] * tf.one_hot(places - 1, places)
