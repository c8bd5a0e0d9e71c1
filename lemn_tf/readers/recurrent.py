"""Recurrent layers that read short texts in both directions at once, for readers of words.

What depends only on the inputs is one product for all steps. The gradients are written by hand, so
that the recurrent weights' part is one large product too; automatic differentiation makes one for
each step. Tests compare both layers with Keras' own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

Gates = tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]
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


def lstm_step(gates: Sequence[tf.Tensor], c: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, Gates]:
    """One step of an LSTM.

        c' = sigma(f) c + sigma(i) tanh(g)        h' = sigma(u) tanh(c')

    Args:
        gates: i, f, u, g, what input and state add up to, `[..., units]` each.
        c: `[..., units]`.

    Returns:
        h', c' and the gates after their nonlinearities.
    """
    i, f, u, g = (*(tf.sigmoid(gate) for gate in gates[:3]), tf.tanh(gates[3]))
    c = f * c + i * g
    return u * tf.tanh(c), c, (i, f, u, g)


def lstm_step_gradient(
    gates: Sequence[tf.Tensor], before: tf.Tensor, c: tf.Tensor, d_h: tf.Tensor, d_c: tf.Tensor
) -> tuple[Gates, tf.Tensor]:
    """The way back through `lstm_step`: from the gradients of h' and c' to those of its arguments.

    Args:
        gates, c: as `lstm_step` returned them.
        before: the c that it was given.
        d_h, d_c: the gradients of h' and c'.
    """
    i, f, u, g = gates
    out = tf.tanh(c)
    d_c += d_h * u * (1.0 - out * out)
    d_i, d_f = d_c * g * i * (1.0 - i), d_c * before * f * (1.0 - f)
    d_u, d_g = d_h * out * u * (1.0 - u), d_c * i * (1.0 - g * g)
    return (d_i, d_f, d_u, d_g), d_c * f


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
        i, f, g, u = tf.split(x + tf.matmul(h, recurrent), 4, axis=-1)
        said, new, gates = lstm_step((i, f + 1.0, u, g), c)
        kept.append((h, gates, c, new))
        c, h = tf.where(here, new, c), tf.where(here, said, h)
        states.append(h)

    def gradient(upstream):
        back = tf.transpose(recurrent)
        to_h = to_c = none = tf.zeros_like(h)
        to_gates = []
        for (_, *step), here, coming in zip(
            reversed(kept), reversed(words), reversed(tf.unstack(upstream, num=steps)), strict=True
        ):
            to_h += coming
            d_h, d_c = tf.where(here, to_h, none), tf.where(here, to_c, none)
            (i, f, u, g), to_before = lstm_step_gradient(*step, d_h, d_c)
            gates = tf.concat([i, f, g, u], axis=-1)
            to_h = to_h - d_h + tf.matmul(gates, back)
            to_c = to_c - d_c + to_before
            to_gates.append(gates)
        before = tf.concat([step[0] for step in kept], axis=0)
        gates = tf.stack(to_gates[::-1])
        flat = tf.reshape(gates, [-1, 4 * units])
        return gates, tf.matmul(before, flat, transpose_a=True), None

    return tf.stack(states), gradient
