"""Keras callbacks: the speed of training, and what TensorBoard shows of a memory that learns.

model.fit(train, validation_data=valid, callbacks=[
    Rate(batch_size=32),
    RetentionBoard(valid, every=2, folder="logs"),
])
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

import keras

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


class RetentionBoard(keras.callbacks.Callback):
    """Shows in TensorBoard what a model remembers while it learns: one event file for a training.

    Curves over all steps with phases marked (of a model of your own: `warmup`, while mostly what
    comes behind its memory learns, then `policy`); the error beside FIFO, LRU and the oracle (under
    Custom Scalars); life-lines of a validation stream, what memory held at each question, the
    regret of its drops and their ages; and the settings, to compare runs. None of this changes the
    numbers of the training.

    Args:
        validation_data: a data set of episodes for a `StreamReader`, `(x, y)` for a model of your
            own, or a function from the model to either; the board looks at one batch of it.
        every: epochs between two looks into the memory; curves are written after each.
        folder: where TensorBoard looks.
        hparams: settings to compare runs by.
        texts: from an item to words, for a model of your own.
    """

    def __init__(
        self,
        validation_data: Any,
        every: int = 1,
        folder: str | os.PathLike = "logs",
        hparams: Mapping[str, Any] | None = None,
        texts: Callable[[Any], str] | None = None,
    ):
        super().__init__()
        if every < 1:
            raise ValueError(f"expected at least 1 epoch between two looks, got every={every}")
        self.data, self.every, self.folder = validation_data, every, folder
        self.hparams, self.texts = hparams, texts
        self.board: Any = None
        self.watched: Any = None
        self.began, self.shown, self.named, self.epochs = 0, 0, ("", 0), 0
        self.first, self.marked = 0, -1

    def in_phase(self, name: str, number: int, began: int) -> RetentionBoard:
        """The same board in the next phase of a training, which begins at that global step.

        If training went back to try something else, the curve goes on from the last step shown.
        """
        self.named, self.began = (name, number), max(began, self.shown)
        if self.board is not None:
            self.board.phase(name, number, self.began)
        return self

    @property
    def step(self) -> int:
        """Updates since the training began, all phases together."""
        return self.began + int(self.model.optimizer.iterations.numpy())

    def on_train_begin(self, logs: Logs = None) -> None:
        if self.board is None:
            from lemn_tf.seeing.boards import Board

            self.board = Board(self.folder, self.hparams)
            if self.named[0]:
                self.board.phase(*self.named, self.step)
        self.first = self.step
        self._mark()

    def _mark(self) -> None:
        """Marks the phase that a model of your own is in by itself, unless phases were named."""
        if self.named[0]:
            return
        phases = getattr(self.model, "training_phases", ())
        begun = [one for one in enumerate(phases) if self.began + one[1][1] <= self.step]
        for number, (name, update) in begun[-1:]:
            if number > self.marked:
                self.board.phase(name, number, max(self.began + update, self.first))
                self.marked = number

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        self.shown = self.step
        self._mark()
        self.board.scalars(logs or {}, self.shown)
        if self.epochs % self.every == 0:
            self.look()
        self.epochs += 1

    def look(self) -> None:
        """Looks into the memory now."""
        from lemn_tf.seeing.validating import Watched

        if self.watched is None or self.watched.model is not self.model:
            data = self.data(self.model) if callable(self.data) else self.data
            self.watched = Watched(self.model, data, self.texts)
        self.board.results(self.watched.errors(), self.step)
        self.board.memory(self.watched.traces(), self.step)
