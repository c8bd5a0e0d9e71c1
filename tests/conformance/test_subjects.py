"""Laws 6, 7, 9 and 10, which every policy and every reader obeys."""

import keras
import numpy as np
import pytest
import tensorflow as tf


def compiled(subject, layer, jit=False):
    """The subject as a graph function; without XLA for any number of rows and steps."""
    signature = None
    if not jit:
        given = subject.inputs(1)
        signature = [
            {k: tf.TensorSpec([None, None, *v.shape[2:]], v.dtype) for k, v in given.items()}
        ]
    return tf.function(
        lambda given: subject.run(layer, given), signature, autograph=False, jit_compile=jit
    )


_RUNS = {}


@pytest.fixture
def run(subject, layer):
    """The subject's graph function, traced once."""
    if subject.name not in _RUNS:
        _RUNS[subject.name] = compiled(subject, layer)
    return _RUNS[subject.name]


@pytest.fixture
def outputs(subject, run):
    """What the subject gives for four rows."""
    return run(subject.inputs(4))


def test_law_6_a_row_alone_is_that_row_in_a_batch(subject, run, outputs, compare):
    if "shuffle" in subject.name:
        pytest.skip("samples: each row draws its own noise")
    inputs = subject.inputs(4)
    for row in (1, 3):
        alone = run({k: v[row : row + 1] for k, v in inputs.items()})
        compare(alone, {k: v[row : row + 1] for k, v in outputs.items()})


def test_law_6_padding_changes_nothing(subject, run, outputs, compare):
    padded, cut = subject.pad(subject.inputs(4))
    compare(cut(run(padded)), outputs)


def test_law_7_config(subject, layer, outputs, compare):
    config = layer.get_config()
    twins = [type(layer).from_config(config) for _ in range(2)]  # a config can be used twice
    assert twins[0].get_config() == twins[1].get_config()
    twin = twins[0]
    subject.run(twin, subject.inputs(1))
    twin.set_weights(layer.get_weights())
    compare(subject.run(twin, subject.inputs(4)), outputs)


def test_law_7_keras_file(subject, layer, outputs, compare, tmp_path):
    class Wrapper(keras.Model):
        def __init__(self, inner, **kwargs):
            super().__init__(**kwargs)
            self.inner = inner
            self.built = True

        def call(self, inputs):
            return subject.run(self.inner, inputs)

        def get_config(self):
            return {"inner": keras.saving.serialize_keras_object(self.inner)}

        @classmethod
        def from_config(cls, config):
            return cls(keras.saving.deserialize_keras_object(config["inner"]))

    Wrapper(layer).save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras", {"Wrapper": Wrapper})
    assert loaded.inner is not layer
    compare(subject.run(loaded.inner, subject.inputs(4)), outputs)


def test_law_7_saved_model(subject, layer, run, outputs, compare, tmp_path):
    module = tf.Module()
    module.layer, module.run = layer, run
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    compare(loaded.run(subject.inputs(4)), outputs)


def test_law_9_a_gradient_reaches_every_weight(subject, layer):
    weights = subject.weights(layer)
    if not weights:
        pytest.skip("nothing to learn")
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(subject.scalars(layer, subject.inputs(4)) ** 2)
    for weight, gradient in zip(
        weights, tape.gradient(loss, [w.value for w in weights]), strict=True
    ):
        assert gradient is not None, weight.path
        gradient = tf.convert_to_tensor(gradient)  # some are sparse
        assert np.all(np.isfinite(gradient)), weight.path
        assert np.any(np.asarray(gradient) != 0), weight.path


def test_law_10_compiled_or_not(subject, layer, outputs, compare):
    compare(compiled(subject, layer, jit=True)(subject.inputs(4)), outputs)
