"""StreamEnvironment: reading streams into N slots as a game of TF-Agents, played in the graph.

    environment = StreamEnvironment(arrays, model, batch_size=32)
    time_step = environment.reset()
    time_step = environment.step(tf.zeros([32], tf.int32))  # the oldest leaves, once memory is full

Each step is one item of the stream. The observation shows the N slots and the newcomer, the action
says which of the N + 1 leaves, and the reward depends on how the reader answers the questions
asked at that point.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step as ts

from lemn_tf import memory
from lemn_tf.agents.batched import BatchedEnvironment, Moved, variable
from lemn_tf.model import StreamReader
from lemn_tf.retention.decision import eligible
from lemn_tf.streams import choose_rows, item_spec

KEYS = ("items", "length", "questions", "ask_at", "answers")


def leaving(action: tf.Tensor, allowed: tf.Tensor) -> tf.Tensor:
    """The candidate that really leaves: the one chosen if it may leave, else the first that may.

    Args:
        action: `[...]` int32.
        allowed: `[..., N + 1]` bool, who may leave, at least one; see
            `retention.decision.eligible`.
    """
    first = tf.argmax(tf.cast(allowed, tf.int32), axis=-1, output_type=tf.int32)
    chosen = tf.one_hot(action, tf.shape(allowed)[-1], True, False)
    return tf.where(tf.reduce_any(chosen & allowed, axis=-1), tf.cast(action, tf.int32), first)


def game_of(
    model: StreamReader, item: Any = None, slots: int | None = None
) -> tuple[ts.TimeStep, tensor_spec.BoundedTensorSpec]:
    """Observations and actions when a model reads streams of such items.

    Args:
        model: its memory says how many slots there are.
        item: nest of `tf.TensorSpec`, one item; default the kind that the model knows.
        slots: N, if not the model's own.

    Returns:
        The specs of time steps and actions. Observations are dicts of
            entries: nest of `[N + 1, ...]`, the candidates, newcomer last, blank if unused.
            ids: `[N + 1]` int64, their positions in the stream, -1 if unused.
            allowed: `[N + 1]` bool, which of them may leave. Any other action is ignored.
            stream: int32, which of the streams it is, so that a learner can find the questions. A
                policy that used it would know the future.
    """
    item = model.item if item is None else item
    slots = slots or model.memory.slots
    observation = {
        "entries": tf.nest.map_structure(
            lambda spec: tf.TensorSpec([slots + 1, *spec.shape], spec.dtype), item
        ),
        "ids": tf.TensorSpec([slots + 1], tf.int64, "ids"),
        "allowed": tf.TensorSpec([slots + 1], tf.bool, "allowed"),
        "stream": tf.TensorSpec([], tf.int32, "stream"),
    }
    action = tensor_spec.BoundedTensorSpec([], tf.int32, 0, slots, "leaves")
    return ts.time_step_spec(observation), action


class StreamEnvironment(BatchedEnvironment):
    """B streams side by side. A row whose stream ends goes on with the next stream of the data.

    See `game_of` for the observations. At the end of a stream there is no newcomer, only the
    memory as it was left.

    Args:
        episodes: arrays of streams, an `Episode` of all of them.
        model: its reader answers, and its memory says how many slots there are.
        batch_size: B, how many streams run side by side.
        reward: for each answer, "sign" gives +1 or -1 as in the paper, "probability" that of the
            right answer. Several questions at one point add up.
        slots: N, if not the model's own.
        rewarding: False gives no rewards, for learners that judge the memories themselves.
    """

    def __init__(
        self,
        episodes: Mapping[str, np.ndarray],
        model: StreamReader,
        batch_size: int = 1,
        reward: str = "sign",
        slots: int | None = None,
        rewarding: bool = True,
    ):
        missing = [key for key in KEYS if key not in episodes]
        if missing:
            raise ValueError(f"episodes must hold {', '.join(KEYS)}; {', '.join(missing)} missing")
        if reward not in ("sign", "probability"):
            raise ValueError(f"reward must be 'sign' or 'probability'; got {reward!r}")
        shortest = int(np.min(episodes["length"], initial=1))
        if not len(episodes["length"]) or shortest < 1:
            raise ValueError(
                f"expected streams of at least one item; got {len(episodes['length'])} streams, "
                f"the shortest of {shortest} items"
            )
        arrays = {key: tf.nest.map_structure(variable, episodes[key]) for key in KEYS}
        slots = slots or model.memory.slots
        item = item_spec(arrays["items"])
        shown, action = game_of(model, item, slots)
        super().__init__(shown.observation, action, batch_size)
        self._episodes, self._item, self._reader = arrays, item, model.reader
        self._paid = reward if rewarding else None
        self._memory = tf.nest.map_structure(variable, memory.empty(batch_size, slots, self._item))
        self._stream = variable(tf.zeros([batch_size], tf.int32))
        self._next = variable(0)

    def load(self, episodes: Mapping[str, Any]) -> None:
        """Replaces the streams with others of the same shapes; call `reset` to begin with them."""
        for key in KEYS:
            tf.nest.map_structure(
                lambda old, new: old.assign(new), self._episodes[key], episodes[key]
            )
        self._next.assign(0)

    def _begin(self, rows: tf.Tensor) -> None:
        """Begins the next streams in those rows, with nothing in memory."""
        streams = self._episodes["length"].shape[0]
        order = self._next + tf.cumsum(tf.cast(rows, tf.int32), exclusive=True)
        self._stream.assign(tf.where(rows, order % streams, self._stream))
        self._next.assign((self._next + tf.reduce_sum(tf.cast(rows, tf.int32))) % streams)
        held = self._held()
        blank = memory.empty(self.batch_size, held.slots, self._item)
        self._assign(choose_rows(rows, blank, held))

    def _move(self, action: tf.Tensor, steps: tf.Tensor) -> Moved:
        cells = self._candidates()
        after = memory.evict_from(cells, leaving(action, eligible(cells)[0]))
        length = tf.gather(self._episodes["length"], self._stream)
        over = steps >= tf.cast(length, tf.int32)
        reward = self._earn(after)
        self._assign(after)
        return Moved(reward, over, tf.where(over, 0.0, 1.0))

    def _held(self) -> memory.MemoryState:
        return tf.nest.map_structure(lambda variable: variable.read_value(), self._memory)

    def _assign(self, state: memory.MemoryState) -> None:
        tf.nest.map_structure(lambda variable, value: variable.assign(value), self._memory, state)

    def _candidates(self) -> memory.MemoryState:
        """The slots and the next item, or an unused place after the end of a stream."""
        held, last = self._held(), self._over.read_value()
        clock = tf.cast(held.clock, tf.int32)

        def newcomer(leaf):
            place = tf.minimum(clock, leaf.shape[1] - 1)
            return tf.gather_nd(leaf, tf.stack([self._stream, place], axis=1))

        items = tf.nest.map_structure(newcomer, self._episodes["items"])
        cells = memory.candidates(held, memory.blanked(items, last))
        places = tf.range(cells.ids.shape[1])
        gone = last[:, None] & (places == cells.ids.shape[1] - 1)
        return cells._replace(ids=tf.where(gone, tf.constant(memory.EMPTY, tf.int64), cells.ids))

    def _earn(self, state: memory.MemoryState) -> tf.Tensor:
        """`[B]`: the reward for the questions asked when memory was like this."""
        if self._paid is None:
            return tf.zeros([self.batch_size])
        asked = {
            name: tf.nest.map_structure(
                lambda leaf: tf.gather(leaf, self._stream), self._episodes[name]
            )
            for name in ("questions", "ask_at", "answers")
        }
        queries = self._reader.ask(asked["questions"])  # [B, Q, d]
        codes = self._reader.encode(state.entries)[:, None]
        ids = tf.broadcast_to(state.ids[:, None], [*queries.shape[:2], state.slots])
        answer = self._reader.read(queries, codes, ids)
        if self._paid == "sign":
            right = self._reader.right(answer, asked["answers"])
            reward = 2.0 * tf.cast(right, tf.float32) - 1.0
        else:
            reward = self._reader.probability(answer, asked["answers"])
        now = tf.cast(asked["ask_at"], tf.int64) == state.clock[:, None]
        return tf.stop_gradient(tf.reduce_sum(tf.where(now, reward, 0.0), axis=1))

    def _observation(self) -> dict[str, Any]:
        cells = self._candidates()
        return {
            "entries": cells.entries,
            "ids": cells.ids,
            "allowed": eligible(cells)[0],
            "stream": self._stream.read_value(),
        }
