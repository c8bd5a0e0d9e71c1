"""What a model of documents knows about words and arriving slots; without tensorflow_text.

Training, evaluation and exported models all build on this.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from lemn_tf.model import StreamReader
from lemn_tf.pipelines.embeddings import Words
from lemn_tf.pipelines.tokens import IDF
from lemn_tf.wordlist import WordList

OWN = ("hand", "words", "slot")
"""What policies see of a slot, see `WordReader`; with MiniLM's vectors they see `sentence` too."""
PARAGRAPH = 6
"""How many numbers say where in its paragraph a slot stands."""
ARRIVAL = 8 + PARAGRAPH
"""The width of what `arrival` says of a slot; the place in the paragraph comes last."""


def words_of(model: StreamReader) -> tuple[Words, np.ndarray]:
    """The vocabulary and the idf that a model was trained with."""
    known = model.vocabulary
    if not isinstance(known, WordList):
        raise ValueError(
            "expected a model of documents, which brings its words; got one with "
            f"{type(known).__name__}"
        )
    return Words(known.words, known.buckets), np.asarray(known.idf, np.float32)


def arrival(
    items: dict[str, tf.Tensor],
    paragraph: tf.Tensor,
    seen: tf.Tensor | None = None,
    clock: Any = 0,
) -> tf.Tensor:
    """What is known of each slot when it arrives, beyond its words: `[B, T, ARRIVAL]`.

    Its position in the document and in its paragraph, and how many of its stems the document had
    not had before: of all, weighted by idf, of words with a capital letter or a digit. Nothing here
    depends on what comes later.

    Args:
        items: the slots, see `lemn_tf.pipelines.spans`.
        paragraph: `[B, T, L]`, how many words of its paragraph come before each word.
        seen: `[B, IDF]` bool, the stems of the document before these slots; None for none.
        clock: how many slots came before, a number or `[B]`.
    """
    live = items["words"] > 0
    fresh = tf.cast(_first(items["stem"] % IDF, live, seen), tf.float32)
    count = tf.maximum(tf.reduce_sum(tf.cast(live, tf.float32), axis=-1), 1.0)
    features = items["features"]
    salient = tf.cast((features[..., 0] > 0) | (features[..., 1] > 0), tf.float32)
    place = tf.range(tf.cast(tf.shape(live)[1], tf.float32))
    place += tf.reshape(tf.cast(clock, tf.float32), [-1, 1])
    place = tf.broadcast_to(place, tf.shape(live)[:2])
    rare = tf.cast(items["idf"] > 1.0, tf.float32)

    def share(x):
        return tf.reduce_sum(x * fresh, axis=-1) / count

    parts = [
        tf.math.log1p(place),
        1.0 / (1.0 + place),
        tf.cast(place < 20, tf.float32),
        share(tf.ones_like(fresh)),
        share(items["idf"]),
        share(salient),
        share(rare),
        tf.minimum(place / 100.0, 3.0),
    ]
    return tf.concat([tf.stack(parts, axis=-1), _in_paragraph(paragraph, live)], axis=-1)


def _in_paragraph(before: tf.Tensor, live: tf.Tensor) -> tf.Tensor:
    """Where in a paragraph slots stand, `[B, T, PARAGRAPH]`; see `arrival`."""
    before = tf.cast(before, tf.float32)
    there = tf.reduce_any(live, axis=-1)
    least = tf.where(there, tf.reduce_min(tf.where(live, before, np.inf), axis=-1), 0.0)
    ends = tf.reduce_sum(tf.cast(live, tf.int32), axis=-1) - 1
    last = tf.gather(before, tf.maximum(ends, 0), batch_dims=2)
    parts = [
        tf.cast(least == 0, tf.float32),  # a paragraph begins here
        tf.math.log1p(least),
        tf.cast(before[..., 0] < 20, tf.float32),
        tf.cast(last < 20, tf.float32),
        tf.math.log1p(last),
        tf.cast(before[..., 0] < 40, tf.float32),
    ]
    return tf.stack(parts, axis=-1) * tf.cast(there, tf.float32)[..., None]


def _first(stems: tf.Tensor, live: tf.Tensor, seen: tf.Tensor | None) -> tf.Tensor:
    """Whether each word `[B, T, L]` is the first of its stem; see `arrival`."""
    rows, steps, length = (tf.shape(stems)[k] for k in range(3))
    flat = tf.reshape(tf.where(live, stems, -1), [rows, -1])
    order = tf.argsort(flat, axis=-1, stable=True)
    ordered = tf.gather(flat, order, batch_dims=1)
    first = tf.concat([tf.ones([rows, 1], tf.bool), ordered[:, 1:] != ordered[:, :-1]], axis=1)
    first = tf.gather(first, tf.argsort(order, axis=-1), batch_dims=1)
    first = tf.reshape(first, [rows, steps, length]) & live
    return first if seen is None else first & ~tf.gather(seen, stems, batch_dims=1)
