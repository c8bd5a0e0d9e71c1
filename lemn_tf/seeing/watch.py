"""Watch: reports everything that leaves a memory while it takes in items one by one.

    watch = Watch(remember, sink=FileSink("evicted.jsonl"), trace="trace.jsonl")
    state, decision = watch.observe(state, item, text="Mary took the milk.")
    watch.dry_run(state, item)               # what would go; the memory stays as it is

The layer itself has no code for this, so without a watch there is no cost.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf

from lemn_tf.layer import EpisodicMemory
from lemn_tf.memory import EMPTY, MemoryState
from lemn_tf.retention.decision import Decision
from lemn_tf.seeing.files import TraceWriter
from lemn_tf.seeing.recording import as_trace, numpy
from lemn_tf.tables import in_words

Nest = Any


@dataclass(frozen=True)
class Evicted:
    """An entry that left a memory.

    Attributes:
        id: its position in the stream.
        t: the item that came when it left; its own id if it was never stored.
        entry: the entry itself, a nest of arrays.
        keep: the probability with which the policy would have kept it.
        row: of the batch.
    """

    id: int
    t: int
    entry: Nest
    keep: float
    row: int = 0


class FileSink:
    """A sink that writes what leaves a memory to a file, one line of JSON each.

    Args:
        path: the file; lines are added to it.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = Path(path)

    def __call__(self, gone: Any) -> None:
        told = {name: value for name, value in vars(gone).items() if name != "entry"}
        if hasattr(gone, "entry"):
            told["text"] = in_words(gone.entry, longest=10_000)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(told, ensure_ascii=False) + "\n")


class Watch:
    """Takes in items as `EpisodicMemory.observe` does, and reports what leaves, and why.

    Args:
        memory: the layer.
        sink: called with everything that leaves, an `Evicted` each; `FileSink` writes a file.
        trace: a file for a line about every decision, see `lemn_tf.seeing.files`; of row 0.
    """

    def __init__(
        self,
        memory: EpisodicMemory,
        sink: Callable[[Evicted], None] | None = None,
        trace: str | os.PathLike | TraceWriter | None = None,
    ):
        self.memory, self.sink = memory, sink
        if isinstance(trace, str | os.PathLike):
            trace = TraceWriter(trace, {"policy": memory.policy.name, "slots": memory.slots})
        self.trace = trace

    def observe(
        self, state: MemoryState, item: Nest, text: str | None = None, **options: Any
    ) -> tuple[MemoryState, Decision]:
        """One item; see `EpisodicMemory.observe`, whose further options it takes.

        Args:
            state: the memory.
            item: nest of `[B, ...]`.
            text: the item of row 0 in words, for the trace; default made from the item.
        """
        after, decision = self.memory.observe(state, item, **options)
        if self.sink is not None:
            for gone in evicted(state, item, decision):
                self.sink(gone)
        if self.trace is not None:
            if text is None:
                text = in_words(tf.nest.map_structure(lambda leaf: leaf[0], item))
            one = tf.nest.map_structure(lambda leaf: leaf[:, None], decision)
            self.trace.write(next(as_trace(one, [text]).steps()))
        return after, decision

    def dry_run(self, state: MemoryState, item: Nest, **options: Any) -> list[Evicted]:
        """What would leave if these items came now; nothing changes, and no sink is called."""
        _, decision = self.memory.observe(state, item, **options)
        return evicted(state, item, decision)

    def close(self) -> None:
        """Ends the trace."""
        if self.trace is not None:
            self.trace.close()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def evicted(state: MemoryState, item: Nest, decision: Decision) -> list[Evicted]:
    """The entries that left at one step, in the rows where one did.

    Args:
        state: the memory before the item.
        item: nest of `[B, ...]`, what came.
        decision: what was decided, of `[B, ...]`.
    """
    told = numpy(decision)
    gone = []
    for row, left in enumerate(told.evicted.tolist()):
        if left == EMPTY:
            continue
        slot, last = int(told.slot[row]), told.ids.shape[1] - 1
        if slot == last:
            entry = tf.nest.map_structure(lambda leaf, row=row: _plain(leaf[row]), item)
        else:
            entry = tf.nest.map_structure(
                lambda leaf, row=row, slot=slot: _plain(leaf[row, slot]), state.entries
            )
        keep = float(told.keep[row, slot])
        gone.append(Evicted(left, int(told.ids[row, last]), entry, keep, row))
    return gone


def _plain(leaf: Any) -> Any:
    return leaf.numpy() if hasattr(leaf, "numpy") else leaf
