"""MQN and FRMQN against a transcription of their equations in NumPy."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf import memory
from lemn_tf.readers import FRMQN, MQN
from lemn_tf.readers.mqn import FrameEncoder

UNITS, SLOTS = 6, 3


def small(cls):
    return cls(units=UNITS, eyes=FrameEncoder((8, 8), (3, 4)))


@pytest.fixture
def generator():
    return np.random.default_rng(0)


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def retrieve(h, keys, values, used):
    """o and p for one row, over the used slots only."""
    p = np.zeros(len(used))
    if used.any():
        scores = keys[used] @ h
        p[used] = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    return p @ values, p


def output(reader, h, o):
    d = h @ reader.mix.kernel.numpy() + o
    return np.where(np.arange(len(d)) < len(d) // 2, d, np.maximum(d, 0.0))


def test_features_pixel_by_pixel(generator):
    encoder = FrameEncoder(size=(8, 12), filters=(2, 3))
    x = generator.random([8, 12, 3])
    expected = x
    for layer in encoder.convolutions:
        kernel, bias = layer.kernel, layer.bias
        bias.assign(generator.normal(size=bias.shape))
        padded = np.pad(expected, [(1, 1), (1, 1), (0, 0)])
        rows, columns = expected.shape[0] // 2, expected.shape[1] // 2
        expected = np.zeros([rows, columns, kernel.shape[-1]])
        for r, c, k in np.ndindex(*expected.shape):
            window = padded[2 * r : 2 * r + 4, 2 * c : 2 * c + 4]
            sums = (window * kernel.numpy()[..., k]).sum() + bias.numpy()[k]
            expected[r, c, k] = max(sums, 0.0)
    np.testing.assert_allclose(encoder(x), expected.reshape(-1), atol=1e-5)
    assert 0 < (expected > 0).mean() < 1


def test_a_frame_of_32_gives_4096_features_whatever_its_type():
    encoder = FrameEncoder()
    frames = np.random.default_rng(1).integers(0, 256, [2, 3, 32, 32, 3], dtype=np.uint8)
    features = encoder(frames)
    assert features.shape == (2, 3, 4096)
    np.testing.assert_allclose(features, encoder(frames.astype(np.float32) / 255.0), atol=1e-5)
    assert encoder.count_params() == 4 * 4 * 3 * 32 + 32 + 4 * 4 * 32 * 64 + 64


def test_frames_of_another_size_are_refused():
    with pytest.raises(ValueError, match=r"expected frames .*16, 16, 3.* got shape \(2, 8, 8, 3\)"):
        FrameEncoder((16, 16))(np.zeros([2, 8, 8, 3], np.uint8))
    with pytest.raises(ValueError, match="multiples of 4"):
        FrameEncoder((30, 32))


def test_initial_weights_are_uniform_within_the_root_of_the_inputs():
    reader = MQN(units=64)
    for layer, inputs in ((reader.key, 4096), (reader.mix, 64), (reader.actor, 64)):
        kernel = layer.kernel.numpy()
        assert np.abs(kernel).max() <= inputs**-0.5
        assert kernel.std() == pytest.approx((inputs * 3) ** -0.5, rel=0.2)
    assert np.abs(reader.eyes.weights[0].numpy()).max() <= 48**-0.5


@pytest.mark.parametrize("kind", [MQN, FRMQN])
def test_codes_are_key_and_value(kind, generator):
    reader = small(kind)
    frames = generator.integers(0, 256, [2, 8, 8, 3], dtype=np.uint8)
    features = reader.see(frames).numpy()
    codes = reader.encode(frames)
    key = features @ reader.key.kernel.numpy() + reader.key.bias.numpy()
    value = features @ reader.value.kernel.numpy() + reader.value.bias.numpy()
    np.testing.assert_allclose(codes, np.concatenate([key, value], axis=-1), atol=1e-5)
    np.testing.assert_allclose(reader.vectors(codes), value, atol=1e-5)


def test_mqn_reads_as_written(generator):
    reader = small(MQN)
    frames = generator.integers(0, 256, [4, 8, 8, 3], dtype=np.uint8)
    codes = generator.normal(size=[4, SLOTS, 2 * UNITS]).astype(np.float32)
    ids = np.array([[0, 1, 2], [4, -1, 3], [-1, -1, -1], [-1, 7, -1]])
    query = reader.ask(frames)
    features = reader.see(frames).numpy()
    context = features @ reader.context.kernel.numpy() + reader.context.bias.numpy()
    np.testing.assert_allclose(query, context, atol=1e-5)
    seen = reader.glance(query, tf.constant(codes), tf.constant(ids))
    answer = reader.read(query, tf.constant(codes), tf.constant(ids))
    for row in range(4):
        keys, values = codes[row, :, :UNITS], codes[row, :, UNITS:]
        o, p = retrieve(context[row], keys, values, ids[row] >= 0)
        d = output(reader, context[row], o)
        np.testing.assert_allclose(seen.attention[row], p, atol=1e-5)
        np.testing.assert_allclose(seen.output[row], d, atol=1e-4)
        logits = d @ reader.actor.kernel.numpy() + reader.actor.bias.numpy()
        np.testing.assert_allclose(answer.logits[row], logits, atol=1e-4)
    assert not seen.attention[2].numpy().any()  # nothing in memory, nothing read


@pytest.fixture
def episode(generator):
    """Two rows of five steps, with memories that fill."""
    steps = 5
    query = generator.normal(size=[2, steps, 4 * UNITS]).astype(np.float32)
    codes = generator.normal(size=[2, steps, SLOTS, 2 * UNITS]).astype(np.float32)
    places = np.arange(SLOTS)
    ids = np.broadcast_to(
        np.where(places < np.arange(steps)[:, None], places, -1), [2, steps, SLOTS]
    )
    return query, codes, ids


def test_frmqn_reads_as_written(episode):
    reader = small(FRMQN)
    query, codes, ids = episode
    kernel, bias = reader.recurrent.kernel.numpy(), reader.recurrent.bias.numpy()
    outputs, attention = reader.unroll(*(tf.constant(x) for x in episode))
    for row in range(2):
        h = c = o = np.zeros(UNITS)
        for t in range(query.shape[1]):
            gates = query[row, t] + np.concatenate([h, o]) @ kernel + bias
            i, f, u, g = np.split(gates, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(u) * np.tanh(c)
            keys, values = np.split(codes[row, t], 2, axis=-1)
            o, p = retrieve(h, keys, values, ids[row, t] >= 0)
            np.testing.assert_allclose(attention[row, t], p, atol=1e-5)
            np.testing.assert_allclose(outputs[row, t], output(reader, h, o), atol=1e-4)


@pytest.mark.parametrize("kind", [MQN, FRMQN])
def test_all_steps_at_once_are_the_steps_one_by_one(kind, episode):
    reader = small(kind)
    query, codes, ids = (tf.constant(x) for x in episode)
    query = query[..., : reader.query_widths * UNITS]
    outputs, attention = reader.unroll(query, codes, ids)
    carry = reader.initial_carry(2)
    for t in range(query.shape[1]):
        seen = reader.glance(query[:, t], codes[:, t], ids[:, t], carry)
        carry = seen.carry
        np.testing.assert_allclose(outputs[:, t], seen.output, atol=1e-5)
        np.testing.assert_allclose(attention[:, t], seen.attention, atol=1e-5)


def test_the_gradient_of_all_steps_at_once_is_that_of_the_steps_one_by_one(episode, generator):
    """Of outputs and attention, with regard to inputs and weights, compiled or not."""
    reader = small(FRMQN)
    query, codes, ids = (tf.constant(x) for x in episode)
    weigh = [
        tf.constant(generator.normal(size=[2, 5, width]), tf.float32) for width in (UNITS, SLOTS)
    ]
    weights = [reader.recurrent.kernel.value, reader.recurrent.bias.value, reader.mix.kernel.value]

    def one_by_one():
        carry, seen = reader.initial_carry(2), []
        for t in range(query.shape[1]):
            seen.append(reader.glance(query[:, t], codes[:, t], ids[:, t], carry))
            carry = seen[-1].carry
        return [tf.stack([getattr(s, n) for s in seen], axis=1) for n in ("output", "attention")]

    def gradients(run):
        with tf.GradientTape() as tape:
            tape.watch([query, codes])
            total = tf.add_n([tf.reduce_sum(w * x) for w, x in zip(weigh, run(), strict=True)])
        return tape.gradient(total, [query, codes, *weights])

    expected = gradients(one_by_one)
    for jit_compile in (False, True):
        found = tf.function(
            lambda: gradients(lambda: reader.unroll(query, codes, ids)), jit_compile=jit_compile
        )()
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)
            assert np.abs(other).max() > 0.01


@pytest.mark.parametrize("kind", [MQN, FRMQN])
def test_it_answers_from_a_memory_of_frames(kind, generator):
    reader = small(kind)
    state = memory.empty(2, SLOTS, tf.TensorSpec([8, 8, 3], tf.uint8))
    frames = tf.constant(generator.integers(0, 256, [2, 8, 8, 3], dtype=np.uint8))
    state = memory.write(state, frames, tf.constant([0, 0]))
    answer = reader(frames, state)
    assert answer.logits.shape == (2, 3)
    np.testing.assert_allclose(answer.attention.numpy()[:, -1], 1.0)


@pytest.mark.parametrize("kind", [MQN, FRMQN])
def test_configuration_round_trip(kind):
    reader = small(kind)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(reader))
    assert type(again) is kind
    assert [w.shape for w in again.weights] == [w.shape for w in reader.weights]
    assert again.get_config() == reader.get_config()
