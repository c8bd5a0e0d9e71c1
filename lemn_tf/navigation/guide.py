"""The guide: what an explorer who remembers everything would do at every step of a walk.

See `lemn_tf.mazes.explorer`. An agent in training walks its own way; the guide says afterwards, of
each pose that it got to, what would have been best to do there after what had been in view so far.
"""

from __future__ import annotations

import tensorflow as tf

from lemn_tf.mazes.explorer import APART
from lemn_tf.pipelines.frames import Course

CURIOSITY = 2.0
"""Steps that are worth going to see e times as many new cells."""


def advice(course: Course, pose: tf.Tensor) -> tf.Tensor:
    """What to do at every step of walks.

    Args:
        course: the maps, with what the explorer needs (`World.tables(explore=True)`).
        pose: int32 `[B, T]`, where the agents stood.

    Returns:
        bool `[B, T, 3]`, the best actions; all three where nothing can be said.
    """
    view = tf.cast(course.view, tf.float32)
    seen = tf.cumsum(tf.gather(view, pose), axis=1) > 0  # [B, T, cells]
    here = tf.gather(course.first, pose[:, 0])[:, None] + tf.range(course.steps.shape[1])
    here = tf.minimum(here, tf.shape(view)[0] - 1)
    news = tf.einsum("btc,bqc->btq", 1.0 - tf.cast(seen, tf.float32), tf.gather(view, here))
    worth = tf.where(news > 0, CURIOSITY * tf.math.log(tf.maximum(news, 1.0)), -float(APART))
    after = tf.gather(course.next, pose)  # [B, T, 3]
    steps = tf.cast(tf.gather(course.steps, after), tf.float32)
    cost = tf.reduce_min(steps - worth[:, :, None], axis=-1)
    curious = cost <= tf.reduce_min(cost, axis=-1, keepdims=True) + 1e-3
    found = tf.cumsum(tf.cast(tf.gather(course.goal, pose), tf.int32), axis=1) > 0
    return tf.where(found[..., None], tf.gather(course.shortest, pose), curious)
