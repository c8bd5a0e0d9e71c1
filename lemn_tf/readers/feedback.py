"""FRMQN's recurrence over whole episodes, with a hand-written gradient.

Automatic differentiation of the loop would add up a matrix as large as the weights at every step.
Here the backward loop carries only the state's gradient and records that of the gates; the
gradients of weights, keys and values are then one product each, over all steps at once. A test
compares it with the gradient of single steps.
"""

from __future__ import annotations

import tensorflow as tf

from lemn_tf.readers.recurrent import lstm_step, lstm_step_gradient

MASKED = -1e9


def attend(h: tf.Tensor, keys: tf.Tensor, used: tf.Tensor) -> tf.Tensor:
    """p `[..., N]`: softmax of h . k over the used slots, in float32; all 0 if there are none.

    Args:
        h: `[..., units]`.
        keys: `[..., N, units]`.
        used: `[..., N]` bool.
    """
    scores = tf.einsum("...d,...nd->...n", tf.cast(h, keys.dtype), keys)
    scores = tf.cast(scores, tf.float32)
    return tf.nn.softmax(tf.where(used, scores, MASKED)) * tf.cast(used, tf.float32)


def read(p: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """o `[..., units]`: the values `[..., N, units]` weighted by p `[..., N]`."""
    return tf.einsum("...n,...nd->...d", tf.cast(p, values.dtype), values)


@tf.custom_gradient
def recurrence(
    query: tf.Tensor, keys: tf.Tensor, values: tf.Tensor, used: tf.Tensor, kernel: tf.Tensor
):
    """h and o of every step, from states of 0: h_t of [h, o]_{t-1} and the query, o_t read by h_t.

    Args:
        query: `[T, B, 4 units]`, what the frames and the bias add to the gates.
        keys, values: `[T, B, N, units]`, of the frames in memory.
        used: `[T, B, N]` bool.
        kernel: `[2 units, 4 units]`, from [h, o] to the gates.

    Returns:
        h and o side by side, `[T, B, 2 units]`, and the attention p, `[T, B, N]`.
    """
    steps, batch, _, units = keys.shape
    start = (tf.zeros([batch, units]), tf.zeros([batch, 2 * units]))

    def arrays(*widths):
        return [tf.TensorArray(tf.float32, steps, element_shape=[batch, n]) for n in widths]

    def forth(t, c, state, record):
        gates = tf.split(query[t] + tf.matmul(state, kernel), 4, axis=-1)
        h, c, gates = lstm_step(gates, c)
        p = attend(h, keys[t], used[t])
        state = tf.concat([h, read(p, values[t])], axis=-1)
        noted = (tf.concat(gates, axis=-1), c, state, p)
        record = [array.write(t, x) for array, x in zip(record, noted, strict=True)]
        return t + 1, c, state, record

    begin = (0, *start, arrays(4 * units, units, 2 * units, keys.shape[2]))
    *_, record = tf.while_loop(lambda t, *_: t < steps, forth, begin, maximum_iterations=steps)
    gates, c, states, attention = (array.stack() for array in record)

    def gradient(d_states, d_attention):
        before = tf.concat([tf.zeros_like(c[:1]), c[:-1]], axis=0)

        def back(t, d_c, d_state, record):
            t -= 1
            d_h, d_o = tf.split(d_state + d_states[t], 2, axis=-1)
            p = attention[t]
            d_p = tf.einsum("bd,bnd->bn", d_o, values[t]) + d_attention[t]
            d_score = p * (d_p - tf.reduce_sum(p * d_p, axis=-1, keepdims=True))
            d_h += tf.einsum("bn,bnd->bd", d_score, keys[t])
            passed = tf.split(gates[t], 4, axis=-1)
            d_gates, d_c = lstm_step_gradient(passed, before[t], c[t], d_h, d_c)
            d_gates = tf.concat(d_gates, axis=-1)
            noted = (d_gates, d_score, d_o)
            record = [array.write(t, x) for array, x in zip(record, noted, strict=True)]
            return t, d_c, tf.matmul(d_gates, kernel, transpose_b=True), record

        begin = (steps, *start, arrays(4 * units, keys.shape[2], units))
        *_, record = tf.while_loop(lambda t, *_: t > 0, back, begin, maximum_iterations=steps)
        d_gates, d_score, d_o = (array.stack() for array in record)
        earlier = tf.concat([tf.zeros_like(states[:1]), states[:-1]], axis=0)
        d_kernel = tf.tensordot(earlier, d_gates, [[0, 1], [0, 1]])
        d_keys = d_score[..., None] * states[..., None, :units]
        d_values = attention[..., None] * d_o[..., None, :]
        return d_gates, d_keys, d_values, None, d_kernel

    return (states, attention), gradient
