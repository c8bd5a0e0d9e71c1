"""What the callbacks show of a training, and that the training does not notice."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf.callbacks import Rate, RetentionBoard
from lemn_tf.model import StreamReader
from lemn_tf.readers import MemN2N
from tests.seeing.test_boards import events


class Seen(keras.callbacks.Callback):
    """Keeps what comes with the end of an epoch."""

    def on_epoch_end(self, epoch, logs=None):
        self.logs = dict(logs)


def test_the_rate_is_reported_without_the_first_batch():
    model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    seen, data = Seen(), np.ones([12, 1])
    model.fit(data, data, 4, callbacks=[Rate(4), seen], verbose=0)
    assert seen.logs["episodes_per_second"] > 0
    model.fit(data[:4], data[:4], 4, callbacks=[Rate(4), seen], verbose=0)
    assert seen.logs["episodes_per_second"] == 0  # one batch tells nothing


EPISODE = {
    "items": tf.ones([3, 5, 3], tf.int32),
    "length": tf.constant([5, 5, 4]),
    "questions": tf.ones([3, 1, 3], tf.int32),
    "ask_at": tf.constant([[5], [5], [4]]),
    "answers": tf.ones([3, 1], tf.int32),
    "support": tf.zeros([3, 1, 1], tf.int32),
}


def trained(tmp_path=None):
    """A small model after two phases of an epoch each, with a board or without."""
    keras.utils.set_random_seed(0)
    model = StreamReader(MemN2N(9, 3, units=4, hops=1, max_slots=8), 2, "s-lemn")
    board = [] if tmp_path is None else [RetentionBoard(EPISODE, folder=tmp_path)]
    data = tf.data.Dataset.from_tensors(EPISODE)
    for number, name in enumerate(("first", "second")):
        model.compile("sgd", jit_compile=False)
        for one in board:
            one.in_phase(name, number, number)
        model.fit(data, validation_data=data, callbacks=board, verbose=0)
    return [*model.get_weights(), keras.random.normal([3])]


@pytest.mark.slow
def test_a_board_over_two_phases(tmp_path):
    with_board, without = trained(tmp_path), trained()
    for a, b in zip(with_board, without, strict=True):
        np.testing.assert_array_equal(a, b)
    found = events(tmp_path)
    assert [step for step, _ in found["validation/accuracy"]] == [1, 2]
    assert [step for step, _ in found["error/fifo"]] == [1, 2]
    assert {"error/s-lemn", "error/lru", "error/oracle", "life-lines"} <= set(found)
    assert len(found["phase"]) == 2
    # two slots: of five items three leave, of four two
    histogram = tf.make_ndarray(found["age of evicted items"][0][1].tensor)
    assert histogram[:, 2].sum() == 3 + 3 + 2


def test_a_board_for_a_model_of_ones_own(own, tmp_path):
    model, x, y = own
    board = RetentionBoard((x, y), every=2, folder=tmp_path)
    model.fit(x, y, batch_size=3, epochs=3, validation_data=(x, y), callbacks=[board], verbose=0)
    found = events(tmp_path)
    assert [step for step, _ in found["training/loss"]] == [2, 4, 6]
    assert [step for step, _ in found["life-lines"]] == [2, 6]
    assert {"error/s-lemn", "error/fifo"} <= set(found)
    phases = [(step, float(tf.make_ndarray(one.tensor))) for step, one in found["phase"]]
    assert phases == [(0, 0.0), (1, 1.0)]  # a fifth of six updates is the warmup
    told = [tf.make_ndarray(one.tensor).item() for _, one in found["phases"]]
    assert told == [b"warmup begins at step 0", b"policy begins at step 1"]


def test_phases_of_a_model_of_ones_own(own, tmp_path):
    """In one curve over two trainings, and in a board of its own for the second."""
    model, x, y = own
    for warmup, phases in ((4, [("warmup", 0), ("policy", 4)]), (0, [("policy", 0)])):
        model.compile("sgd", "sparse_categorical_crossentropy", warmup=warmup)
        assert model.training_phases == phases
    model.compile("sgd", "sparse_categorical_crossentropy", warmup=3, jit_compile=False)
    one, other = (RetentionBoard((x, y), every=9, folder=tmp_path / name) for name in "ab")
    for boards in ([one], [one, other]):
        model.fit(x, y, batch_size=3, callbacks=boards, verbose=0)
    found = [[step for step, _ in events(tmp_path / name)["phase"]] for name in "ab"]
    assert found == [[0, 3], [2, 3]]
    model.compile("sgd", "sparse_categorical_crossentropy", retention=None)
    assert model.training_phases == []
