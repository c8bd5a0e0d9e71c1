"""tf.data streams of maze frames: the maps of every update or evaluation, ready to be walked.

What an agent sees depends on what it does, so a stream cannot hold frames in the order of a walk.
It holds a `Course` instead: some maps of a world, their distinct frames, and for every pose which
frame it shows and where each action leads. Walking is then a few gathers in the agent's graph, and
tf.data prepares the next course while the agent walks and learns on this one.

The pipeline does not know what a maze is: it takes the arrays of `lemn_tf.mazes.World.tables`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf


class Course(NamedTuple):
    """Some maps of a world, ready to be walked: P poses, K distinct frames, m maps.

    Attributes:
        next: int32 `[P, 3]`, the pose that each action leads to.
        reward: float32 `[P]`.
        done: bool `[P]`, whether a pose is on a goal.
        frame: int32 `[P]`, the row of `frames` that is seen from it.
        limit: int32 `[P]`, steps before an episode on the map of that pose is cut off.
        shortest: bool `[P, 3]`, which actions are on a shortest way to the right goal.
        red: bool `[P]`, whether the right goal of the map of that pose is the red one.
        goal: bool `[P]`, whether that goal is in view.
        frames: uint8 `[K, H, W]`, palette indices.
        palette: uint8 `[colours, 3]`.
        indicator: bool `[K]`, whether a frame shows the indicator tile.
        spawn: int32 `[m, 4]`, start poses by map (in the order asked for) and heading.
        view: bool `[P, cells]`, which cells of its map are in view from a pose.
        steps: uint8 `[P, Q]`, the fewest to the first, second, ... pose of its map.
        first: int32 `[P]`, the first pose of its map.

    The last three are for a guide; without one `view` and `steps` have no columns.
    """

    next: Any
    reward: Any
    done: Any
    frame: Any
    limit: Any
    shortest: Any
    red: Any
    goal: Any
    frames: Any
    palette: Any
    indicator: Any
    spawn: Any
    view: Any
    steps: Any
    first: Any

    @property
    def longest(self) -> int:
        """The largest limit of steps."""
        return int(np.max(self.limit))


SIGNATURE = Course(
    next=tf.TensorSpec([None, 3], tf.int32),
    reward=tf.TensorSpec([None], tf.float32),
    done=tf.TensorSpec([None], tf.bool),
    frame=tf.TensorSpec([None], tf.int32),
    limit=tf.TensorSpec([None], tf.int32),
    shortest=tf.TensorSpec([None, 3], tf.bool),
    red=tf.TensorSpec([None], tf.bool),
    goal=tf.TensorSpec([None], tf.bool),
    frames=tf.TensorSpec([None, None, None], tf.uint8),
    palette=tf.TensorSpec([None, 3], tf.uint8),
    indicator=tf.TensorSpec([None], tf.bool),
    spawn=tf.TensorSpec([None, 4], tf.int32),
    view=tf.TensorSpec([None, None], tf.bool),
    steps=tf.TensorSpec([None, None], tf.uint8),
    first=tf.TensorSpec([None], tf.int32),
)
"""The spec of an element in a stream of courses."""


def buckets(largest: int, least: int = 16) -> list[int]:
    """Sizes to pad to: 16, 24, 32, 48, 64, 96, ... and, last, `largest`.

    Example:

    >>> buckets(50)
    [16, 24, 32, 48, 50]
    """
    sizes, size = [], least
    while size < largest:
        sizes += [size, size * 3 // 2]
        size *= 2
    return [size for size in sizes if size < largest] + [largest]


def cut(tables: Mapping[str, np.ndarray], maps: Iterable[int], poses: int = 0) -> Course:
    """Takes some maps out of the tables of many, and renumbers their poses and frames.

    Args:
        tables: arrays by name, as `lemn_tf.mazes.World.tables` gives them.
        maps: which ones; the same one may be asked for several times.
        poses: pad to at least this many poses. More than 128 frames are padded to one of
            `buckets`, so that one compiled program serves many courses.

    Returns:
        The `Course`, of NumPy arrays.

    Example:

    >>> from lemn_tf.mazes import imaze_world
    >>> cut(imaze_world([5, 7]).tables(), [0, 3]).spawn.shape
    (2, 4)
    """
    distinct, order = np.unique(np.asarray(maps), return_inverse=True)
    offset = tables["offset"]
    spans = [np.arange(offset[m], offset[m + 1]) for m in distinct]
    sizes = [len(span) for span in spans]
    old = np.concatenate(spans)
    base = np.cumsum([0, *sizes])[:-1]  # where each map's poses begin now
    shift = (base - offset[distinct]).astype(np.int32)
    shown, frame = np.unique(tables["frame"][old], return_inverse=True)
    count = len(shown)
    if count > 128:
        count = next(size for size in buckets(2 * count, 128) if size >= count)
    rows = max(len(old), poses)

    def pad(array: np.ndarray, size: int) -> np.ndarray:
        return np.pad(array, [(0, size - len(array))] + [(0, 0)] * (array.ndim - 1))

    return Course(
        next=pad(tables["next"][old] + np.repeat(shift, sizes)[:, None], rows),
        reward=pad(tables["reward"][old], rows),
        done=pad(tables["done"][old], rows),
        frame=pad(frame.astype(np.int32), rows),
        limit=pad(np.repeat(tables["limit"][distinct], sizes), rows),
        shortest=pad(tables["shortest"][old], rows),
        red=pad(np.repeat(tables["indicator"][distinct] == 0, sizes), rows),
        goal=pad(tables["goal"][old], rows),
        frames=pad(tables["frames"][shown], count),
        palette=tables["palette"],
        indicator=pad(tables["shows_indicator"][shown], count),
        spawn=(tables["spawn"][distinct] + shift[:, None])[order],
        view=pad(tables["view"][old], rows),
        steps=pad(tables["steps"][old], rows),
        first=pad(np.repeat(base.astype(np.int32), sizes), rows),
    )


def groups(tables: Mapping[str, np.ndarray], size: int) -> tf.data.Dataset:
    """Streams all maps of a world, in order, some at a time.

    Args:
        tables: as in `cut`.
        size: maps in each course. The last one repeats the last map to be as large as the others.

    Returns:
        A dataset of pairs: int32 `[size]`, which maps they are, and their `Course`. All courses
        have as many poses.

    Example:

    >>> from lemn_tf.mazes import imaze_world
    >>> [maps.numpy().tolist() for maps, _ in groups(imaze_world([4, 5, 6]).tables(), 4)]
    [[0, 1, 2, 3], [4, 5, 5, 5]]
    """
    if size < 1:
        raise ValueError(f"expected at least one map in each course, got size={size}")
    count = len(tables["spawn"])
    size = min(size, count)
    parts = [
        np.minimum(np.arange(start, start + size, dtype=np.int32), count - 1)
        for start in range(0, count, size)
    ]
    sizes = np.diff(tables["offset"])
    poses = max(int(sizes[np.unique(part)].sum()) for part in parts)
    return _stream(
        lambda: ((part, cut(tables, part, poses)) for part in parts),
        tf.TensorSpec([size], tf.int32),
    )


def updates(draw: Callable[[int], tuple[np.ndarray, Course]], first: int = 0) -> tf.data.Dataset:
    """Streams the courses of a training, one for each update, without end.

    Args:
        draw: function from the number of an update to the start poses of its episodes, int32
            `[B]`, and their `Course`. It is called in another thread, one update ahead.
        first: the number of the first update.

    Returns:
        A dataset of pairs: start poses and `Course`.
    """

    def endless() -> Iterable[tuple[np.ndarray, Course]]:
        number = first
        while True:
            yield draw(number)
            number += 1

    return _stream(endless, tf.TensorSpec([None], tf.int32))


def _stream(made: Callable[[], Iterable], beside: tf.TensorSpec) -> tf.data.Dataset:
    return tf.data.Dataset.from_generator(made, output_signature=(beside, SIGNATURE)).prefetch(1)
