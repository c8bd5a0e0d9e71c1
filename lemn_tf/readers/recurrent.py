"""Recurrent layers that read short texts in both directions at once, for readers of words.

What depends only on the inputs is one product for all steps. The gradients are written by hand, so
that the recurrent weights' part is one large product too; automatic differentiation makes one for
each step. Tests compare both layers with Keras' own.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

CLOSED = 1e4
"""Added to a gate's input where there is no word: its sigmoid is then exactly 1."""


class _TwoWays(keras.layers.Layer):
    """The base of both layers: weights `[2, ...]`, forward and backward, and the layout."""

    gates: int

    def __init__(self, units: int, **kwargs):
        super().__init__(**kwargs)
        self.units = units

    def build(self, shape):
        wide = self.gates * self.units
        uniform, orthogonal = keras.initializers.GlorotUniform, keras.initializers.Orthogonal

        def twice(make):
            def initial(shape, dtype):  # drawn in float32: orthogonal weights need it
                both = tf.stack([make()(shape[1:], "float32") for _ in range(2)])
                return tf.cast(both, dtype)

            return initial

        self.kernel = self.add_weight(
            shape=(2, shape[-1], wide), initializer=twice(uniform), name="kernel"
        )
        self.recurrent = self.add_weight(
            shape=(2, self.units, wide), initializer=twice(orthogonal), name="recurrent"
        )
        self.bias = self.add_weight(shape=(2, wide), initializer="zeros", name="bias")

    def call(self, x: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Words `[..., L, D]` with mask `[..., L]` -> `[..., L, 2 units]`; L must be known.

        Masked words are skipped; the outputs in their place mean nothing.
        """
        length, width = x.shape[-2], x.shape[-1]
        if length is None:
            raise ValueError(f"expected texts [..., L, D] of a known length L; got {x.shape}")
        lead = tf.shape(x)[:-2]
        flat = tf.reshape(tf.transpose(tf.reshape(x, [-1, length, width]), [1, 0, 2]), [-1, width])
        live = tf.transpose(tf.reshape(mask, [-1, length]))[..., None]  # [L, R, 1]
        outputs = []
        for way in range(2):
            kernel, recurrent, bias = (
                tf.cast(weight[way], x.dtype) for weight in (self.kernel, self.recurrent, self.bias)
            )
            given = tf.reshape(tf.matmul(flat, kernel) + bias, [length, -1, kernel.shape[-1]])
            if way == 0:
                outputs.append(self.unroll(given, live, recurrent))
            else:
                outputs.append(self.unroll(given[::-1], live[::-1], recurrent)[::-1])
        states = tf.transpose(tf.concat(outputs, axis=-1), [1, 0, 2])
        return tf.reshape(states, tf.concat([lead, [length, 2 * self.units]], axis=0))

    def unroll(self, given: tf.Tensor, live: tf.Tensor, recurrent: tf.Tensor) -> tf.Tensor:
        """All states `[L, R, units]` of one direction, from the inputs' share of its gates."""
        raise NotImplementedError(f"{type(self).__name__} does not override unroll()")

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "units": self.units}


@keras.saving.register_keras_serializable("lemn_tf")
class BiGRU(_TwoWays):
    """A GRU in each direction, its reset gate applied before the product as in Cho et al. (2014).

        z = sigma(W_z x + U_z h + b_z)     r = sigma(W_r x + U_r h + b_r)
        h' = z h + (1 - z) tanh(W_h x + U_h h r + b_h)

    with r applied to U_h h, and no bias there.

    Args:
        units: width of each direction.
    """

    gates = 3

    def unroll(self, given, live, recurrent):
        units = self.units
        closed = tf.where(live, tf.zeros([], given.dtype), tf.constant(CLOSED, given.dtype))
        given = tf.concat([given[..., :units] + closed, given[..., units:]], axis=-1)
        return gru(given, recurrent)


@tf.custom_gradient
def gru(given: tf.Tensor, recurrent: tf.Tensor):
    """The states of a GRU that begins at 0.

    Args:
        given: `[L, R, 3 units]`, the inputs' share of z, r and the candidate.
        recurrent: `[units, 3 units]`.

    Returns:
        `[L, R, units]`.
    """
    steps = given.shape[0]
    inputs = tf.unstack(given, num=steps)
    units = recurrent.shape[0]
    h = tf.zeros_like(inputs[0][:, :units])
    kept = []
    for x in inputs:
        u = tf.matmul(h, recurrent)
        gates = tf.sigmoid(x[:, : 2 * units] + u[:, : 2 * units])
        z, r, u_h = gates[:, :units], gates[:, units:], u[:, 2 * units :]
        new = tf.tanh(x[:, 2 * units :] + r * u_h)
        kept.append((h, z, r, u_h, new))
        h = new + z * (h - new)
    states = tf.stack([*(step[0] for step in kept[1:]), h])

    def gradient(upstream):
        back = tf.transpose(recurrent)
        coming = tf.zeros_like(h)
        to_inputs, to_products = [], []
        for (before, z, r, u_h, new), here in zip(
            reversed(kept), reversed(tf.unstack(upstream, num=steps)), strict=True
        ):
            d = coming + here
            d_new = d * (1.0 - z) * (1.0 - new * new)
            d_z = d * (before - new) * z * (1.0 - z)
            d_r = d_new * u_h * r * (1.0 - r)
            product = tf.concat([d_z, d_r, d_new * r], axis=-1)
            coming = d * z + tf.matmul(product, back)
            to_inputs.append(tf.concat([d_z, d_r, d_new], axis=-1))
            to_products.append(product)
        before = tf.concat([step[0] for step in kept], axis=0)
        products = tf.concat(to_products[::-1], axis=0)
        return tf.stack(to_inputs[::-1]), tf.matmul(before, products, transpose_a=True)

    return states, gradient


@keras.saving.register_keras_serializable("lemn_tf")
class BiLSTM(_TwoWays):
    """An LSTM in each direction; gates in Keras' order (input, forget, candidate, output).

    Args:
        units: width of each direction.
    """

    gates = 4

    def unroll(self, given, live, recurrent):
        return lstm(given, recurrent, live)


@tf.custom_gradient
def lstm(given: tf.Tensor, recurrent: tf.Tensor, live: tf.Tensor):
    """The states of an LSTM that begins at 0 and stays as it is where there is no word.

    Args:
        given: `[L, R, 4 units]`, the inputs' share of the gates.
        recurrent: `[units, 4 units]`.
        live: `[L, R, 1]` bool, whether there is a word.

    Returns:
        `[L, R, units]`.
    """
    steps, units = given.shape[0], recurrent.shape[0]
    words = tf.unstack(live, num=steps)
    h = c = tf.zeros_like(given[0, :, :units])
    kept, states = [], []
    for x, here in zip(tf.unstack(given, num=steps), words, strict=True):
        i, f, g, o = tf.split(x + tf.matmul(h, recurrent), 4, axis=-1)
        i, f, g, o = tf.sigmoid(i), tf.sigmoid(f + 1.0), tf.tanh(g), tf.sigmoid(o)
        new = f * c + i * g
        shown = tf.tanh(new)
        kept.append((h, c, i, f, g, o, shown))
        c, h = tf.where(here, new, c), tf.where(here, o * shown, h)
        states.append(h)

    def gradient(upstream):
        back = tf.transpose(recurrent)
        to_h = to_c = none = tf.zeros_like(h)
        to_gates = []
        for (_, cell, i, f, g, o, shown), here, coming in zip(
            reversed(kept), reversed(words), reversed(tf.unstack(upstream, num=steps)), strict=True
        ):
            to_h += coming
            d_h, d_c = tf.where(here, to_h, none), tf.where(here, to_c, none)
            d_new = d_c + d_h * o * (1.0 - shown * shown)
            parts = (
                d_new * g * i * (1.0 - i),
                d_new * cell * f * (1.0 - f),
                d_new * i * (1.0 - g * g),
                d_h * shown * o * (1.0 - o),
            )
            gates = tf.concat(parts, axis=-1)
            to_h = to_h - d_h + tf.matmul(gates, back)
            to_c = to_c - d_c + d_new * f
            to_gates.append(gates)
        before = tf.concat([step[0] for step in kept], axis=0)
        gates = tf.stack(to_gates[::-1])
        flat = tf.reshape(gates, [-1, 4 * units])
        return gates, tf.matmul(before, flat, transpose_a=True), None

    return tf.stack(states), gradient
