"""Walking: episodes of a `Navigator` in the graph, over tables of poses.

The world is the graph of poses of `lemn_tf.mazes.World`, so a step of the environment is four
look-ups. A `Course` takes from a world the maps of one update and the distinct frames they show,
padded to few sizes, so that one compiled program serves many updates. `walk` then acts without
gradients and records integers only: `learning` computes the loss of all steps from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from lemn_tf import memory
from lemn_tf.mazes.expert import shortest_ways
from lemn_tf.mazes.world import World
from lemn_tf.navigation.navigator import Navigator, Views
from lemn_tf.retention.base import Cells
from lemn_tf.retention.chance import gumbel
from lemn_tf.retention.decision import choose

PLAYED = (2018, 4)
"""Seed of the actions of an agent that plays with a temperature: a game can be played again."""


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


class Tables(NamedTuple):
    """The maps of a course: P poses, K distinct frames. See `lemn_tf.mazes.World`.

    Attributes:
        next: int32 `[P, 3]`.
        reward: float32 `[P]`.
        done: bool `[P]`.
        frame: int32 `[P]`, row of `frames`.
        limit: int32 `[P]`, steps before an episode on the map of that pose is cut off.
        frames: uint8 `[K, H, W]`, palette indices.
        palette: uint8 `[colours, 3]`.
        shortest: bool `[P, 3]`, which actions are on a shortest way to the right goal.
        red: bool `[P]`, whether the right goal of the map of that pose is the red one.
    """

    next: tf.Tensor
    reward: tf.Tensor
    done: tf.Tensor
    frame: tf.Tensor
    limit: tf.Tensor
    frames: tf.Tensor
    palette: tf.Tensor
    shortest: tf.Tensor
    red: tf.Tensor


class Course(NamedTuple):
    """Some maps of a world, ready to be walked.

    Attributes:
        tables: as tensors.
        spawn: int32 `[m, 4]`, start poses by map (in the order asked for) and heading.
        indicator: bool `[K]`, whether a frame shows the indicator tile.
        limit: the largest limit of steps.
    """

    tables: Tables
    spawn: np.ndarray
    indicator: np.ndarray
    limit: int


class Walk(NamedTuple):
    """Episodes as they were walked, `[B, T, ...]`.

    Attributes:
        frame: int32, the current frame.
        action: int32, taken on seeing it.
        shortest: bool `[B, T, 3]`, which actions were on a shortest way to the right goal.
        red: bool, whether the right goal is the red one.
        reward: received for it; 0 behind the end.
        valid: bool, False behind the end.
        entries: int32 `[B, T, N + 1]`, frames in memory and, last, the current one.
        ids: int64 `[B, T, N + 1]`, the steps they were seen at, -1 = unused.
        slot: int32, which of them was forgotten.
        shown: dict of `[B, T, ...]` floats for pictures (`walk(details=True)`), else empty.
    """

    frame: tf.Tensor
    action: tf.Tensor
    shortest: tf.Tensor
    red: tf.Tensor
    reward: tf.Tensor
    valid: tf.Tensor
    entries: tf.Tensor
    ids: tf.Tensor
    slot: tf.Tensor
    shown: dict[str, tf.Tensor]


class Outcome(NamedTuple):
    """How episodes ended, `[B]` each.

    Attributes:
        success: bool, the last reward was that of the right goal.
        finished: bool, a goal was reached, right or wrong.
        steps: int32.
        total: sum of the rewards.
        remembered: bool, a frame that shows the indicator was in memory at the last action.
    """

    success: tf.Tensor
    finished: tf.Tensor
    steps: tf.Tensor
    total: tf.Tensor
    remembered: tf.Tensor


def make_course(
    world: World, maps: Sequence[int] | None = None, poses: int = 0, frames: int = 0
) -> Course:
    """Takes maps from a world.

    Args:
        world: the tables of all maps.
        maps: which ones; all of them if None.
        poses: pad to at least so many poses.
        frames: pad to at least so many frames. More than 128 are padded to one of `buckets`.

    Returns:
        The `Course`.
    """
    maps = np.arange(len(world.mazes)) if maps is None else np.asarray(maps)
    distinct, order = np.unique(maps, return_inverse=True)
    spans = [np.arange(world.offset[m], world.offset[m + 1]) for m in distinct]
    old = np.concatenate(spans)
    base = np.cumsum([0, *map(len, spans)])[:-1]  # where each map's poses begin now
    sizes = [len(span) for span in spans]
    shift = np.repeat(base - world.offset[distinct], sizes)
    shown, frame = np.unique(world.frame[old], return_inverse=True)
    limit = np.repeat(world.limit[distinct], sizes)

    pictures = max(len(shown), frames)
    if pictures > 128:
        pictures = next(size for size in buckets(2 * pictures, 128) if size >= pictures)

    def pad(array, size):
        return np.pad(array, [(0, size - len(array))] + [(0, 0)] * (array.ndim - 1))

    rows = max(len(old), poses)
    tables = Tables(
        next=pad(world.next[old] + shift[:, None], rows),
        reward=pad(world.reward[old], rows),
        done=pad(world.done[old], rows),
        frame=pad(frame.astype(np.int32), rows),
        limit=pad(limit, rows),
        frames=pad(world.frames[shown], pictures),
        palette=world.palette,
        shortest=None,
        red=pad(np.repeat([world.mazes[m].goal == "R" for m in distinct], sizes), rows),
    )
    tables = tables._replace(shortest=shortest_ways(tables))
    kinds = [tf.int32, tf.float32, tf.bool, tf.int32, tf.int32, tf.uint8, tf.uint8]
    kinds += [tf.bool, tf.bool]
    spawn = world.spawn[distinct] - world.offset[distinct][:, None] + base[:, None]
    return Course(
        tables=Tables(*(tf.constant(x, k) for x, k in zip(tables, kinds, strict=True))),
        spawn=spawn[order].astype(np.int32),
        indicator=pad(world.shows_indicator[shown], pictures),
        limit=int(limit.max()),
    )


def colours(frames: tf.Tensor, palette: tf.Tensor) -> tf.Tensor:
    """Palette indices `[K, H, W]` -> colours `[K, H, W, 3]`, float 0 to 1."""
    return tf.gather(tf.cast(palette, tf.float32) / 255.0, tf.cast(frames, tf.int32))


def walk(
    model: Navigator,
    tables: Tables,
    starts: tf.Tensor,
    steps: int,
    seed: tf.Tensor | None = None,
    details: bool = False,
    script: tf.Tensor | None = None,
) -> tuple[Walk, tf.Tensor]:
    """Walks B episodes to their ends.

    Args:
        model: the agent.
        tables: the maps.
        starts: int32 `[B]`, the poses they begin in.
        steps: T, at least the longest limit; longer episodes are cut there.
        seed: `[2]` int32 to draw actions and evictions, for learning. None plays: the likeliest
            evictions, and actions as the agent's temperature says, drawn with a seed of their own.
        details: also record attention, and the probabilities of actions and evictions.
        script: int32 `[B, T]`, actions to take instead of the agent's own.

    Returns:
        The `Walk`, and the number of steps of the longest episode.
    """
    views = look(model, tables)
    batch, slots = starts.shape[0], model.memory.slots
    policy = model.memory.policy
    state = memory.empty(batch, slots, tf.TensorSpec([], tf.int32), policy.carry_spec())
    shapes = {
        "frame": (tf.int32, []),
        "action": (tf.int32, []),
        "shortest": (tf.bool, [model.reader.actions]),
        "red": (tf.bool, []),
        "reward": (tf.float32, []),
        "valid": (tf.bool, []),
        "entries": (tf.int32, [slots + 1]),
        "ids": (tf.int64, [slots + 1]),
        "slot": (tf.int32, []),
    }
    if details:
        shapes |= {
            "attention": (tf.float32, [slots]),
            "actions": (tf.float32, [model.reader.actions]),
            "drop": (tf.float32, [slots + 1]),
            "value": (tf.float32, []),
            "pose": (tf.int32, []),
        }
    record = {
        name: tf.TensorArray(dtype, steps, element_shape=[batch, *shape])
        for name, (dtype, shape) in shapes.items()
    }

    def step(t, pose, alive, state, carry, record):
        frame = tf.gather(tables.frame, pose)
        seen = see(model, views, frame, state, carry)
        logits = model.reader.actor(seen.output)
        if seed is None:
            action = draw(logits, state.clock, tf.constant(PLAYED), model.temperature)
        else:
            action = draw(logits, state.clock, seed)
        if script is not None:
            action = script[:, t]
        cells, after, wish, slot = remember(model, views, frame, state, seen.attention, seed)
        new = tf.gather(tf.gather(tables.next, pose), action, batch_dims=1)
        over = tf.gather(tables.done, new) | (t + 1 >= tf.gather(tables.limit, pose))
        lived = {
            "frame": frame,
            "action": action,
            "shortest": tf.gather(tables.shortest, pose),
            "red": tf.gather(tables.red, pose),
            "reward": tf.where(alive, tf.gather(tables.reward, new), 0.0),
            "valid": alive,
            "entries": cells.entries,
            "ids": cells.ids,
            "slot": slot,
        }
        if details:
            lived |= {
                "attention": seen.attention,
                "actions": tf.nn.softmax(logits),
                "drop": tf.nn.softmax(wish),
                "value": tf.squeeze(model.critic(seen.output), -1),
                "pose": pose,
            }
        record = {name: array.write(t, lived[name]) for name, array in record.items()}
        return t + 1, new, alive & ~over, after, seen.carry, record

    everyone = tf.ones([batch], tf.bool)
    begin = (0, starts, everyone, state, model.reader.initial_carry(batch), record)
    count, _, _, _, _, record = tf.while_loop(
        lambda t, pose, alive, *_: (t < steps) & tf.reduce_any(alive),
        step,
        begin,
        maximum_iterations=steps,
    )

    def batch_major(array):
        leaf = array.stack()
        return tf.transpose(leaf, [1, 0, *range(2, leaf.shape.rank)])

    lived = {name: batch_major(array) for name, array in record.items()}
    main = {name: lived.pop(name) for name in Walk._fields[:-1]}
    return Walk(**main, shown=lived), count


def look(model: Navigator, tables: Tables, block: int = 128) -> Views:
    """What every frame of the tables contributes; many frames are seen a block at a time."""
    count = tables.frames.shape[0]
    if count <= block or count % block:
        return model.look(colours(tables.frames, tables.palette))
    frames = tf.reshape(tables.frames, [-1, block, *tables.frames.shape[1:]])
    kinds = Views(tf.float32, tf.float32, tf.float32)
    views = tf.map_fn(
        lambda part: model.look(colours(part, tables.palette)), frames, fn_output_signature=kinds
    )
    return Views(*(tf.reshape(x, [count, x.shape[-1]]) for x in views))


def see(model: Navigator, views: Views, frame: tf.Tensor, state: memory.MemoryState, carry):
    """The reader's `Glance` at the current frames `[B]` with the memory as it is."""
    query = tf.gather(views.query, frame)
    codes = tf.gather(views.codes, state.entries)
    return model.reader.glance(query, codes, state.ids, carry)


def remember(
    model: Navigator,
    views: Views,
    frame: tf.Tensor,
    state: memory.MemoryState,
    attention: tf.Tensor,
    seed: tf.Tensor | None,
):
    """Offers the current frames to the memory: `EpisodicMemory.observe`, by rows of `views`.

    Returns:
        The candidates, the memory after it, the eviction logits `[B, N + 1]` and the slot `[B]`.
    """
    state = model.memory.attend(state, attention)
    cells = memory.candidates(state, frame)
    vectors = tf.gather(views.vectors, cells.entries)
    policy = model.memory.policy
    scores = policy(Cells(vectors, cells.ids, cells.clock, seed), cells.carry)
    draws = seed is not None or policy.stochastic
    logits, slot = choose(scores.logits, cells, gumbel(cells, seed) if draws else None)
    return cells, memory.evict_from(cells._replace(carry=scores.carry), slot), logits, slot


def draw(
    logits: tf.Tensor, clock: tf.Tensor, seed: tf.Tensor, temperature: float = 1.0
) -> tf.Tensor:
    """Actions `[B]` drawn from softmax(logits `[B, A]` / temperature); the likeliest if it is 0."""
    if temperature:
        logits /= temperature
        places = tf.range(logits.shape[-1], dtype=tf.int64)
        places = tf.broadcast_to(places, tf.shape(logits))
        # Another seed than that of the evictions of the same step.
        logits += gumbel(Cells(logits, places, clock), seed + tf.constant([7919, 0]))
    return tf.argmax(logits, axis=-1, output_type=tf.int32)


def outcome(walk: Walk, indicator: tf.Tensor) -> Outcome:
    """How the episodes of a walk ended.

    Args:
        walk: the episodes.
        indicator: bool `[K]`, see `Course`.
    """
    steps = tf.reduce_sum(tf.cast(walk.valid, tf.int32), axis=1)
    last = tf.one_hot(steps - 1, walk.valid.shape[1], True, False)
    reward = tf.reduce_sum(tf.where(last, walk.reward, 0.0), axis=1)
    held = tf.gather(indicator, walk.entries[..., :-1]) & (walk.ids[..., :-1] != memory.EMPTY)
    return Outcome(
        success=reward > 0.5,
        finished=tf.abs(reward) > 0.5,
        steps=steps,
        total=tf.reduce_sum(walk.reward, axis=1),
        remembered=tf.reduce_any(tf.reduce_any(held, axis=-1) & last, axis=1),
    )
