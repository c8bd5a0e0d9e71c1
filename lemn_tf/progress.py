"""What a person sees while training: a bar with rate and time left, and TensorBoard's curves."""

from __future__ import annotations

import time
from collections.abc import Callable

import keras
import tensorflow as tf
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from lemn_tf.recipes import Phase


class Rate(keras.callbacks.Callback):
    """Adds `episodes_per_second` to what `fit` reports: put it before TensorBoard's callback.

    Args:
        batch_size: episodes in a batch.
    """

    def __init__(self, batch_size: int):
        super().__init__()
        self.batch_size, self.rate = batch_size, 0.0

    def on_train_begin(self, logs=None):
        self.began, self.batches = None, 0

    def on_train_batch_end(self, batch, logs=None):
        if self.began is None:  # the first batch compiles: it does not count for the rate
            self.began = time.time()
            return
        self.batches += 1
        self.rate = self.batches * self.batch_size / (time.time() - self.began)

    def on_epoch_end(self, epoch, logs=None):
        logs["episodes_per_second"] = self.rate


class Bar(Rate):
    """A progress bar for one phase: episodes a second, time left, and the last validation.

    Args:
        phase: what is being trained.
        console: where to show it; without a terminal, one line for each validation instead.
    """

    def __init__(self, phase: Phase, console: Console | None = None):
        super().__init__(phase.batch_size)
        self.phase, self.console = phase, console or Console(stderr=True)
        self.total = max(1, phase.episodes // phase.batch_size)
        self.progress = Progress(
            TextColumn("{task.description:>12}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%  {task.fields[rate]} episodes/s "),
            TimeRemainingColumn(),
            TextColumn("{task.fields[valid]}"),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self.task = self.progress.add_task(phase.name, total=self.total, rate="-", valid="")
        self.shown = 0.0

    def on_train_begin(self, logs=None):
        super().on_train_begin(logs)
        self.progress.start()

    def on_train_batch_end(self, batch, logs=None):
        super().on_train_batch_end(batch, logs)
        now = time.time()
        if self.rate and now - self.shown > 0.2:
            done = int(self.model.optimizer.iterations.numpy())
            self.progress.update(self.task, completed=done, rate=f"{self.rate:,.0f}")
            self.shown = now

    def on_epoch_end(self, epoch, logs=None):
        super().on_epoch_end(epoch, logs)
        done = int(self.model.optimizer.iterations.numpy())
        error = 100 * (1 - logs.get("val_accuracy", 0.0))
        valid = f"validation error {error:.1f}%"
        self.progress.update(self.task, completed=done, rate=f"{self.rate:,.0f}", valid=valid)
        if not self.console.is_terminal:
            self.console.print(
                f"{self.phase.name}: {done * self.phase.batch_size:,} of "
                f"{self.total * self.phase.batch_size:,} episodes, {self.rate:,.0f}/s, {valid}"
            )

    def on_train_end(self, logs=None):
        done = int(self.model.optimizer.iterations.numpy()) >= self.total
        if done or self.model.stop_training:  # a phase is one `fit` after another
            self.progress.stop()


class EvictionAges(keras.callbacks.Callback):
    """Shows TensorBoard how old the evicted items were, as a histogram, once an epoch.

    Args:
        folder: where TensorBoard looks.
        episode: from the model to a batch for it to act on.
    """

    def __init__(self, folder: str, episode: Callable[[keras.Model], dict[str, tf.Tensor]]):
        super().__init__()
        self.folder, self.make_episode = folder, episode
        self.writer = None

    def on_epoch_end(self, epoch, logs=None):
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
