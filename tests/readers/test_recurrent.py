"""The recurrent layers against Keras' own, values and gradients."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf.readers.recurrent import BiGRU, BiLSTM


def same_in_keras(layer, width):
    """Keras' own layer with the weights of ours."""
    units = layer.units
    if isinstance(layer, BiGRU):
        one_way = keras.layers.GRU(units, return_sequences=True, reset_after=True)
    else:
        one_way = keras.layers.LSTM(units, return_sequences=True, unit_forget_bias=False)
    both = keras.layers.Bidirectional(one_way)
    both.build((None, None, width))
    weights = []
    for way in range(2):
        bias = layer.bias.numpy()[way].copy()
        if isinstance(layer, BiGRU):
            bias = np.stack([bias, np.zeros_like(bias)])
        else:
            bias[units : 2 * units] += 1.0
        weights += [layer.kernel.numpy()[way], layer.recurrent.numpy()[way], bias]
    both.set_weights(weights)
    return both


@pytest.mark.parametrize("cls", [BiGRU, BiLSTM])
def test_the_same_numbers_and_gradients_as_keras(cls):
    random = np.random.default_rng(0)
    layer = cls(3)
    layer.build((None, None, 5))
    for weight in layer.weights:
        weight.assign(random.normal(scale=0.7, size=weight.shape))
    x = tf.constant(random.normal(size=[2, 4, 6, 5]), tf.float32)
    mask = tf.sequence_mask([[6, 1, 3, 4], [2, 6, 5, 6]], 6)
    weight = tf.cast(mask, tf.float32)[..., None] * tf.constant(
        random.normal(size=[2, 4, 6, 6]), tf.float32
    )
    theirs = same_in_keras(layer, 5)

    def run(call, variables):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = call()
            loss = tf.reduce_sum(y * weight)
        return y, tape.gradient(loss, [x, *variables])

    ours, gradients = run(lambda: layer(x, mask), [layer.kernel.value, layer.recurrent.value])
    flat, flat_mask = tf.reshape(x, [8, 6, 5]), tf.reshape(mask, [8, 6])
    cells = [theirs.forward_layer.cell, theirs.backward_layer.cell]
    found = [w.value for cell in cells for w in (cell.kernel, cell.recurrent_kernel)]
    expected, wanted = run(
        lambda: tf.reshape(theirs(tf.reshape(x, [8, 6, 5]), mask=flat_mask), [2, 4, 6, 6]), found
    )
    del flat
    np.testing.assert_allclose(ours * weight, expected * weight, atol=1e-5)
    np.testing.assert_allclose(gradients[0], wanted[0], atol=1e-4)
    for way in range(2):
        np.testing.assert_allclose(gradients[1][way], wanted[1 + 2 * way], atol=1e-4)
        np.testing.assert_allclose(gradients[2][way], wanted[2 + 2 * way], atol=1e-4)


def test_the_length_must_be_known():
    layer = BiGRU(2)
    run = tf.function(
        lambda x: layer(x, tf.ones(tf.shape(x)[:2], tf.bool)),
        input_signature=[tf.TensorSpec([None, None, 3])],
        autograph=False,
    )
    with pytest.raises(ValueError, match="known length"):
        run(tf.zeros([1, 2, 3]))
