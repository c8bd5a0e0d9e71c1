"""Which documents come when: an order of each epoch, with documents of like length together.

The order of an epoch is drawn from (seed, epoch) alone, so that a run can be resumed anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from .documents import Collection

WINDOW = 32
"""Batches among which documents of like length are put together."""


def chunks(collection: Collection, questions: int) -> np.ndarray:
    """Documents with up to `questions` of their questions each.

    Returns:
        int32 `[C, 1 + questions]`: a document, and indices into `collection.questions`, -1 for
        padding. A document of more questions has several rows.
    """
    rows = [
        (number, entry.questions[begin : begin + questions])
        for number, entry in enumerate(collection.entries)
        for begin in range(0, len(entry.questions), questions)
    ]
    out = np.full((len(rows), 1 + questions), -1, np.int32)
    for place, (number, asked) in zip(out, rows, strict=True):
        place[0] = number
        place[1 : 1 + len(asked)] = asked
    return out


@dataclass(frozen=True)
class Drawing:
    """Which documents make a batch, and how many batches there are.

    Attributes:
        batch_size: documents in a batch.
        weights: for each question file, how often its documents come, relative to the others;
            None takes every document once an epoch.
        shuffle_seed: seed of the order, a new one each epoch; None keeps the documents' order, but
            for their length.
        repeat: go on for ever; otherwise one epoch.
        drop_remainder: leave out the last, smaller batch.
        start: index of the first batch, counted over all epochs.
    """

    batch_size: int
    weights: Sequence[float] | None = None
    shuffle_seed: int | None = None
    repeat: bool = False
    drop_remainder: bool = False
    start: int = 0

    def __post_init__(self) -> None:
        if self.batch_size < 1 or self.start < 0:
            raise ValueError(
                f"expected batch_size >= 1, start >= 0, got {self.batch_size} and {self.start}"
            )

    @property
    def begin(self) -> int:
        """How many documents come before the first batch."""
        return self.start * self.batch_size

    def check(self, collection: Collection) -> None:
        """Raises unless there is a positive weight for each question file, or none at all."""
        if self.weights is None:
            return
        if len(self.weights) != len(collection.qa_files):
            raise ValueError(
                f"expected a weight for each of {len(collection.qa_files)} question files, "
                f"got {len(self.weights)}"
            )
        if not all(0 < weight < float("inf") for weight in self.weights):
            raise ValueError(f"expected weights above 0, got {list(self.weights)}")

    def batched(self, data: tf.data.Dataset) -> tf.data.Dataset:
        """Documents one by one as batches."""
        return data.batch(self.batch_size, drop_remainder=self.drop_remainder)

    def counted(self, data: tf.data.Dataset, documents: int) -> tf.data.Dataset:
        """The same batches, of a known number: that of the documents of one epoch."""
        left = max(documents - self.begin, 0)
        batches = left // self.batch_size if self.drop_remainder else -(-left // self.batch_size)
        known = tf.data.INFINITE_CARDINALITY if self.repeat else batches
        return data.apply(tf.data.experimental.assert_cardinality(known))


@dataclass(frozen=True)
class Order:
    """The order of C rows in each epoch.

    Attributes:
        sizes: `[C]`, how long each is.
        sources: `[C]`, which file each is from.
        batch_size: rows in a batch.
        seed: of the shuffle; None keeps the order, but for the sizes.
        weights: how often each source comes; None takes every row once an epoch.

    Example:

    >>> order = Order(np.array([9, 1, 5, 1]), np.zeros(4, int), batch_size=2)
    >>> order.epoch(0).tolist()
    [1, 3, 2, 0]
    """

    sizes: np.ndarray
    sources: np.ndarray
    batch_size: int
    seed: int | None = None
    weights: Sequence[float] | None = None

    def __post_init__(self) -> None:
        count = int(self.sources.max()) + 1 if len(self.sources) else 0
        weights = self.weights
        if weights is None:
            return
        if len(weights) < count or min(weights) < 0 or not sum(weights) > 0:
            raise ValueError(
                f"expected a weight >= 0 for each of {count} files, some above 0, got {weights}"
            )
        if self.seed is None:
            raise ValueError("expected a shuffle_seed with weights, got none")

    def epoch(self, number: int) -> np.ndarray:
        """The rows of an epoch, `[C]`, in order."""
        total = len(self.sizes)
        if self.seed is None:
            return self._alike(np.arange(total), None)
        draw = np.random.Generator(np.random.Philox(np.random.SeedSequence([self.seed, number])))
        if self.weights is None:
            return self._alike(draw.permutation(total), draw)
        share = np.array(self.weights, float)
        share[np.setdiff1d(np.arange(len(share)), self.sources)] = 0
        picked = draw.choice(len(share), size=total, p=share / share.sum())
        out = np.zeros(total, np.int64)
        for source in np.unique(picked):
            mine = np.flatnonzero(self.sources == source)
            wanted = int((picked == source).sum())
            rounds = [draw.permutation(mine) for _ in range(-(-wanted // len(mine)))]
            out[picked == source] = np.concatenate(rounds)[:wanted]
        return self._alike(out, draw)

    def _alike(self, rows: np.ndarray, draw: np.random.Generator | None) -> np.ndarray:
        """Sorts by size within windows; with `draw`, shuffles the whole batches of each."""
        step, out = WINDOW * self.batch_size, []
        for begin in range(0, len(rows), step):
            part = rows[begin : begin + step]
            part = part[np.argsort(self.sizes[part], kind="stable")]
            if draw is not None:
                whole = len(part) // self.batch_size * self.batch_size
                batches = part[:whole].reshape(-1, self.batch_size)
                part = np.concatenate([draw.permutation(batches).reshape(-1), part[whole:]])
            out.append(part)
        return np.concatenate(out) if out else rows
