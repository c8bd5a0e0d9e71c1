"""Rules for streams of words that do not learn: what a learned policy has to beat.

They see three numbers for each of the L words of an entry, `[..., 3 L]`: the stem (0 for no word),
whether the word is salient (a capital letter or a digit), and its idf. A reader of words provides
them (`WordReader.lexical`).
"""

from __future__ import annotations

import keras
import tensorflow as tf

from lemn_tf.retention.base import Cells, RetentionPolicy

register = keras.saving.register_keras_serializable("lemn_tf")
BUCKETS = 1024
"""Size of the table in which `Novelty` records the stems it has seen."""


class _Lexical(RetentionPolicy):
    """Their base class: extracts the words of the candidates."""

    @property
    def learns(self) -> bool:
        return False  # it overrides `build`, but only to check a shape

    def meet(self, reader):
        if not hasattr(reader, "lexical"):
            raise ValueError(
                f"policy {self.name!r} needs words: expected a reader of words in slots, got "
                f"{type(reader).__name__}"
            )
        return reader.lexical()

    def build(self, shape):
        if shape[-1] % 3:
            raise ValueError(
                f"policy {self.name!r} needs stem, salience and idf of each word: expected "
                f"vectors [..., 3 L], got {shape}"
            )

    def words(self, cells: Cells) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Stems, whether each word is salient, and idf: `[..., N + 1, L]` each."""
        shape = tf.concat([tf.shape(cells.vectors)[:-1], [cells.vectors.shape[-1] // 3, 3]], axis=0)
        stem, salient, idf = tf.unstack(tf.reshape(cells.vectors, shape), num=3, axis=-1)
        return stem, (salient > 0.5) & (stem != 0), idf

    def keeping(self, worth: tf.Tensor, cells: Cells) -> tf.Tensor:
        """Logits that evict what is worth least, and the older of equals."""
        age = tf.cast(cells.clock[..., None] - cells.ids, tf.float32)
        return 1e-4 * tf.minimum(age, 1000.0) - tf.cast(worth, tf.float32)


@register
class Salient(_Lexical):
    """Keeps the slots with the most words that have a capital letter or a digit.

    Args:
        first: keep only items among the first `first` of the stream; 0 for no such limit.
    """

    def __init__(self, first: int = 0, **kwargs):
        super().__init__(**kwargs)
        self.first = first

    def score(self, seen, cells, carry):
        _, salient, _ = self.words(cells)
        worth = tf.reduce_sum(tf.cast(salient, tf.float32), axis=-1)
        if self.first:
            worth = tf.where(cells.ids < self.first, worth, -1.0)
        return self.opinion(self.keeping(worth, cells))

    def get_config(self):
        return {**super().get_config(), "first": self.first}


@register
class SalientFirst(Salient):
    """`Salient` among the first 20 items: for data that asks about the beginning."""

    def __init__(self, first: int = 20, **kwargs):
        super().__init__(first=first, **kwargs)


@register
class DistinctSalient(_Lexical):
    """Evicts the slot whose loss costs the fewest distinct salient words."""

    def score(self, seen, cells, carry):
        stem, salient, _ = self.words(cells)
        named = tf.where(salient & cells.filled[..., None], stem, 0)
        length = named.shape[-1]
        flat = tf.reshape(named, tf.concat([tf.shape(named)[:-2], [-1]], axis=0))
        same = flat[..., :, None] == flat[..., None, :]  # [..., M L, M L]
        slot = tf.range(tf.shape(flat)[-1]) // length
        elsewhere = tf.reduce_any(same & (slot[:, None] != slot), axis=-1)
        place = tf.range(tf.shape(flat)[-1])
        again = tf.reduce_any(same & (place[None] < place[:, None]) & (slot[:, None] == slot), -1)
        alone = tf.cast((flat != 0) & ~elsewhere & ~again, tf.float32)
        worth = tf.reduce_sum(tf.reshape(alone, tf.shape(named)), axis=-1)
        return self.opinion(self.keeping(worth, cells))


@register
class Novelty(_Lexical):
    """Keeps the slots with the largest share of rare stems that were new to the stream.

    The stems seen are recorded in a table of `BUCKETS` places, which every cell carries, so that
    it survives whichever cell is evicted.

    Args:
        rare: stems with a larger idf count.
    """

    def __init__(self, rare: float = 1.0, **kwargs):
        super().__init__(**kwargs)
        self.rare = rare

    def carry_spec(self):
        return {
            "novelty": tf.TensorSpec([], tf.float32),
            "seen": tf.TensorSpec([BUCKETS], tf.float32),
        }

    def score(self, seen, cells, carry):
        stem, _, idf = self.words(cells)
        place = tf.cast(tf.math.floormod(tf.abs(stem[..., -1, :]), BUCKETS), tf.int32)
        counts = (stem[..., -1, :] != 0) & (idf[..., -1, :] > self.rare)
        noted = tf.reduce_max(carry["seen"], axis=-2)  # [..., BUCKETS]
        known = tf.gather(noted, place, batch_dims=place.shape.rank - 1) > 0
        new = tf.reduce_sum(tf.cast(counts & ~known, tf.float32), axis=-1)
        words = tf.reduce_sum(tf.cast(stem[..., -1, :] != 0, tf.float32), axis=-1)
        share = tf.math.divide_no_nan(new, words)
        novelty = tf.concat([carry["novelty"][..., :-1], share[..., None]], axis=-1)
        here = tf.one_hot(place, BUCKETS) * tf.cast(counts, tf.float32)[..., None]
        noted = tf.maximum(noted, tf.reduce_max(here, axis=-2))[..., None, :]
        table = tf.broadcast_to(noted, tf.shape(carry["seen"]))
        return self.opinion(self.keeping(novelty, cells), {"novelty": novelty, "seen": table})

    def get_config(self):
        return {**super().get_config(), "rare": self.rare}


@register
class Overlap(RetentionPolicy):
    """Keeps the slots that hold most of the question's words, weighted by idf.

    It needs the question, so it is always `question_aware`.
    """

    def __init__(self, question_aware: bool = True, **kwargs):
        if not question_aware:
            raise ValueError("overlap needs the question: expected question_aware=True")
        super().__init__(question_aware=True, **kwargs)

    def score(self, seen, cells, carry):
        age = tf.cast(tf.minimum(cells.clock[..., None] - cells.ids, 1000), tf.float32)
        return self.opinion(1e-5 * age - cells.vectors[..., -1])
