"""MemoryTape: records how a model uses its memories, or puts other memories in their place.

A memory may be anywhere in a model: in a functional graph or in the `call` of a subclass, and
there may be several. To train what it keeps, one must know what happened in it and what the rest
of the model would have answered from another memory. So `EpisodicMemory` reports to the tape:

    with MemoryTape(seed) as tape:                 # records
        answer = model(inputs, training=True)
    tape.calls[0].decisions

    with MemoryTape(instead=[state]):              # the first memory to be called returns `state`
        other_answer = model(inputs)
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

Nest = Any
_local = threading.local()


class Recalled(NamedTuple):
    """What was in memory at each question along the stream.

    Attributes:
        entries: nest of `[B, Q, N, ...]`, the entries at each question.
        ids: `[B, Q, N]` int64, their positions in the stream, -1 for unused slots.
    """

    entries: Nest
    ids: tf.Tensor

    @property
    def filled(self) -> tf.Tensor:
        """`[B, Q, N]` bool: which slots hold an entry."""
        return self.ids != -1


class Call(NamedTuple):
    """One call of a memory, as a tape saw it.

    Attributes:
        layer: the `EpisodicMemory`.
        items: nest of `[B, T, ...]`, the stream.
        vectors: `[B, T, D]`, the encoded stream, with gradients.
        mask: `[B, T]` bool, or None.
        ask_at: `[B, Q]`, when questions were asked; None if only at the end of the stream.
        fresh: whether the stream began with an empty memory.
        seed: `[2]`, of the evictions; None if none were drawn.
        returned: what the call returned: a `MemoryState` or `Recalled`, and the decisions.
    """

    layer: Any
    items: Nest
    vectors: tf.Tensor
    mask: tf.Tensor | None
    ask_at: tf.Tensor | None
    fresh: bool
    seed: tf.Tensor | None
    returned: tuple[Any, Any]


class WrongCalls(ValueError):
    """A model called its memories differently than before."""


class MemoryTape:
    """Records the calls of memories, or returns other memories instead.

    Args:
        seed: `[2]` int32, for the evictions drawn in these calls; each call gets another one.
            Default: each layer draws its own.
        instead: what the memories return, in the order in which they are called, without acting.
        slots: how many slots the memories have, if not their own number.

    Attributes:
        calls: what happened, a `Call` each.
    """

    def __init__(
        self,
        seed: tf.Tensor | None = None,
        instead: Sequence[tuple[Any, Any]] | None = None,
        slots: int | None = None,
    ):
        self.seed, self.instead, self.slots = seed, instead, slots
        self.calls: list[Call] = []
        self._answered = 0

    def next_seed(self) -> tf.Tensor | None:
        """The seed of the next call."""
        if self.seed is None:
            return None
        return tf.cast(self.seed, tf.int32) + tf.constant([len(self.calls) * 7919, 0])

    def answer(self) -> tuple[Any, Any]:
        """What the current call of a memory returns, on a tape with `instead`."""
        instead = self.instead or ()
        if self._answered == len(instead):
            raise WrongCalls(
                f"expected {len(instead)} calls of memories, as many as there were when the "
                "model acted; got one more: a model must call its memories the same way each time"
            )
        self._answered += 1
        return instead[self._answered - 1]

    def __enter__(self) -> MemoryTape:
        self._before, _local.tape = active(), self
        return self

    def __exit__(self, *_) -> None:
        _local.tape = self._before


def active() -> MemoryTape | None:
    """The tape that is recording, if any."""
    return getattr(_local, "tape", None)
