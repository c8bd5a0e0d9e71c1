"""When an entry was seen, for readers that need it."""

from __future__ import annotations

import math

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable("lemn_tf")
class When(keras.layers.Layer):
    """Adds to the key of an entry how long ago it was seen, and how early in the stream.

        k_i + A[bucket(clock - id_i)] + E[bucket(id_i)]

    Numbers below `exact` have a bucket each; above, each doubling has eight buckets. Both tables
    start at 0, and no weight depends on the number of slots.

    Args:
        units: width of a key.
        exact: how many buckets hold a single number.

    Call arguments:
        codes: `[..., N, 2 units]`, key and value side by side.
        ids: `[..., N]`, -1 = unused.
        clock: `[...]`, how many items the stream has had.

    Returns:
        The codes with other keys.

    Example:

    >>> when, ids = When(units=4), tf.constant([[0, 5, -1]])
    >>> when(tf.zeros([1, 3, 8]), ids=ids, clock=tf.constant([7])).shape
    TensorShape([1, 3, 8])
    >>> when.bucket(tf.constant([0, 63, 64, 128, 10**9])).numpy().tolist()
    [0, 63, 64, 72, 127]
    """

    def __init__(self, units: int, exact: int = 64, **kwargs):
        super().__init__(**{"autocast": False, **kwargs})
        self.units, self.exact = units, exact
        self.ages, self.dates = (
            self.add_weight(shape=[2 * exact, units], initializer="zeros", name=name)
            for name in ("ages", "dates")
        )
        self.built = True

    def bucket(self, numbers: tf.Tensor) -> tf.Tensor:
        """Whole numbers, at least 0, as the rows of a table, int32."""
        share = tf.maximum(tf.cast(numbers, tf.float32) / self.exact, 1.0)
        far = self.exact + tf.cast(8.0 * tf.math.log(share) / math.log(2.0) + 1e-3, tf.int32)
        near = tf.cast(tf.minimum(numbers, self.exact), tf.int32)
        return tf.minimum(tf.where(near < self.exact, near, far), 2 * self.exact - 1)

    def call(self, codes, ids, clock):
        ids = tf.maximum(ids, 0)
        age = tf.maximum(tf.cast(clock, ids.dtype)[..., None] - ids, 0)
        time = tf.gather(self.ages, self.bucket(age)) + tf.gather(self.dates, self.bucket(ids))
        return codes + tf.cast(tf.concat([time, tf.zeros_like(time)], axis=-1), codes.dtype)

    def between(self, h: tf.Tensor) -> tf.Tensor:
        """h_t . (A + E) for all pairs of steps: what time adds to the score of j when t reads it.

        Args:
            h: `[B, T, units]`, the contexts of the first T steps of a stream.

        Returns:
            `[B, T, T]`; only what was seen before, j < t, means anything.
        """
        rows, length = h.shape[:2]
        steps = tf.range(length)
        age = tf.broadcast_to(
            self.bucket(tf.maximum(steps[:, None] - steps, 0)), [rows, length, length]
        )
        by_age = tf.gather(tf.matmul(h, self.ages, transpose_b=True), age, batch_dims=2)
        dates = tf.gather(self.dates, self.bucket(steps))
        return by_age + tf.matmul(h, dates, transpose_b=True)

    def get_config(self):
        return {**super().get_config(), "units": self.units, "exact": self.exact}
