"""WordList: which words a reader of documents knows, kept with the model."""

from __future__ import annotations

from collections.abc import Sequence

import keras
import numpy as np

STEMS = 1 << 16
"""Entries of a table of inverse document frequencies."""


@keras.saving.register_keras_serializable("lemn_tf")
class WordList(keras.layers.Layer):
    """The known words in the order of their ids, and how rare stems are.

    It is saved with a `StreamReader` of documents (as its `vocabulary`), so that
    `lemn_tf.pipelines` can convert other documents for the model.

    Args:
        words: the known words; the first has id 1.
        buckets: ids for all other words.
        stems: entries of the table of idf.
        slot_words: words of a slot.

    Example:

    >>> known = WordList(["the", "cat"], buckets=4)
    >>> known.size
    7
    """

    def __init__(
        self,
        words: Sequence[str],
        buckets: int = 1024,
        stems: int = STEMS,
        slot_words: int = 20,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.words, self.buckets, self.stems = tuple(words), buckets, stems
        self.slot_words = slot_words
        self.idf = self.add_weight(
            shape=(stems,), initializer="zeros", dtype="float16", trainable=False, name="idf"
        )
        self.built = True

    @property
    def size(self) -> int:
        """Number of ids, padding and unknown words included."""
        return 1 + len(self.words) + self.buckets

    def set_idf(self, idf: np.ndarray) -> None:
        """Sets the table of inverse document frequencies, `[stems]`."""
        if idf.shape != (self.stems,):
            raise ValueError(f"expected idf of shape ({self.stems},), got {idf.shape}")
        self.idf.assign(idf)

    def get_config(self):
        mine = {"words": list(self.words), "buckets": self.buckets, "stems": self.stems}
        return {**super().get_config(), **mine, "slot_words": self.slot_words}
