"""EpisodicMemory: N slots and a policy, as one Keras layer.

The step is separate from the loop, as in Keras' recurrent layers: `observe` takes in one item,
`call` a whole stream, and both give the same memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf
from keras.src.backend.common import global_state

from lemn_tf import memory, retention, streams, tape
from lemn_tf.memory import MemoryState
from lemn_tf.retention.base import Cells, Scores, swap_time
from lemn_tf.retention.chance import gumbel
from lemn_tf.retention.decision import Decision, choose, describe

Nest = Any


@keras.saving.register_keras_serializable("lemn_tf")
class EpisodicMemory(keras.layers.Layer):
    """A memory of N slots over an endless stream, with a policy that chooses what it forgets.

    Args:
        slots: N in the paper. No weight depends on it, so it can change at any time.
        policy: a name (`lemn_tf.retention.names()`) or a `RetentionPolicy`.
        encoder: layer from entries `[..., d1, ...]` to vectors `[..., D]`, phi in the paper: what
            the policy sees of an entry. Default: entries are single vectors and seen as they are.

    Call arguments:
        items: nest of `[B, T, ...]`, the stream; ragged in T, or padded and masked.
        initial_state: the `MemoryState` to continue from; default an empty one.
        mask: `[B, T]` bool, False for padding, which changes nothing. A mask that Keras attached
            to the items, as `Masking` does, counts too.
        training: sample evictions instead of taking the likeliest, if the policy learns.
        seed: `[2]` int32 for sampling; default one drawn by the layer, another in each call.
        after_step: called with the step and the memory after it; returns the memory with other
            pins, expiries or carry, or with entries forgotten. It may not change entries.
        slots: N, if not the layer's own.
        ask_at: `[B, Q]` int, for questions along the stream: how many items have been seen when
            each is asked, -1 for padding.

    Returns:
        `(state, decisions)`: the memory after the stream, and a `Decision` of `[B, T, ...]`. With
        `ask_at` the first is a `lemn_tf.tape.Recalled`: what was in memory at each question.

    Example:

    >>> remember = EpisodicMemory(slots=3, policy="fifo")
    >>> state, decisions = remember(tf.random.normal([1, 10, 4]))
    >>> state.ids.numpy().tolist(), state.entries.shape
    ([[7, 8, 9]], TensorShape([1, 3, 4]))
    >>> state, decision = remember.observe(state, tf.zeros([1, 4]))
    >>> decision.evicted.numpy().tolist()
    [7]
    """

    def __init__(
        self,
        slots: int = 10,
        policy: str | retention.RetentionPolicy = "st-lemn",
        encoder: keras.layers.Layer | None = None,
        **kwargs,
    ):
        super().__init__(**{"autocast": False, **kwargs})  # entries are kept as they were given
        self.slots = memory.check_slots(slots)
        self.policy = retention.get(policy)
        self.encoder = encoder
        self.supports_masking = True
        self._seeds = keras.random.SeedGenerator()
        self._item = None

    def build(self, items_shape):
        # With an encoder the policy is built once the first entries are encoded: only then is
        # their width known. On loading, Keras builds it from its own configuration.
        if self.encoder is None and not isinstance(items_shape, dict):
            if len(items_shape) != 3 or items_shape[-1] is None:
                raise ValueError(
                    f"without an encoder the items must be [B, T, D]; got shape {items_shape}"
                )
            self._build_policy(items_shape)

    def _build_policy(self, shape):
        if not self.policy.built:
            self.policy.build((None, None, shape[-1]))
            self.policy.built = True
        if not self.policy.trainable and any(w.trainable for w in self.policy.weights):
            # Loaded as frozen, but Keras passes that on to a layer's parts only when it changes.
            self.policy.trainable = True
            self.policy.trainable = False

    def encode(self, entries: Nest) -> tf.Tensor:
        """phi: what the policy sees of entries with any leading dimensions, `[..., D]`.

        NaN, infinity and numbers beyond `streams.LARGEST` are seen as 0, so that a bad item
        affects nothing else; the entry itself is kept unchanged.
        """
        clairvoyant = self.policy.clairvoyant and self.encoder is None
        if self.encoder is not None:
            vectors = streams.sound(self.encoder(tf.nest.map_structure(streams.sound, entries)))
        elif clairvoyant and tf.is_tensor(entries) and entries.dtype != tf.string:
            vectors = entries  # clocks, which are exact only in their own type
        elif tf.is_tensor(entries) and entries.dtype.is_floating:
            vectors = streams.sound(tf.cast(entries, self.policy.compute_dtype))
        else:
            raise TypeError(
                "without an encoder the items must be one float tensor of vectors; got "
                f"{tf.nest.map_structure(lambda leaf: leaf.dtype.name, entries)}: "
                "pass encoder= a layer from entries to vectors"
            )
        self._build_policy(vectors.shape)
        return vectors

    def initial_state(
        self, batch: int, item: Nest | None = None, slots: int | None = None
    ) -> MemoryState:
        """An empty memory for items of this kind.

        Args:
            batch: number of rows, B.
            item: nest of `tf.TensorSpec`, one item without batch dimension; default the kind that
                the layer has been called with.
            slots: how many slots, if not the layer's own number.

        Example:

        >>> remember = EpisodicMemory(slots=3, policy="lifo")
        >>> remember.initial_state(2, tf.TensorSpec([4])).entries.shape
        TensorShape([2, 3, 4])
        >>> state = remember.initial_state(2, slots=7)
        >>> remember.observe(state, tf.zeros([2, 4]))[0].entries.shape
        TensorShape([2, 7, 4])
        """
        item = self._item if item is None else item
        if item is None:
            raise ValueError(
                "the layer has not seen an item yet: say what kind to expect, for example "
                "initial_state(batch, item=tf.TensorSpec([20]))"
            )
        one = memory.empty(1, 1, item)
        self._check_vectors(self.encode(one.entries), one.entries, 2)
        self._item = item
        return memory.empty(batch, slots or self.slots, item, self.policy.carry_spec())

    def _check_vectors(self, vectors: tf.Tensor, entries: Nest, leading: int) -> None:
        if vectors.shape.rank != leading + 1:
            shapes = tf.nest.map_structure(lambda leaf: str(leaf.shape), entries)
            raise ValueError(
                f"entries {shapes} must be encoded as vectors, {leading} leading dimensions and "
                f"one more; got {vectors.shape}: pass an encoder= that does"
            )

    def _check_carry(self, state: MemoryState) -> None:
        memory.check_state(state)
        expected, got = self.policy.carry_spec(), state.carry
        try:
            tf.nest.assert_same_structure(expected, got)
            same = True
        except (TypeError, ValueError):
            same = False
        pairs = zip(tf.nest.flatten(expected), tf.nest.flatten(got), strict=False)
        if not same or any(
            a.dtype != b.dtype or not b.shape[2:].is_compatible_with(a.shape) for a, b in pairs
        ):
            raise ValueError(
                f"the state belongs to another policy than {self.policy.name!r}: expected a carry "
                f"for each slot like {expected}; got {got}"
            )

    def observe(
        self,
        state: MemoryState,
        item: Nest,
        pinned: Any = False,
        ttl: Any = None,
        training: bool = False,
        seed: tf.Tensor | None = None,
    ) -> tuple[MemoryState, Decision]:
        """One item: M_t, x_t -> M_{t+1}.

        Args:
            state: the memory.
            item: nest of `[B, ...]`.
            pinned: whether the item may never be evicted, scalar or `[B]`.
            ttl: after how many further items it expires, scalar or `[B]`; default never.
            training: sample the eviction instead of taking the likeliest, if the policy learns.
            seed: `[2]` int32 for sampling; default one drawn by the layer, another in each call.

        Returns:
            `(state, decision)`: the memory after the item, and a `Decision` of `[B, ...]` tensors.
        """
        memory.check_state(state)
        expiry = memory.NEVER if ttl is None else state.clock + 1 + tf.cast(ttl, tf.int64)
        cells = memory.candidates(state, item, pinned, expiry)
        vectors = self.encode(cells.entries)
        self._check_vectors(vectors, cells.entries, 2)
        self._check_carry(state)
        seed = self._seed(training, seed)
        after, logits, slot = self.step(vectors, cells, seed)
        return after, describe(cells.ids, logits, slot)

    def step(
        self, vectors: tf.Tensor, cells: MemoryState, seed: tf.Tensor | None = None
    ) -> tuple[MemoryState, tf.Tensor, tf.Tensor]:
        """The step that `observe` and `call` share, for entries that are encoded already.

        Args:
            vectors: `[B, N + 1, D]`, the candidates as the policy sees them.
            cells: the candidates, as `memory.candidates` returns them.
            seed: `[2]` int32 to draw the eviction; None takes the likeliest.

        Returns:
            The memory after one of them has left, the logits under the rules `[B, N + 1]`, and
            which one left `[B]`.
        """
        scores = self.policy(Cells(vectors, cells.ids, cells.clock, seed), cells.carry)
        draws = seed is not None or self.policy.stochastic
        noise = gumbel(cells, seed) if draws else None
        logits, slot = choose(scores.logits, cells, noise)
        return memory.evict_from(cells._replace(carry=scores.carry), slot), logits, slot

    def _seed(self, training, seed):
        if seed is None:
            draws = training and (self.policy.learns or self.policy.stochastic)
            return tf.cast(self._seeds.next(), tf.int32) if draws else None
        seed = tf.convert_to_tensor(seed)
        if not seed.dtype.is_integer or not seed.shape.is_compatible_with([2]):
            raise ValueError(f"seed must be two integers; got {seed.dtype.name} {seed.shape}")
        return tf.cast(seed, tf.int32)

    def attend(self, state: MemoryState, attention: tf.Tensor) -> MemoryState:
        """Tells the policy how a reader attended to the slots: `[B, N]` weights. LRU listens."""
        if not attention.shape.is_compatible_with(state.ids.shape):
            raise ValueError(f"attention must be [B, N] = {state.ids.shape}; got {attention.shape}")
        carry = self.policy.attend(state.carry, attention, state.clock)
        return state._replace(carry=carry)

    def call(
        self,
        items: Nest,
        initial_state: MemoryState | None = None,
        mask: tf.Tensor | None = None,
        training: bool = False,
        seed: tf.Tensor | None = None,
        after_step: Callable[[tf.Tensor, MemoryState], MemoryState] | None = None,
        slots: int | None = None,
        ask_at: tf.Tensor | None = None,
    ) -> tuple[MemoryState | tape.Recalled, Decision]:
        watching = tape.active()
        if watching is not None:
            if watching.instead is not None:
                return watching.answer()
            slots = slots or watching.slots
            if training and seed is None and self.policy.learns:
                seed = watching.next_seed()
        items, mask = streams.dense(items, mask)
        streams.check_stream(items, mask, ask_at)
        vectors = self.encode(items)
        seed = self._seed(training, seed)
        state = self._start(vectors, items, initial_state, slots)
        returned = self._live(state, vectors, items, mask, seed, after_step, ask_at)
        if watching is not None:
            fresh = initial_state is None
            call = tape.Call(self, items, vectors, mask, ask_at, fresh, seed, returned)
            watching.calls.append(call)
        return returned

    def _start(self, vectors, items, state, slots) -> MemoryState:
        """The memory that a stream begins with; raises unless it fits the items."""
        self._check_vectors(vectors, items, 2)
        spec = streams.item_spec(items)
        if state is None:
            slots = self.slots if slots is None else slots
            state = memory.empty(streams.size(items, 0), slots, spec, self.policy.carry_spec())
        elif slots is not None and state.ids.shape[1] != slots:
            raise ValueError(f"initial_state has {state.ids.shape[1]} slots; got slots={slots}")
        self._check_carry(state)
        memory.check_item(state, tf.nest.map_structure(lambda x: x[:, 0], items))
        if all(s.shape.is_fully_defined() for s in tf.nest.flatten(spec)):
            self._item = spec
        return state

    def _live(self, state, vectors, items, mask, seed, after_step, ask_at):
        """The loop over the stream: what `call` returns."""
        # Inside the loop an entry is its index in `pool` and its vector, so that entries are
        # encoded once, before the loop, and moved once, after it.
        pool = tf.nest.map_structure(lambda a, b: tf.concat([a, b], 1), state.entries, items)
        held = state._replace(
            entries=(
                tf.broadcast_to(tf.range(state.slots)[None], tf.shape(state.ids)),
                self.encode(state.entries),
            )
        )
        batch, steps = streams.size(items, 0), streams.size(items, 1)
        vectors_tm = tf.transpose(vectors, [1, 0, 2])
        mask_tm = None if mask is None else tf.transpose(mask)
        origin = tf.shape(state.ids)[1]

        def step(t, held, record):
            item = (tf.fill([batch], origin + t), vectors_tm[t])
            cells = memory.candidates(held, item)
            after, logits, slot = self.step(cells.entries[1], cells, seed)
            if mask_tm is not None:
                after = streams.choose_rows(mask_tm[t], after, held)
            if after_step is not None:
                full = after._replace(entries=streams.take(pool, after.entries[0]))
                after = after_step(t, full)._replace(entries=after.entries)
            new = (cells.ids, logits, slot, after.ids, after.entries[0])
            new = zip(record, new, strict=False)  # the last two only with ask_at
            return t + 1, after, tuple(array.write(t, x) for array, x in new)

        static = tf.nest.flatten(items)[0].shape[1]
        types = (tf.int64, tf.float32, tf.int32) + (() if ask_at is None else (tf.int64, tf.int32))
        record = tuple(tf.TensorArray(dtype, size=steps) for dtype in types)
        _, held, record = tf.while_loop(
            lambda t, *_: t < steps, step, (0, held, record), maximum_iterations=static
        )
        record = [swap_time(array.stack()) for array in record]
        decisions = streams.masked(describe(*record[:3]), mask)
        if ask_at is not None:
            seen = state.clock[:, None] + (
                tf.range(1, steps + 1, dtype=tf.int64) if mask is None else streams.count(mask)
            )
            return streams.recalled(
                pool, *record[3:], seen, tf.convert_to_tensor(ask_at)
            ), decisions
        after = held._replace(entries=streams.take(pool, held.entries[0]))
        if after_step is not None:
            after = memory.blank_unused(after)
        return after, decisions

    def replay(
        self, vectors: tf.Tensor, decisions: Decision, seed: tf.Tensor | None = None
    ) -> Scores:
        """What the policy thinks of every step of a recorded rollout, all steps at once.

        For training: `call` acts (no gradient needed), `replay` computes logits and features of
        the very same steps in one batch, with gradients.

        Args:
            vectors: `[B, T, D]`, the encoded stream, which began with an empty memory; any
                padding is at the end.
            decisions: what `call` returned for it.
            seed: the seed given to `call`.

        Returns:
            `Scores` of `[B, T, ...]`. The logits decided only where `decisions.free`.
        """
        ids = decisions.ids
        cells = Cells(
            vectors=tf.gather(vectors, tf.maximum(ids, 0), batch_dims=1),
            ids=ids,
            clock=ids[..., -1] + 1,
            seed=self._seed(False, seed),
        )
        return self.policy.replay(cells, decisions.slot)

    def get_config(self):
        return {
            **super().get_config(),
            "slots": self.slots,
            "policy": _serialized(self.policy),
            "encoder": _serialized(self.encoder),
        }

    @classmethod
    def from_config(cls, config):
        parts = ("policy", "encoder")
        made = {key: keras.saving.deserialize_keras_object(config[key]) for key in parts}
        return cls(**{**config, **made})

    def compute_mask(self, inputs, previous_mask=None):
        return None  # what follows reads a memory: see `MemoryState.filled`


def _serialized(part: Any) -> Any:
    """The configuration of a part that other layers of the same model may use as well.

    Keras marks a shared layer only in the first configuration it made of it. By then that one has
    been copied into this layer's configuration, so the mark is set here.
    """
    config = keras.saving.serialize_keras_object(part)
    sharing = global_state.get_global_attribute("shared_objects/id_to_config_map") is not None
    return {**config, "shared_object_id": id(part)} if sharing and part is not None else config
