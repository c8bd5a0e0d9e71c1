"""What the answer to one sample is worth, whichever Keras loss the model was compiled with."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf
from keras.src.losses.losses import LossFunctionWrapper

Nest = Any


class SampleLoss:
    """The loss of each sample: that of `compile(loss=...)`, before the mean is taken.

    Args:
        loss: name, function or `keras.losses.Loss`; or a list or dict of them, as `compile` takes.
        weights: as `compile(loss_weights=...)`.
    """

    def __init__(self, loss: Any, weights: Any = None):
        self.losses, self.weights = loss, weights
        parts = [keras.losses.get(part) for part in tf.nest.flatten(loss) if part is not None]
        called = [getattr(part, "__name__", type(part).__name__).lower() for part in parts]
        self.likelihood = all("crossentropy" in name for name in called)

    def __call__(self, y: Nest, y_pred: Nest, questions: int | None = None) -> tf.Tensor:
        """`[B]`, or `[B, Q]` if there are `questions` along the stream."""
        total = 0.0
        for loss, weight, truth, answer in self._parts(y, y_pred):
            total += weight * _mean(_values(loss, truth, answer), answer, questions)
        return total

    def judged(self, y: Nest, y_pred: Nest) -> list[tf.Tensor]:
        """The outputs that have a loss."""
        return [answer for *_, answer in self._parts(y, y_pred)]

    def worth(self, losses: tf.Tensor, scale: tf.Tensor) -> tf.Tensor:
        """exp(-loss): for a cross-entropy the probability of the right answer.

        Any other loss may have any size, so it is divided by a typical one.

        Args:
            losses: of any shape.
            scale: what `scale_of` returned for the batch.
        """
        return tf.exp(-tf.cast(losses, tf.float32) / scale)

    def scale_of(self, losses: tf.Tensor) -> tf.Tensor:
        """The unit in which losses are measured: 1 for cross-entropies, else the batch's mean."""
        if self.likelihood:
            return tf.ones([])
        return tf.maximum(tf.reduce_mean(tf.abs(tf.cast(losses, tf.float32))), 1e-12)

    def _parts(self, y, y_pred):
        if isinstance(y_pred, dict):
            names, answers = list(y_pred), list(y_pred.values())
        else:
            answers = list(y_pred) if isinstance(y_pred, list | tuple) else [y_pred]
            names = list(range(len(answers)))

        def each(given, default=None):
            if isinstance(given, dict):
                return [given.get(name, default) for name in names]
            if isinstance(given, list | tuple):
                return list(given)
            return [given] * len(answers)

        truths = each(y) if len(answers) > 1 or isinstance(y, dict) else [y]
        rows = zip(each(self.losses), each(self.weights, 1.0), truths, answers, strict=True)
        return [
            (keras.losses.get(loss), 1.0 if weight is None else weight, truth, answer)
            for loss, weight, truth, answer in rows
            if loss is not None
        ]


def _values(loss, y, y_pred) -> tf.Tensor:
    """The loss before any mean over samples is taken."""
    if y_pred.dtype.is_floating:
        y_pred = tf.cast(y_pred, tf.float32)
    if not isinstance(loss, keras.losses.Loss):
        loss = LossFunctionWrapper(loss)  # as `compile` does: labels [B] for answers [B, 1], say
    return loss.call(tf.cast(y, tf.float32) if y.dtype != tf.string else y, y_pred)


def _mean(values, y_pred, questions: int | None) -> tf.Tensor:
    lead = 1 if questions is None else 2
    expected = [y_pred.shape[0]] if questions is None else [y_pred.shape[0], questions]
    if values.shape.rank is None or values.shape.rank < lead or values.shape[:lead] != expected:
        raise ValueError(
            "training a memory needs the loss of each sample"
            + ("" if questions is None else " and question")
            + f": expected a loss that gives values of shape {expected}, or {expected} and more; "
            f"got shape {values.shape}. Let the loss return a value for each sample instead of "
            "their mean, or train without: compile(retention=None)"
        )
    return tf.reduce_mean(values, axis=list(range(lead, values.shape.rank)))
