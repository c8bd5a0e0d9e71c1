"""Walking: episodes of a `Navigator` in the graph, over tables of poses.

The world is the graph of poses of `lemn_tf.mazes.World`, so a step of the environment is four
look-ups. `lemn_tf.pipelines.frames` takes from a world the maps of one update and the distinct
frames they show. `walk` then acts on such a `Course` without gradients and records integers only:
`learning` computes the loss of all steps from them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from lemn_tf import memory
from lemn_tf.mazes import graph
from lemn_tf.navigation.agent import PLAYED, Views, draw
from lemn_tf.navigation.navigator import Navigator
from lemn_tf.pipelines.frames import Course
from lemn_tf.readers.mqn import Glance
from lemn_tf.retention.base import swap_time


class Walk(NamedTuple):
    """Episodes as they were walked, `[B, T, ...]`.

    Attributes:
        pose: int32, where the agent stood.
        frame: int32, the current frame.
        action: int32, taken on seeing it.
        shortest: bool `[B, T, 3]`, which actions were on a shortest way to the right goal.
        red: bool, whether the right goal is the red one.
        goal: bool, whether the right goal is in view.
        reward: received for it; 0 after the end of the episode.
        valid: bool, False after the end.
        entries: int32 `[B, T, N + 1]`, frames in memory and, last, the current one.
        ids: int64 `[B, T, N + 1]`, the steps they were seen at, -1 = unused.
        slot: int32, which of them was forgotten.
        shown: dict of `[B, T, ...]` floats for pictures (`walk(details=True)`), else empty.
    """

    pose: tf.Tensor
    frame: tf.Tensor
    action: tf.Tensor
    shortest: tf.Tensor
    red: tf.Tensor
    goal: tf.Tensor
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
        known: int32, the steps since the right goal was first in view; 0 if it never was.
    """

    success: tf.Tensor
    finished: tf.Tensor
    steps: tf.Tensor
    total: tf.Tensor
    remembered: tf.Tensor
    known: tf.Tensor


def colours(frames: tf.Tensor, palette: tf.Tensor) -> tf.Tensor:
    """Palette indices `[K, H, W]` -> colours `[K, H, W, 3]`, float 0 to 1."""
    return tf.gather(tf.cast(palette, tf.float32) / 255.0, tf.cast(frames, tf.int32))


class Stage(NamedTuple):
    """Where the B episodes of a walk stand.

    Attributes:
        pose: int32 `[B]`.
        alive: bool `[B]`, False for episodes that have ended.
        state: the memory, a `MemoryState` whose entries are rows of the frames.
        carry: what the reader carries.
    """

    pose: tf.Tensor
    alive: tf.Tensor
    state: memory.MemoryState
    carry: Any


def walk(
    model: Navigator,
    course: Course,
    starts: tf.Tensor,
    steps: int,
    seed: tf.Tensor | None = None,
    details: bool = False,
    script: tf.Tensor | None = None,
) -> tuple[Walk, tf.Tensor]:
    """Walks B episodes to their ends.

    Args:
        model: the agent.
        course: the maps.
        starts: int32 `[B]`, the poses they begin in.
        steps: T, at least the longest limit; longer episodes are cut there.
        seed: `[2]` int32 to draw actions and evictions, for learning. None plays: the likeliest
            evictions, and actions as the agent's temperature says, drawn with a seed of their own.
        details: also record attention, and the probabilities of actions and evictions.
        script: int32 `[B, T]`, actions to take instead of the agent's own.

    Returns:
        The `Walk`, and the number of steps of the longest episode.
    """
    views = look(model, course)
    batch = starts.shape[0]
    empty = memory.empty(
        batch, model.memory.slots, tf.TensorSpec([], tf.int32), model.memory.policy.carry_spec()
    )
    start = Stage(starts, tf.ones([batch], tf.bool), empty, model.initial_carry(batch))
    record = {
        name: tf.TensorArray(dtype, steps, element_shape=[batch, *shape])
        for name, (dtype, shape) in _recorded(model, details).items()
    }

    def step(t, stage, record):
        action = None if script is None else script[:, t]
        stage, lived = _step(model, views, course, t, stage, seed, action)
        return t + 1, stage, {name: array.write(t, lived[name]) for name, array in record.items()}

    count, _, record = tf.while_loop(
        lambda t, stage, _: (t < steps) & tf.reduce_any(stage.alive),
        step,
        (0, start, record),
        maximum_iterations=steps,
    )
    lived = {name: swap_time(array.stack()) for name, array in record.items()}
    main = {name: lived.pop(name) for name in Walk._fields[:-1]}
    return Walk(**main, shown=lived), count


def _recorded(model: Navigator, details: bool) -> dict[str, tuple[tf.DType, list[int]]]:
    """Type and shape of what is recorded of each step and episode."""
    cells, actions = model.memory.slots + 1, model.reader.actions
    kinds: dict[str, tuple[tf.DType, list[int]]] = {
        "pose": (tf.int32, []),
        "frame": (tf.int32, []),
        "action": (tf.int32, []),
        "shortest": (tf.bool, [actions]),
        "red": (tf.bool, []),
        "goal": (tf.bool, []),
        "reward": (tf.float32, []),
        "valid": (tf.bool, []),
        "entries": (tf.int32, [cells]),
        "ids": (tf.int64, [cells]),
        "slot": (tf.int32, []),
    }
    if details:
        kinds |= {
            "attention": (tf.float32, [cells - 1]),
            "actions": (tf.float32, [actions]),
            "drop": (tf.float32, [cells]),
            "value": (tf.float32, []),
        }
    return kinds


def _step(
    model: Navigator,
    views: Views,
    course: Course,
    t: tf.Tensor,
    stage: Stage,
    seed: tf.Tensor | None,
    action: tf.Tensor | None,
) -> tuple[Stage, dict[str, tf.Tensor]]:
    """One step of all episodes: where they stand after it, and what is recorded of it."""
    pose, alive, state, carry = stage
    frame = tf.gather(course.frame, pose)
    seen = see(model, views, frame, state, carry)
    logits = model.reader.actor(seen.output)
    if action is None and seed is None:
        action = draw(logits, state.clock, tf.constant(PLAYED), model.temperature)
    elif action is None:
        action = draw(logits, state.clock, seed)
    # The frame is read with before it is stored.
    cells = memory.candidates(model.memory.attend(state, seen.attention), frame)
    after, wish, slot = model.memory.step(tf.gather(views.vectors, cells.entries), cells, seed)
    moved = graph.step(course, pose, action, t + 1)
    lived = {
        "pose": pose,
        "frame": frame,
        "action": action,
        "shortest": tf.gather(course.shortest, pose),
        "red": tf.gather(course.red, pose),
        "goal": tf.gather(course.goal, pose),
        "reward": tf.where(alive, moved.reward, 0.0),
        "valid": alive,
        "entries": cells.entries,
        "ids": cells.ids,
        "slot": slot,
        "attention": seen.attention,
        "actions": tf.nn.softmax(logits),
        "drop": tf.nn.softmax(wish),
        "value": tf.squeeze(model.critic(seen.output), -1),
    }
    carry = model.carry_on(seen.carry, action)
    return Stage(moved.pose, alive & ~(moved.done | moved.cut), after, carry), lived


def look(model: Navigator, course: Course, block: int = 128) -> Views:
    """What every frame of a course contributes; many frames are seen a block at a time."""
    count = course.frames.shape[0]
    if count <= block or count % block:
        return model.look(colours(course.frames, course.palette))
    frames = tf.reshape(course.frames, [-1, block, *course.frames.shape[1:]])
    kinds = Views(tf.float32, tf.float32, tf.float32)
    views = tf.map_fn(
        lambda part: model.look(colours(part, course.palette)), frames, fn_output_signature=kinds
    )
    return Views(*(tf.reshape(x, [count, x.shape[-1]]) for x in views))


def see(
    model: Navigator, views: Views, frame: tf.Tensor, state: memory.MemoryState, carry: Any
) -> Glance:
    """The reader's `Glance` at the current frames `[B]` with the memory as it is."""
    query = tf.gather(views.query, frame)
    codes = tf.gather(views.codes, state.entries)
    return model.glance(query, codes, state._replace(stream=carry))


def outcome(walk: Walk, indicator: tf.Tensor) -> Outcome:
    """How the episodes of a walk ended.

    Args:
        walk: the episodes.
        indicator: bool `[K]`, see `Course`.
    """
    steps = tf.reduce_sum(tf.cast(walk.valid, tf.int32), axis=1)
    last = tf.one_hot(steps - 1, walk.valid.shape[1], True, False)
    reward = tf.reduce_sum(tf.where(last, walk.reward, 0.0), axis=1)
    sightings = tf.cumsum(tf.cast(walk.goal, tf.int32), axis=1)
    held = tf.gather(indicator, walk.entries[..., :-1]) & (walk.ids[..., :-1] != memory.EMPTY)
    return Outcome(
        success=reward > 0.5,
        finished=tf.abs(reward) > 0.5,
        steps=steps,
        total=tf.reduce_sum(walk.reward, axis=1),
        remembered=tf.reduce_any(tf.reduce_any(held, axis=-1) & last, axis=1),
        known=tf.reduce_sum(tf.cast(walk.valid & (sightings > 0), tf.int32), axis=1),
    )
