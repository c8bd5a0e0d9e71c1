"""For all text pipelines: padded arrays turned into reproducible, resumable batches.

The whole data set is in memory as arrays of ids. So an epoch is only an order of indices, drawn
with NumPy from (seed, epoch), and a batch is one gather in the graph. Starting in the middle costs
nothing: skipped batches are never made.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

MULTIPLE = 4
"""Lengths to pad to are multiples of this, as far as the longest example allows."""


def bucket_boundaries(lengths: np.ndarray, count: int = 4) -> list[int]:
    """The `count` lengths to pad to that waste the least padding.

    Args:
        lengths: length of every example, [S].
        count: at most this many boundaries.

    Returns:
        Ascending boundaries, multiples of `MULTIPLE` but for the last: the longest length.

    Example:

    >>> bucket_boundaries(np.array([5, 6, 7, 20, 21, 40]), count=3)
    [8, 24, 40]
    """
    if count < 1:
        raise ValueError(f"expected at least one bucket, got {count}")
    lengths = np.maximum(lengths, 1)  # a length of at least one step
    longest = int(lengths.max())
    rounded = np.minimum(-(-lengths // MULTIPLE) * MULTIPLE, longest)
    values, frequency = np.unique(rounded, return_counts=True)
    if len(values) > 24:  # keeps the search below short
        values = np.unique(np.quantile(rounded, np.linspace(0, 1, 24), method="higher"))
        frequency = np.bincount(np.searchsorted(values, rounded), minlength=len(values))
    inner = itertools.combinations(values[:-1].tolist(), min(count, len(values)) - 1)

    def padded(chosen: tuple[int, ...]) -> int:
        bounds = np.array([*chosen, longest])
        return int(bounds[np.searchsorted(bounds, values)] @ frequency)

    return [*min(inner, key=padded), longest]


def plan(lengths: np.ndarray, buckets: int | Sequence[int] | None) -> tuple[np.ndarray, np.ndarray]:
    """Puts every example into the smallest bucket that holds it.

    Args:
        lengths: length of every example, [S].
        buckets: ascending boundaries, or how many to choose, or None for up to four. A boundary
            for the longest example is added if none holds it.

    Returns:
        (boundaries in use [U], bucket of every example [S]).
    """
    if buckets is None or isinstance(buckets, int):
        bounds = bucket_boundaries(lengths, 4 if buckets is None else buckets)
    else:
        bounds = list(buckets)
        if bounds != sorted(set(bounds)) or not bounds or bounds[0] < 1:
            raise ValueError(f"expected ascending bucket boundaries >= 1, got {bounds}")
        if bounds[-1] < lengths.max():
            bounds.append(int(lengths.max()))
    used, member = np.unique(np.searchsorted(bounds, lengths), return_inverse=True)
    return np.array(bounds, np.int32)[used], member


def filled(bounds: np.ndarray, member: np.ndarray, least: int) -> tuple[np.ndarray, np.ndarray]:
    """Joins each bucket of fewer than `least` examples with the next longer ones.

    If the longest bucket is too small, it is joined with the one before it.

    Args:
        bounds, member: as `plan` returns them.
        least: examples that a bucket should have.

    Returns:
        (boundaries, bucket of every example), as `plan`.

    Example:

    >>> filled(np.array([8, 16, 24]), np.array([0, 0, 0, 1, 2, 2]), least=2)
    (array([ 8, 24]), array([0, 0, 0, 1, 1, 1]))
    """
    ends, count = [], 0
    for bucket, size in enumerate(np.bincount(member)):
        count += size
        if count >= least:
            ends.append(bucket)
            count = 0
    if count:
        ends = [*ends[:-1], len(bounds) - 1]
    return bounds[ends], np.searchsorted(ends, member)


class _Schedule(NamedTuple):
    """Which examples come in which batch."""

    bounds: np.ndarray
    member: np.ndarray
    batch_size: int
    seed: int | None
    drop_remainder: bool

    def epoch(self, number: int) -> list[tuple[int, np.ndarray]]:
        """The batches of an epoch, as (bucket, indices of examples); every epoch has as many.

        With a seed, both the examples within a bucket and the order of batches are shuffled, by a
        generator made of (seed, epoch) only. Without, buckets follow each other in the given order.
        With `drop_remainder`, some examples of a bucket too small for a batch come more than once.
        """
        order = np.arange(len(self.member))
        generator = None
        if self.seed is not None:
            sequence = np.random.SeedSequence([self.seed, number])
            generator = np.random.Generator(np.random.Philox(sequence))
            generator.shuffle(order)
        batches = []
        for bucket in range(self.member.max() + 1):
            mine = order[self.member[order] == bucket]
            if self.drop_remainder and len(mine) < self.batch_size:
                mine = np.resize(mine, self.batch_size)
            for begin in range(0, len(mine), self.batch_size):
                batch = mine[begin : begin + self.batch_size]
                if len(batch) == self.batch_size or not self.drop_remainder:
                    batches.append((bucket, batch))
        if generator is not None:
            generator.shuffle(batches)
        return batches

    def orders(self, start: int, repeat: bool) -> Iterator[dict[str, np.ndarray]]:
        """For each epoch, from batch `start` on, the indices, size and bound of every batch."""
        steps = len(self.epoch(0))
        for number in itertools.count(start // steps) if repeat else range(start < steps):
            batches = self.epoch(number)[start % steps if number == start // steps else 0 :]
            index = np.zeros((len(batches), self.batch_size), np.int32)
            for row, (_, batch) in zip(index, batches, strict=True):
                row[: len(batch)] = batch
            yield {
                "index": index,
                "size": np.array([len(batch) for _, batch in batches], np.int32),
                "bound": self.bounds[[bucket for bucket, _ in batches]],
            }

    def gather(
        self, arrays: Mapping[str, np.ndarray], cut: Sequence[str]
    ) -> Callable[[dict[str, tf.Tensor]], dict[str, tf.Tensor]]:
        """A function from an entry of `orders` to the batch itself."""
        tensors = {name: tf.constant(array) for name, array in arrays.items()}
        steps = int(self.bounds[0]) if len(self.bounds) == 1 else None
        even = all(len(batch) == self.batch_size for _, batch in self.epoch(0))

        def gather(batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
            index, out = batch["index"][: batch["size"]], {}
            for name, tensor in tensors.items():
                shape = [self.batch_size if even else None, *tensor.shape[1:]]
                value = tf.gather(tensor, index)
                if name in cut:
                    missing = tf.maximum(batch["bound"] - tensor.shape[1], 0)
                    padding = [[0, 0], [0, missing], *[[0, 0]] * (len(shape) - 2)]
                    value = tf.pad(value[:, : batch["bound"]], padding)
                    shape[1] = steps
                out[name] = tf.ensure_shape(value, shape)
            return out

        return gather


def batched(
    arrays: Mapping[str, np.ndarray],
    lengths: np.ndarray,
    batch_size: int,
    *,
    cut: Sequence[str],
    shuffle_seed: int | None = None,
    buckets: int | Sequence[int] | None = None,
    repeat: bool = False,
    drop_remainder: bool = False,
    start: int = 0,
) -> tf.data.Dataset:
    """A dataset of bucketed batches gathered from padded arrays.

    Args:
        arrays: what to batch, each [S, ...].
        lengths: length of every example along axis 1 of the arrays in `cut`, [S].
        batch_size: examples in a batch.
        cut: names of the arrays [S, T, ...] to be cut (or padded with 0) to the bucket's T.
        shuffle_seed: seed of the shuffle; None keeps the order.
        buckets: see `plan`.
        repeat: go on without end, with a new order in each epoch.
        drop_remainder: only whole batches. The last, smaller one of each bucket is left out,
            buckets that are too small for one are joined, and of fewer examples than one batch
            some come more than once.
        start: index of the first batch, counted over all epochs.

    Returns:
        A `tf.data.Dataset` of dicts. Its batch n depends on the arguments and n only.

    Example:

    >>> data = {"x": np.arange(6).reshape(3, 2), "n": np.array([2, 1, 2])}
    >>> for batch in batched(data, data["n"], 2, cut=["x"], buckets=[1, 2]):
    ...     print(batch["x"].numpy().tolist())
    [[2]]
    [[0, 1], [4, 5]]
    """
    if batch_size < 1 or start < 0:
        raise ValueError(f"expected batch_size >= 1, start >= 0, got {batch_size} and {start}")
    if not len(lengths):
        raise ValueError("expected at least one example, got none")
    bounds, member = plan(lengths, buckets)
    if drop_remainder:
        bounds, member = filled(bounds, member, batch_size)
    schedule = _Schedule(bounds, member, batch_size, shuffle_seed, drop_remainder)
    steps = len(schedule.epoch(0))
    if not repeat and start > steps:
        raise ValueError(f"expected start <= {steps} batches (repeat is off), got {start}")
    shapes = {"index": [None, batch_size], "size": [None], "bound": [None]}
    orders = tf.data.Dataset.from_generator(
        lambda: schedule.orders(start, repeat),
        output_signature={name: tf.TensorSpec(shape, tf.int32) for name, shape in shapes.items()},
    )
    dataset = orders.unbatch().map(schedule.gather(arrays, cut))
    cardinality = tf.data.INFINITE_CARDINALITY if repeat else steps - start
    return dataset.apply(tf.data.experimental.assert_cardinality(cardinality)).prefetch(4)
