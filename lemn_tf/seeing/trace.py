"""Trace: what a memory did with one stream, decision by decision, and why.

A trace is a series of lines in stream order: a `Step` for every item, an `Asked` for every
question. It may be a list or a file (`lemn_tf.seeing.files`). Each query reads it from the
beginning, so a trace of any length needs little memory.

>>> steps = [
...     Step(0, (-1, 0), (1.0, 1.0), slot=0, text="Mary took the milk."),
...     Step(1, (0, 1), (0.9, 0.1), slot=1, free=True, runner_up=0, text="Mary is bored."),
... ]
>>> print(Trace(steps).why(1))
Mary is bored (1) was not stored at t=1, with keep probability 0.10; Mary took the milk (0) \
stayed with 0.90.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

EMPTY = -1
"""The id of an unused slot, and of no item; as in `lemn_tf.memory`."""


@dataclasses.dataclass(frozen=True)
class Step:
    """One decision.

    Attributes:
        t: the time, counted in items; also the id of the newcomer.
        ids: the candidates, the newcomer last; -1 for an unused slot.
        keep: the probability of keeping each of them.
        slot: which of them left.
        margin: how much likelier the likeliest was to leave than the runner-up.
        free: whether there was a choice.
        runner_up: id of the next likeliest to leave; -1 if there was no choice.
        text: the newcomer in words.
        picture: the newcomer as the URL of an image (`data:image/png;base64,...`).
        kind: what kind of item the newcomer is, if known.
        attention: of each candidate at the next question; None if none is known.
        episode: number of the stream, where a file holds several.
    """

    t: int
    ids: tuple[int, ...]
    keep: tuple[float, ...]
    slot: int
    margin: float = 0.0
    free: bool = False
    runner_up: int = EMPTY
    text: str = ""
    picture: str = ""
    kind: str = ""
    attention: tuple[float, ...] | None = None
    episode: int = 0

    @property
    def evicted(self) -> int:
        """The id that left; -1 if an unused slot was filled."""
        return self.ids[self.slot]

    @property
    def after(self) -> tuple[int, ...]:
        """What is in memory after it, in the order of the stream."""
        left = (*self.ids[: self.slot], *self.ids[self.slot + 1 :])
        return tuple(one for one in left if one != EMPTY)

    def keep_of(self, item: int) -> float:
        """The probability with which the policy would have kept a candidate."""
        return self.keep[self.ids.index(item)]


@dataclasses.dataclass(frozen=True)
class Asked:
    """One question, and what was answered.

    Attributes:
        number: of the question, from 1.
        at: how many items had been seen.
        ids: what was in memory, -1 for unused slots.
        attention: the reader's, on each of them; empty if it is not known.
        text, answer, expected: in words: the question, what was answered, what is right.
        right: whether the answer was right; None if it is not known.
        probability: the one given to the right answer, or the worth of the answer.
        support: ids of the items that the question needs, if the data says so.
        costs: by how much the probability of the right answer would be higher if a dropped item
            were still there, by id; only those that matter. None if that was not examined.
        episode: number of the stream, where a file holds several.
    """

    number: int
    at: int
    ids: tuple[int, ...]
    attention: tuple[float, ...] = ()
    text: str = ""
    answer: str = ""
    expected: str = ""
    right: bool | None = None
    probability: float | None = None
    support: tuple[int, ...] = ()
    costs: dict[int, float] | None = None
    episode: int = 0

    @property
    def missed(self) -> tuple[int, ...]:
        """What the question needed but memory did not hold: by the labels, or the dearest first."""
        if not self.support and self.costs:
            return tuple(sorted(self.costs, key=self.costs.__getitem__, reverse=True))
        return tuple(one for one in self.support if one not in self.ids)

    @property
    def examined(self) -> bool:
        """Whether it is known what the question needs, by labels or by hindsight."""
        return bool(self.support) or self.costs is not None

    def needs(self, item: int) -> bool:
        """Whether the question needs an item: by the labels, or by hindsight where there are none.

        In hindsight a dropped item was needed if the right answer would have been likelier by more
        than `MATTERS` had it stayed.
        """
        if self.support:
            return item in self.support
        return (self.costs or {}).get(item, 0.0) > MATTERS


MATTERS = 0.1
"""A dropped item was needed if it makes this much difference to the right answer's probability."""
Line = Step | Asked


class Trace:
    """What happened to one stream.

    Args:
        lines: steps and questions in stream order; anything one can iterate over repeatedly, such
            as a list or a `files.TraceFile`.
        about: what else is known: model, policy, slots, data.
    """

    def __init__(self, lines: Iterable[Line], about: dict[str, Any] | None = None):
        self.lines, self.about = lines, dict(about or {})

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines)

    def steps(self) -> Iterator[Step]:
        """The decisions."""
        return (line for line in self if isinstance(line, Step))

    def questions(self) -> Iterator[Asked]:
        """The questions."""
        return (line for line in self if isinstance(line, Asked))

    def step(self, t: int) -> Step:
        """The decision about the item that came at time t."""
        for step in self.steps():
            if step.t == t:
                return step
        raise ValueError(f"no item came at t={t} in this trace")

    def text(self, item: int) -> str:
        """An item in words."""
        return named(self.step(item).text)

    def why(self, item: int) -> str:
        """What happened to an item, and why, in a sentence.

        Args:
            item: its id, the number of the item in the stream from 0.
        """
        text, left = "", None
        known, later = True, False
        needed: list[str] = []
        for line in self:
            if isinstance(line, Step):
                if line.t == item:
                    text = named(line.text)
                if line.evicted == item and text:
                    left = line
            elif left is not None:
                known, later = known and line.examined, True
                if line.needs(item):
                    needed.append(f"{line.number}{_worth((line.costs or {}).get(item))}")
        if not text:
            raise ValueError(f"no item {item} in this trace: expected the number of one that came")
        if left is None:
            return f"{text} ({item}) is still in memory."
        told = f"{text} ({item}) {self._left(left)}"
        return f"{told}; {_needed(needed)}." if known and later else f"{told}."

    def _left(self, step: Step) -> str:
        """How an item left, as the end of a sentence."""
        came = step.t == step.evicted
        told = ("was not stored" if came else "left") + f" at t={step.t}"
        if not step.free:
            return f"{told} because nothing else could"
        told += f"{',' if came else ''} with keep probability {step.keep_of(step.evicted):.2f}"
        if step.runner_up == EMPTY:
            return told
        other, stayed = step.runner_up, step.keep_of(step.runner_up)
        where = "stayed" if came else "stayed in its place"
        return f"{told}; {self.text(other)} ({other}) {where} with {stayed:.2f}"


LONG = 60
"""Characters from which on a text is quoted and cut short inside a sentence."""


def named(text: str) -> str:
    """A text for use inside a sentence.

    Example:

    >>> named("Mary left."), named("Chloroplasts have their own DNA, " * 9)
    ('Mary left', '“Chloroplasts have their own DNA, Chloroplasts have their…”')
    """
    if len(text) <= LONG:
        return text.rstrip(" .") or "item"
    return f"“{text[:LONG].rpartition(' ')[0] or text[:LONG]}…”"


def _worth(cost: float | None) -> str:
    return "" if cost is None else f" (with it, the right answer is {cost:.2f} likelier)"


def _needed(questions: list[str]) -> str:
    if not questions:
        return "no question needed it later"
    if len(questions) == 1:
        return f"it would have been needed at question {questions[0]}"
    told = ", ".join(questions[:-1])
    return f"it would have been needed at questions {told} and {questions[-1]}"


def why(trace: Trace, item: int) -> str:
    """What happened to an item of a trace, and why; see `Trace.why`."""
    return trace.why(item)
