"""Summaries of slots on one scale, with products of their main directions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

LEAST = 1e-3
"""A part of a summary that varies less than this is not scaled up to variance 1."""


class Standards(NamedTuple):
    """What summaries of some slots have in common, as arrays or as the weights of a reader.

    A policy with a linear part judges a slot by a sum over its features. What speaks for a slot in
    one kind of document speaks against it in another, so it is also given products: z is the
    summary with mean 0 and variance 1, p = z A are its P main directions with variance 1, and

        e = [z; p_i p_j - (i = j) for i <= j]

    Attributes:
        mean, scale: `[E]`; z = (summary - mean) * scale.
        axes: A, `[E, P]`.
    """

    mean: Any
    scale: Any
    axes: Any

    @classmethod
    def of(cls, summaries: np.ndarray, products: int = 0) -> Standards:
        """The standards of summaries `[n, E]`, with that many main directions.

        Example:

        >>> standards = Standards.of(np.array([[0.0, 1.0], [2.0, 1.0], [4.0, 1.0]]), products=1)
        >>> standards(tf.constant([[4.0, 1.0]])).numpy().astype(float).round(3).tolist()
        [[1.225, 0.0, 0.5]]
        """
        if products > summaries.shape[-1]:
            raise ValueError(
                f"expected products of at most {summaries.shape[-1]} directions, the width of a "
                f"summary; got {products}"
            )
        mean = summaries.mean(axis=0)
        scale = 1.0 / np.maximum(summaries.std(axis=0), LEAST)
        z = (summaries - mean) * scale
        values, vectors = np.linalg.eigh(z.T @ z / len(z))
        main = slice(None, -products - 1, -1)  # eigh puts the largest last
        axes = vectors[:, main] / np.sqrt(np.maximum(values[main], LEAST))
        # The sign of a direction is arbitrary: its largest part is positive.
        axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(products)])
        return cls(*(np.asarray(part, np.float32) for part in (mean, scale, axes)))

    @property
    def width(self) -> int:
        """The width of e."""
        size, products = self.axes.shape
        return size + products * (products + 1) // 2

    def __call__(self, summaries: tf.Tensor) -> tf.Tensor:
        """Summaries `[..., E]` -> e `[..., width]`, float32."""
        z = (tf.cast(summaries, tf.float32) - self.mean) * self.scale
        products = self.axes.shape[-1]
        if not products:
            return z
        p = tf.tensordot(z, tf.convert_to_tensor(self.axes), 1)
        i, j = np.triu_indices(products)
        both = tf.gather(p, i, axis=-1) * tf.gather(p, j, axis=-1) - (i == j).astype(np.float32)
        return tf.concat([z, both], axis=-1)
