"""What policies see of slots of words, where it is not the reader's own view of them."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from lemn_tf.readers.base import Reader, WithReader


class _View(WithReader):
    """A view by way of a reader."""

    def __init__(self, reader: Reader, **kwargs):
        super().__init__(reader, **{"autocast": False, **kwargs})
        self.built = True

    def view(self, entries: dict[str, Any]) -> tf.Tensor:
        """Entries with any leading dimensions -> `[..., D]`."""
        raise NotImplementedError(f"{type(self).__name__} does not override view()")

    def call(self, entries):
        return self.view(entries)


@keras.saving.register_keras_serializable("lemn_tf")
class Lexical(_View):
    """Stem, salience and idf of each word, `[..., 3 L]`, for the rules of `retention.lexical`."""

    def view(self, entries):
        features = tf.cast(entries["features"], tf.float32)
        live = entries["words"] > 0
        salient = live & ((features[..., 0] > 0) | (features[..., 1] > 0))
        parts = [tf.where(live, entries["stem"] + 1, 0), salient, entries["idf"]]
        stacked = tf.stack([tf.cast(part, tf.float32) for part in parts], axis=-1)
        wide = 3 * self.reader.words
        return tf.reshape(stacked, tf.concat([tf.shape(live)[:-1], [wide]], axis=0))


@keras.saving.register_keras_serializable("lemn_tf")
class Aware(_View):
    """A slot beside the question that will be asked about it: `[..., E + 3]`, or `[..., E + 4]`.

    The reader's own view of the slot, then what the reader makes of the slot alone: the score of
    its best span, the log-sum of all their scores (both standardised by `mean` and `scale`), and
    last the share of the question's idf that it holds. If the reader has `before`, the share that
    the slot before holds comes before it: what a question is about is often named in one sentence
    and told in the next. Entries bring the question as `asked`, see
    `lemn_tf.episode.by_question`.

    Args:
        reader: a `WordReader` with `scores`.
    """

    def __init__(self, reader: Reader, **kwargs):
        super().__init__(reader, **kwargs)
        fixed = {"shape": (2,), "trainable": False}
        self.mean = self.add_weight(initializer="zeros", name="mean", **fixed)
        self.scale = self.add_weight(initializer="ones", name="scale", **fixed)

    def standardise(self, scores: np.ndarray) -> None:
        """Lets both scores have mean 0 and variance 1 over these, `[n, 2]`."""
        self.mean.assign(scores.mean(axis=0))
        self.scale.assign(1.0 / np.maximum(scores.std(axis=0), 1e-3))

    def view(self, entries):
        if "asked" not in entries:
            raise ValueError(
                "a policy that is question_aware needs the question beside each item: expected "
                "'asked' in the items, as episode.by_question puts it there"
            )
        reader = self.reader
        codes, query = reader.encode(entries), reader.ask(entries["asked"])
        ids = tf.zeros(tf.concat([tf.shape(codes)[:-1], [1]], axis=0), tf.int64)
        scores = reader.scores(query, codes[..., None, :], ids)
        said = tf.stack(
            [
                tf.reduce_max(scores, axis=[-3, -2, -1]),
                tf.reduce_logsumexp(scores, axis=[-3, -2, -1]),
            ],
            axis=-1,
        )
        said = tf.where(said > -1e8, (said - self.mean) * self.scale, 0.0)
        shared = [overlap(entries, entries["asked"])]
        if reader.before:
            shared.insert(0, overlap({"stem": entries["before"]}, entries["asked"]))
        parts = [tf.cast(reader.vectors(codes), tf.float32), said, tf.stack(shared, axis=-1)]
        return tf.concat(parts, axis=-1)


def overlap(slots: dict[str, tf.Tensor], asked: dict[str, tf.Tensor]) -> tf.Tensor:
    """Share of a question's idf whose stems stand in a slot, `[...]`, 0 to 1.

    Args:
        slots: `[..., L]`; of them `stem` is read.
        asked: `[..., J]`, of the same leading dimensions or such as can be broadcast; of them
            `stem`, `idf` and `words`.

    Example:

    >>> slots = {"stem": tf.constant([[3, 4], [5, 0]])}
    >>> asked = {"stem": tf.constant([[4, 5, 0]]), "idf": tf.constant([[3.0, 1.0, 9.0]]),
    ...          "words": tf.constant([[7, 8, 0]])}
    >>> overlap(slots, asked).numpy().tolist()
    [0.75, 0.25]
    """
    weight = tf.where(asked["words"] > 0, asked["idf"], 0.0)
    same = slots["stem"][..., :, None] == asked["stem"][..., None, :]  # [..., L, J]
    found = tf.cast(tf.reduce_any(same, axis=-2), tf.float32) * weight
    return tf.math.divide_no_nan(tf.reduce_sum(found, axis=-1), tf.reduce_sum(weight, axis=-1))
