"""Keras callbacks for TensorBoard: the speed of training, and how old evicted items were.

folder = "logs"
model.fit(train, validation_data=valid, callbacks=[
    Rate(batch_size=32),
    keras.callbacks.TensorBoard(folder),
    EvictionAges(folder, lambda model: next(iter(valid))),
])
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

Logs = dict[str, Any] | None
"""What Keras hands to a callback."""


class Rate(keras.callbacks.Callback):
    """Adds `episodes_per_second` to what `fit` reports: put it before TensorBoard's callback.

    Args:
        batch_size: episodes in a batch.
    """

    def __init__(self, batch_size: int):
        super().__init__()
        self.batch_size, self.rate = batch_size, 0.0
        self.began: float | None = None

    def on_train_begin(self, logs: Logs = None) -> None:
        self.began, self.batches = None, 0

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        if self.began is None:  # the first batch compiles: it does not count for the rate
            self.began = time.time()
            return
        self.batches += 1
        self.rate = self.batches * self.batch_size / (time.time() - self.began)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        if logs is not None:
            logs["episodes_per_second"] = self.rate


class EvictionAges(keras.callbacks.Callback):
    """Writes a histogram of how old the evicted items were, once an epoch.

    Args:
        folder: where TensorBoard looks.
        episode: from the model to a batch for it to act on.
    """

    def __init__(self, folder: str, episode: Callable[[keras.Model], dict[str, tf.Tensor]]):
        super().__init__()
        self.folder, self.make_episode = folder, episode
        self.writer: Any = None

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        if self.writer is None:
            self.writer = tf.summary.create_file_writer(self.folder)
            self.act = tf.function(self.model.act)
            self.episode = self.make_episode(self.model)
        decisions, _ = self.act(self.episode)
        age = decisions.ids[..., -1] - decisions.evicted
        ages = tf.boolean_mask(age, decisions.free & (decisions.evicted >= 0))
        step = int(self.model.optimizer.iterations.numpy())
        with self.writer.as_default():
            tf.summary.histogram("age of evicted items", tf.cast(ages, tf.float32), step)
        self.writer.flush()
