"""What a live memory shows people: entries, what happened to a sentence, and replies.

Plain values without TensorFlow: a client of a served memory uses them too.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """One thing in memory.

    Attributes:
        id: position in the stream, from 0.
        text: the sentence.
        keep: probability, at the last observation, that the policy keeps it; None if not known.
        pinned: whether it may never be dropped.
    """

    id: int
    text: str
    keep: float | None = None
    pinned: bool = False


@dataclass(frozen=True)
class Observation:
    """What happened to one sentence.

    Attributes:
        entry: the sentence itself.
        dropped: what left the memory for it, perhaps the sentence itself; None if nothing did.
    """

    entry: Entry
    dropped: Entry | None

    @property
    def stored(self) -> bool:
        """Whether the sentence is in memory now."""
        return self.dropped is None or self.dropped.id != self.entry.id


@dataclass(frozen=True)
class Reply:
    """What was answered, and from what.

    Attributes:
        text: the answer.
        probability: that the model gives it.
        evidence: the entries with the attention on each, most first.
        source: the entry that the answer was copied from; None if it is a word of its own.
    """

    text: str
    probability: float
    evidence: tuple[tuple[Entry, float], ...]
    source: Entry | None = None
