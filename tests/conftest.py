"""Quiet start-up for the whole suite, before TensorFlow is imported; a model of one's own."""

import os

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


@pytest.fixture(scope="session")
def own():
    """A model of one's own over vectors, compiled, and samples for it."""
    import keras
    import numpy as np

    import lemn_tf

    keras.utils.set_random_seed(0)
    inputs = keras.Input((12, 3))
    state, _ = lemn_tf.EpisodicMemory(slots=3, policy="s-lemn")(inputs)
    seen = keras.layers.GRU(4)(state.entries)
    model = lemn_tf.MemoryModel(inputs, keras.layers.Dense(3, "softmax")(seen))
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    rng = np.random.default_rng(0)
    return model, rng.normal(size=[6, 12, 3]).astype("float32"), rng.integers(0, 3, [6])
