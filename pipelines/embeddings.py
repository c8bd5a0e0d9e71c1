"""Word vectors of a file, and words as ids into them.

The ids of V known words with H buckets for the others:

    0            padding
    1 .. V       the words of the file, in its order (GloVe's: the most frequent first)
    V+1 .. V+H   unknown words, by hash
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf


class Words:
    """Maps words in lower case to ids, in the graph.

    An unknown word with hyphens stands for its last part: "well-known" is looked up as "known".

    Args:
        vocabulary: the known words.
        buckets: ids for all other words.

    Example:

    >>> words = Words(["the", "cat"], buckets=2)
    >>> words(tf.constant(["", "cat", "wild-cat", "dog"])).numpy().tolist()[:3]
    [0, 2, 2]
    >>> words.size
    5
    """

    def __init__(self, vocabulary: Sequence[str], buckets: int = 1024) -> None:
        if not len(vocabulary) or buckets < 1:
            raise ValueError(
                f"expected at least one word and one bucket, got {len(vocabulary)} and {buckets}"
            )
        self.vocabulary = tuple(vocabulary)
        self.buckets = buckets
        self.known = len(self.vocabulary)
        self.size = 1 + self.known + buckets
        rows = dict(zip(reversed(self.vocabulary), range(self.known, 0, -1), strict=True))
        rows[""] = 0
        self.table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                tf.constant(list(rows)), tf.constant(list(rows.values()), tf.int32)
            ),
            default_value=-1,
        )

    def __call__(self, words: tf.Tensor) -> tf.Tensor:
        """Words in lower case, of any shape -> ids int32; "" is padding."""
        found = self.table.lookup(words)
        others = tf.where(found < 0)
        unknown = tf.gather_nd(words, others)
        parts = tf.strings.regex_replace(unknown, "^.*[-–—/]", "")
        part = self.table.lookup(parts)
        hashed = tf.strings.to_hash_bucket_fast(unknown, self.buckets)
        hashed = tf.cast(hashed, tf.int32) + 1 + self.known
        replaced = tf.where(part > 0, part, hashed)
        return tf.tensor_scatter_nd_update(found, others, replaced)

    def rarity(self, ids: tf.Tensor) -> tf.Tensor:
        """From 0 for the most frequent word to 1 for the last one and all unknown ones."""
        rank = tf.cast(tf.clip_by_value(ids, 1, self.known), tf.float32)
        return tf.math.log(rank) / max(np.log(self.known), 1e-6)


@dataclass(frozen=True)
class Embeddings:
    """Word vectors: `vectors[i]` belongs to `vocabulary[i]`.

    Attributes:
        vocabulary: V words.
        vectors: `[V, D]`.
    """

    vocabulary: tuple[str, ...]
    vectors: np.ndarray

    def table(self, words: Words, seed: int = 0) -> np.ndarray:
        """The frozen table for the ids of `words`: float32 `[words.size, D]`.

        Padding is zero. Each bucket gets a fixed random vector of the usual spread.
        """
        if words.vocabulary != self.vocabulary:
            raise ValueError(
                f"expected words made of these {len(self.vocabulary):,} vectors' vocabulary, "
                f"got another one of {words.known:,}"
            )
        known = self.vectors.astype(np.float32)
        unknown = np.random.default_rng(seed).normal(
            scale=float(known.std()) or 1.0, size=(words.buckets, known.shape[1])
        )
        return np.concatenate([np.zeros_like(known[:1]), known, unknown.astype(np.float32)])


def read_vectors(path: str | os.PathLike, limit: int | None = None) -> Embeddings:
    """Reads word vectors: GloVe's text file, or a `.npy` array beside a list of words.

    Args:
        path: `glove.6B.100d.txt`, or a `.npy` of `[V, D]` in a folder with one `vocab*.txt`, a word
            on each line.
        limit: read only the first `limit` words.

    Example:

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "glove.txt"
    >>> _ = path.write_text("the 0.1 0.2\\ncat 0.3 0.4\\n")
    >>> read_vectors(path).vocabulary
    ('the', 'cat')
    """
    path = Path(path)
    read = _read_array if path.suffix == ".npy" else _read_text
    words, vectors = read(path, limit)
    return Embeddings(tuple(words), vectors)


def _read_array(path: Path, limit: int | None) -> tuple[list[str], np.ndarray]:
    try:
        vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path}: expected an array in NumPy's format: {error}") from error
    if vectors.ndim != 2 or not np.issubdtype(vectors.dtype, np.floating):
        raise ValueError(
            f"{path}: expected floats of [words, dimensions], got {vectors.dtype} of "
            f"{list(vectors.shape)}"
        )
    beside = sorted(path.parent.glob("vocab*.txt"))
    if len(beside) != 1:
        raise FileNotFoundError(
            f"{path.parent}: expected one vocab*.txt beside {path.name}, found {len(beside)}"
        )
    lines = beside[0].read_text(encoding="utf-8").split("\n")
    words = lines[:-1] if lines[-1] == "" else lines
    if len(words) != len(vectors):
        raise ValueError(
            f"{beside[0]}: expected a word for each of {len(vectors):,} vectors of {path.name}, "
            f"got {len(words):,}"
        )
    return words[:limit], np.array(vectors[:limit])


def _read_text(path: Path, limit: int | None) -> tuple[list[str], np.ndarray]:
    words: list[str] = []
    rows: list[np.ndarray] = []
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if limit is not None and len(rows) == limit:
                break
            word, _, numbers = line.rstrip("\n").partition(" ")
            try:
                row = np.array(numbers.split(" "), np.float32)
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: expected a word and numbers") from error
            if rows and len(row) != len(rows[0]):
                raise ValueError(
                    f"{path}, line {number}: expected {len(rows[0])} numbers as before, "
                    f"got {len(row)}"
                )
            words.append(word)
            rows.append(row)
    if not rows:
        raise ValueError(f"{path}: expected a word and its numbers on each line, got no line")
    return words, np.stack(rows)
