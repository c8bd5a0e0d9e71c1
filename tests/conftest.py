"""For the whole suite: what makes it quiet and quick, and a model of one's own."""

import gc
import os

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
gc.set_threshold(50_000, 20, 20)  # tracing makes many objects that stay


def pytest_configure():
    """Where XLA does not optimise, TensorFlow's own graph optimiser would not pay either."""
    import tensorflow as tf

    if "optimization_level=0" in os.environ.get("XLA_FLAGS", ""):
        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """The tests of a file run in one process, where what they share is made once."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.location[0]))


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
