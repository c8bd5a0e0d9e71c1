"""The memory itself: a value of fixed size, and the pure functions that change it.

A `MemoryState` is M_t of the paper: N slots that hold a few items of an endless stream. Nothing is
hidden in variables: to save, fork or replay a live memory is to save, copy or reuse a tuple of
tensors:

    state = memory.empty(batch=1, slots=5, entry=tf.TensorSpec([20]))
    cells = memory.candidates(state, item)         # the N slots and the newcomer
    slot = ...                                     # which of the N + 1 goes
    state = memory.write(state, item, slot)        # evict it, shift, append the newcomer

Slots are kept in the order of the stream, oldest first. Unused slots may be anywhere; in a fresh
memory all slots are unused, and writing "evicts" them first.
"""

from __future__ import annotations

import numbers
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from lemn_tf.tables import Table, in_words

EMPTY = -1
"""The id of an unused slot."""
NEVER = np.iinfo(np.int64).max
"""The expiry of an entry that does not expire."""

Nest = Any
_KINDS = {
    "ids": (tf.int64, 2),
    "pinned": (tf.bool, 2),
    "expiry": (tf.int64, 2),
    "clock": (tf.int64, 1),
}
"""Type and rank of the plain fields of a state."""
_LEADS = {1: "[B]", 2: "[B, N]"}


class MemoryState(NamedTuple):
    """M_t: what a bounded memory holds after `clock` items of its stream.

    Attributes:
        entries: the items as they were given: a tensor `[B, N, ...]`, or a dict or tuple of such.
        ids: `[B, N]` int64, position in the stream of each entry (first item 0), `EMPTY` if unused.
        pinned: `[B, N]` bool, entries that no policy may evict.
        expiry: `[B, N]` int64, the clock at which an entry becomes the first to go, or `NEVER`.
        carry: what the policy remembers of each slot (nest of `[B, N, ...]`), `()` if nothing.
        clock: `[B]` int64, number of items seen.
        stream: what is known about the stream as a whole (nest of `[B, ...]`), `()` if nothing; it
            belongs to whatever makes the items, and is only carried along here.
    """

    entries: Nest
    ids: tf.Tensor
    pinned: tf.Tensor
    expiry: tf.Tensor
    carry: Nest
    clock: tf.Tensor
    stream: Nest = ()

    @property
    def slots(self) -> int | tf.Tensor:
        """N in the paper."""
        return self.ids.shape[1] if self.ids.shape[1] is not None else tf.shape(self.ids)[1]

    @property
    def filled(self) -> tf.Tensor:
        """`[B, N]` bool: which slots hold an entry."""
        return self.ids != EMPTY

    def table(self, row: int = 0) -> Table:
        """What one row holds, oldest first, as a readable table."""
        ids, pinned = self.ids[row].numpy(), self.pinned[row].numpy()
        entries = tf.nest.map_structure(lambda leaf: leaf[row].numpy(), self.entries)
        rows = [
            (int(ids[n]), in_words(tf.nest.map_structure(lambda leaf, n=n: leaf[n], entries)))
            + (("pinned",) if pinned.any() and pinned[n] else ("",) if pinned.any() else ())
            for n in range(len(ids))
            if ids[n] != EMPTY
        ]
        header = ("id", "entry", "pinned") if pinned.any() else ("id", "entry")
        return Table(header, rows, f"{len(rows)} of {len(ids)} slots after {self.clock[row]} items")

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def empty(
    batch: int | tf.Tensor, slots: int, entry: Nest, carry: Nest = (), stream: Nest = ()
) -> MemoryState:
    """A memory that has seen nothing.

    Args:
        batch: number of independent memories, B.
        slots: size of each, N in the paper; at least 1.
        entry: nest of `tf.TensorSpec`, one item without batch dimension.
        carry: nest of `tf.TensorSpec`, what the policy keeps for one slot.
        stream: nest of `tf.TensorSpec`, what is kept of the stream as a whole.

    Returns:
        A `MemoryState` whose slots are all unused.

    Example:

    >>> state = empty(batch=2, slots=3, entry=tf.TensorSpec([4], tf.float32))
    >>> state.entries.shape, state.ids.numpy().tolist()
    (TensorShape([2, 3, 4]), [[-1, -1, -1], [-1, -1, -1]])
    """
    if not tf.is_tensor(slots):
        slots = check_slots(slots)

    def blank(spec, lead=(batch, slots)):
        if not isinstance(spec, tf.TensorSpec):
            raise TypeError(f"entry, carry and stream are nests of tf.TensorSpec; got {spec!r}")
        if not spec.shape.is_fully_defined():
            raise ValueError(f"the shape of one entry must be fully known; got {spec.shape}")
        shape = [*lead, *spec.shape]
        return tf.fill(shape, "") if spec.dtype == tf.string else tf.zeros(shape, spec.dtype)

    return MemoryState(
        entries=tf.nest.map_structure(blank, entry),
        ids=tf.fill([batch, slots], tf.constant(EMPTY, tf.int64)),
        pinned=tf.fill([batch, slots], False),
        expiry=tf.fill([batch, slots], tf.constant(NEVER, tf.int64)),
        carry=tf.nest.map_structure(blank, carry),
        clock=tf.zeros([batch], tf.int64),
        stream=tf.nest.map_structure(lambda spec: blank(spec, (batch,)), stream),
    )


def check_slots(slots: Any) -> int:
    """Returns `slots` as an int; raises unless it is a whole number of at least 1."""
    if isinstance(slots, bool) or not isinstance(slots, numbers.Integral):
        raise TypeError(f"slots must be a whole number; got {slots!r}")
    if slots < 1:
        raise ValueError(f"a memory needs at least 1 slot; got slots={slots}")
    return int(slots)


def check_state(state: MemoryState) -> None:
    """Raises a `ValueError` or `TypeError` that names the field, if `state` is not well formed."""
    if not isinstance(state, MemoryState):
        raise TypeError(f"expected a MemoryState; got {type(state).__name__}")
    for name, (dtype, rank) in _KINDS.items():
        tensor = getattr(state, name)
        _check_tensor(f"state.{name}", tensor)
        if tensor.dtype != dtype:
            raise TypeError(f"state.{name} must be {dtype.name}; got {tensor.dtype.name}")
        if tensor.shape.rank != rank:
            raise ValueError(f"state.{name} must have rank {rank}; got shape {tensor.shape}")
        if not tensor.shape.is_compatible_with(state.ids.shape[:rank]):
            expected = f"{_LEADS[rank]} = {state.ids.shape[:rank]}"
            raise ValueError(f"state.{name} must be {expected} like state.ids; got {tensor.shape}")
    for name, rank in (("entries", 2), ("carry", 2), ("stream", 1)):
        for leaf in tf.nest.flatten(getattr(state, name)):
            _check_tensor(f"state.{name}", leaf)
            if leaf.shape.rank is None or not leaf.shape[:rank].is_compatible_with(
                state.ids.shape[:rank]
            ):
                raise ValueError(
                    f"every tensor in state.{name} must start with {_LEADS[rank]} = "
                    f"{state.ids.shape[:rank]}; got shape {leaf.shape}"
                )


def _check_tensor(name: str, value: Any) -> None:
    if not tf.is_tensor(value):
        raise TypeError(f"{name} must hold tensors; got {type(value).__name__}")


def check_item(state: MemoryState, item: Nest) -> Nest:
    """Returns `item` as tensors; raises if it is not one more item of the kind `state` holds."""
    try:
        tf.nest.assert_same_structure(state.entries, item)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"the item must be nested like the memory's entries: expected "
            f"{_describe(state.entries)}; got {_describe(item)}"
        ) from error

    def convert(entry, leaf):
        leaf = tf.convert_to_tensor(leaf)
        if leaf.dtype != entry.dtype:
            raise TypeError(f"item must be {entry.dtype.name}; got {leaf.dtype.name}")
        expected = entry.shape[:1].concatenate(entry.shape[2:])
        if leaf.shape.rank != expected.rank or not leaf.shape.is_compatible_with(expected):
            raise ValueError(f"item must have shape {expected}; got {leaf.shape}")
        return leaf

    return tf.nest.map_structure(convert, state.entries, item)


def _describe(nest: Nest) -> str:
    return str(tf.nest.map_structure(lambda leaf: str(getattr(leaf, "shape", type(leaf))), nest))


def candidates(
    state: MemoryState, item: Nest, pinned: tf.Tensor | bool = False, expiry: Any = NEVER
) -> MemoryState:
    """The N slots and the newcomer x_t behind them: a state of N + 1 slots, newcomer last.

    Args:
        state: the memory.
        item: one item for each row, nest of `[B, ...]`.
        pinned: whether the newcomer is pinned, scalar or `[B]`.
        expiry: the clock at which the newcomer expires, scalar or `[B]`.

    Returns:
        A `MemoryState` with N + 1 slots and the clock advanced by one. The newcomer's carry is 0.
    """
    check_state(state)
    item = check_item(state, item)

    def append(slots, one):
        return tf.concat([slots, one[:, None]], axis=1)

    def row(name, value, dtype):
        value = tf.cast(value, dtype)
        if value.shape.rank and not value.shape.is_compatible_with(state.clock.shape):
            raise ValueError(
                f"{name} must be a scalar or [B] = {state.clock.shape}; got {value.shape}"
            )
        return tf.broadcast_to(value, tf.shape(state.clock))

    return MemoryState(
        entries=tf.nest.map_structure(append, state.entries, item),
        ids=append(state.ids, state.clock),
        pinned=append(state.pinned, row("pinned", pinned, tf.bool)),
        expiry=append(state.expiry, row("expiry", expiry, tf.int64)),
        carry=tf.nest.map_structure(with_newcomer, state.carry),
        clock=state.clock + 1,
        stream=state.stream,
    )


def with_newcomer(leaf: tf.Tensor) -> tf.Tensor:
    """The carry of N slots, `[B, N, ...]`, and 0 for the newcomer: `[B, N + 1, ...]`."""
    return tf.pad(leaf, [[0, 0], [0, 1]] + [[0, 0]] * (leaf.shape.rank - 2))


def evict(cells: Nest, slot: tf.Tensor) -> Nest:
    """[m_1, ..., m_{i-1}, m_{i+1}, ..., m_N, x_t]: drops cell i = `slot` and closes the gap.

    Args:
        cells: nest of `[B, N + 1, ...]`, the newcomer last.
        slot: `[B]` int, which cell goes; N drops the newcomer.

    Returns:
        Nest of `[B, N, ...]`.

    Example:

    >>> evict(tf.constant([[10, 11, 12, 13]]), tf.constant([1])).numpy().tolist()
    [[10, 12, 13]]
    """

    def drop(leaf):
        places = tf.range(tf.shape(leaf)[1] - 1, dtype=slot.dtype)
        shifted = places[None] >= slot[:, None]
        return tf.where(spread(shifted, leaf), leaf[:, 1:], leaf[:, :-1])

    return tf.nest.map_structure(drop, cells)


def write(
    state: MemoryState,
    item: Nest,
    slot: tf.Tensor,
    pinned: tf.Tensor | bool = False,
    expiry: Any = NEVER,
) -> MemoryState:
    """M_{t+1}: evicts `slot`, shifts the later ones down, appends the newcomer at the end.

    Args:
        state: the memory.
        item: one item for each row, nest of `[B, ...]`.
        slot: `[B]` int, the slot to evict; N means that the newcomer is not stored.
        pinned: whether the newcomer is pinned, scalar or `[B]`.
        expiry: the clock at which the newcomer expires, scalar or `[B]`.

    Returns:
        The memory after the item, with the clock advanced by one.

    Example:

    >>> state = empty(batch=1, slots=2, entry=tf.TensorSpec([], tf.string))
    >>> for t, text in enumerate(["Mary took the milk.", "Mary is bored.", "Mary left."]):
    ...     state = write(state, tf.constant([text]), slot=tf.constant([0 if t < 2 else 1]))
    >>> state.entries.numpy().tolist(), state.ids.numpy().tolist()
    ([[b'Mary took the milk.', b'Mary left.']], [[0, 2]])
    """
    slot = tf.convert_to_tensor(slot)
    check_state(state)
    fits = slot.shape.rank == 1 and slot.shape.is_compatible_with(state.clock.shape)
    if not fits or not slot.dtype.is_integer:
        raise ValueError(
            f"slot must be integers of shape [B] = {state.clock.shape}; got {slot.dtype.name} "
            f"{slot.shape}"
        )
    return evict_from(candidates(state, item, pinned, expiry), slot)


def evict_from(cells: MemoryState, slot: tf.Tensor) -> MemoryState:
    """`write` for candidates that exist already: drops one of the N + 1 cells, keeps the clock."""
    kept = evict(cells._replace(clock=(), stream=()), slot)
    return kept._replace(clock=cells.clock, stream=cells.stream)


def forget(state: MemoryState, ids: Any) -> MemoryState:
    """Erases the entry with the given id, contents and all; rows without it stay as they are.

    Args:
        state: the memory.
        ids: scalar or `[B]`, the id to erase in each row.

    Returns:
        The memory with that slot unused; later writes fill it before anything is evicted.
    """
    gone = _holds(state, ids)
    return blank_unused(
        state._replace(
            ids=tf.where(gone, tf.constant(EMPTY, tf.int64), state.ids),
            pinned=state.pinned & ~gone,
            expiry=tf.where(gone, tf.constant(NEVER, tf.int64), state.expiry),
        )
    )


def blank_unused(state: MemoryState) -> MemoryState:
    """The same memory with the entries and the carry of unused slots blanked."""
    entries, carry = blanked((state.entries, state.carry), ~state.filled)
    return state._replace(entries=entries, carry=carry)


def blanked(nest: Nest, unused: tf.Tensor) -> Nest:
    """The same nest of `[..., N, ...]`, blank in the slots that are `unused` `[..., N]`."""

    def blank(leaf):
        nothing = "" if leaf.dtype == tf.string else tf.zeros([], leaf.dtype)
        return tf.where(spread(unused, leaf), nothing, leaf)

    return tf.nest.map_structure(blank, nest)


def spread(mask: tf.Tensor, leaf: tf.Tensor) -> tf.Tensor:
    """A mask of the first dimensions of `leaf`, reshaped to broadcast over the others."""
    more = [1] * (leaf.shape.rank - mask.shape.rank)
    return tf.reshape(mask, tf.concat([tf.shape(mask), more], axis=0))


def pin(state: MemoryState, ids: Any) -> MemoryState:
    """Marks the entry with the given id as never to be evicted; see `forget` for the arguments."""
    return state._replace(pinned=state.pinned | _holds(state, ids))


def unpin(state: MemoryState, ids: Any) -> MemoryState:
    """Takes back a `pin`."""
    return state._replace(pinned=state.pinned & ~_holds(state, ids))


def _holds(state: MemoryState, ids: Any) -> tf.Tensor:
    check_state(state)
    ids = tf.cast(tf.convert_to_tensor(ids), tf.int64)
    if ids.shape.rank not in (0, 1):
        raise ValueError(f"ids must be a scalar or [B]; got shape {ids.shape}")
    if ids.shape.rank == 1 and not ids.shape.is_compatible_with(state.clock.shape):
        raise ValueError(f"ids must be a scalar or [B] = {state.clock.shape}; got {ids.shape}")
    wanted = tf.broadcast_to(ids, tf.shape(state.clock))[:, None]
    return (state.ids == wanted) & state.filled
