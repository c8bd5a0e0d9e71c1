"""What the callbacks hand to TensorBoard."""

import keras
import numpy as np
import tensorflow as tf

from lemn_tf.callbacks import EvictionAges, Rate
from lemn_tf.model import StreamReader
from lemn_tf.readers import MemN2N


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


def test_ages_of_evicted_items(tmp_path):
    """FIFO with two slots evicts what is two items old."""
    model = StreamReader(MemN2N(9, 3, units=4, hops=1, max_slots=8), 2, "fifo")
    episode = {
        "items": tf.ones([3, 5, 3], tf.int32),
        "length": tf.constant([5, 5, 4]),
        "questions": tf.ones([3, 1, 3], tf.int32),
        "ask_at": tf.constant([[5], [5], [4]]),
        "answers": tf.ones([3, 1], tf.int32),
    }
    model.compile("sgd", jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    ages = EvictionAges(str(tmp_path), lambda model: episode)
    ages.set_model(model)
    ages.on_epoch_end(0)
    ages.writer.close()
    (path,) = tmp_path.iterdir()
    (event,) = [e for e in tf.compat.v1.train.summary_iterator(str(path)) if e.summary.value]
    histogram = tf.make_ndarray(event.summary.value[0].tensor)  # rows of left, right, count
    assert event.summary.value[0].tag == "age of evicted items"
    assert histogram[:, 2].sum() == 3 + 3 + 2
    (filled,) = histogram[histogram[:, 2] > 0]
    assert filled[0] <= 2 <= filled[1]
