"""The gated recurrent unit with its input projected beforehand, for the policies' hot loops.

Keras layers own the weights; these functions only arrange the same arithmetic for speed. What
depends only on the inputs is one large product for all cells and time steps, and only what depends
on the previous state stays in the recurrence. A test compares them with Keras' own layers.
"""

from __future__ import annotations

import keras
import tensorflow as tf


def project(x: tf.Tensor, cell: keras.layers.GRUCell) -> tf.Tensor:
    """The input's share of the three gates, `[..., D]` -> `[..., 3 units]`."""
    return tf.tensordot(x, tf.cast(cell.kernel, x.dtype), 1) + tf.cast(cell.bias, x.dtype)[0]


def step(projected: tf.Tensor, h: tf.Tensor, cell: keras.layers.GRUCell) -> tf.Tensor:
    """GRU(x, h), with the reset gate applied after the product as Keras does by default.

        z = sigma(x_z + U_z h + b_z)     r = sigma(x_r + U_r h + b_r)
        h' = z h + (1 - z) tanh(x_h + r (U_h h + b_h))

    Args:
        projected: `[..., 3 units]`, what `project` returned for x.
        h: `[..., units]`.
        cell: owner of the weights.
    """
    inner = tf.tensordot(h, tf.cast(cell.recurrent_kernel, h.dtype), 1)
    inner += tf.cast(cell.bias, h.dtype)[1]
    x_z, x_r, x_h = tf.split(projected, 3, axis=-1)
    u_z, u_r, u_h = tf.split(inner, 3, axis=-1)
    z = tf.sigmoid(x_z + u_z)
    return z * h + (1.0 - z) * tf.tanh(x_h + tf.sigmoid(x_r + u_r) * u_h)


def bidirectional(
    vectors: tf.Tensor,
    filled: tf.Tensor,
    forward: keras.layers.GRUCell,
    backward: keras.layers.GRUCell,
) -> tf.Tensor:
    """A GRU over the cells in each direction; unused cells are skipped.

    Rows are the last axis, so that the arithmetic on the gates runs over thousands of contiguous
    numbers instead of the few units of one row. Both gates come from one product with input and
    state together, which makes the gradient cheap.

    Args:
        vectors: `[R, M, D]` with M known, so that the loop over the cells can be unrolled.
        filled: `[R, M]` bool.
        forward, backward: owners of the weights of each direction.

    Returns:
        `[R, M, 2 units]`.
    """
    cells, units = vectors.shape[1], forward.units
    x = tf.unstack(tf.transpose(vectors, [1, 2, 0]), num=cells)  # M of [D, R]
    filled = tf.unstack(tf.transpose(filled)[:, None], num=cells)  # M of [1, R]
    both = []
    for cell, order in ((forward, range(cells)), (backward, reversed(range(cells)))):
        kernel, recurrent, bias = (
            tf.cast(weight, vectors.dtype)
            for weight in (cell.kernel, cell.recurrent_kernel, cell.bias)
        )
        kernel, recurrent = tf.transpose(kernel), tf.transpose(recurrent)
        bias, gates = bias[..., None], 2 * units
        gate_kernel = tf.concat([kernel[:gates], recurrent[:gates]], axis=1)
        h = tf.zeros([units, tf.shape(vectors)[0]], vectors.dtype)
        outputs = [None] * cells
        for i in order:
            gate = tf.matmul(gate_kernel, tf.concat([x[i], h], axis=0))
            z, r = tf.split(tf.sigmoid(gate + bias[0, :gates] + bias[1, :gates]), 2)
            inner = r * (tf.matmul(recurrent[gates:], h) + bias[1, gates:])
            after = tf.tanh(tf.matmul(kernel[gates:], x[i]) + bias[0, gates:] + inner)
            h = outputs[i] = tf.where(filled[i], z * h + (1.0 - z) * after, h)
        both.append(tf.stack(outputs))  # [M, units, R]
    return tf.transpose(tf.concat(both, axis=1), [2, 0, 1])
