"""Regret: every drop judged in hindsight. Was the item needed later, and what did its loss cost?

Uses labels where the data has them; otherwise what the reader would have answered had the item
stayed (`Asked.costs`). It works on traces, so on anything that can be traced.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterable
from typing import Any

from lemn_tf.seeing.trace import EMPTY, Asked, Step, Trace
from lemn_tf.tables import Table


@dataclasses.dataclass(frozen=True)
class Drop:
    """An item that left, judged in hindsight.

    Attributes:
        episode: number of the stream.
        item: id of the item.
        t: when it left.
        text, kind: of the item.
        keep: the probability with which the policy would have kept it.
        needed: numbers of the questions that needed it afterwards.
        wrong: how many of these were answered wrong.
        cost: how much answer probability its loss cost, over all questions.
    """

    episode: int
    item: int
    t: int
    text: str
    kind: str
    keep: float
    needed: tuple[int, ...]
    wrong: int
    cost: float

    @property
    def age(self) -> int:
        """How long it had been in memory; 0 if it was never stored."""
        return self.t - self.item


@dataclasses.dataclass(frozen=True)
class Verdict:
    """A policy judged in hindsight.

    Attributes:
        drops: every drop.
        lives: how long items stayed, by kind; for an item still there at the end, until then.
        needed, found: how many items questions needed, and how many of them were in memory.
        questions, wrong: how many were asked, and answered wrong.
        examined: how many of them were examined in hindsight.
        lost: how much answer probability they lost together, each by the dropped item that would
            have helped it most.
        known: whether it is known what questions needed, by labels or by hindsight.
    """

    drops: tuple[Drop, ...]
    lives: dict[str, tuple[int, ...]]
    needed: int
    found: int
    questions: int
    wrong: int
    examined: int
    lost: float
    known: bool

    @property
    def recall(self) -> float | None:
        """Percent of the needed items that were in memory; None if that is not known."""
        return round(100 * self.found / self.needed, 2) if self.needed else None

    @property
    def regretted(self) -> tuple[Drop, ...]:
        """The drops that were needed later, the most costly first."""
        return tuple(sorted((d for d in self.drops if d.needed), key=lambda d: -d.cost))

    @property
    def cost(self) -> float | None:
        """Answer probability lost to drops, for each question; None if none was examined."""
        return round(self.lost / self.examined, 4) if self.examined else None

    def summary(self) -> dict[str, Any]:
        """The numbers: `drops`, `regretted`, `recall`, `cost`, `error`, and the mean `lives`."""
        means = {kind: round(statistics.fmean(ages), 1) for kind, ages in self.lives.items()}
        return {
            "drops": len(self.drops),
            "regretted": len(self.regretted) if self.known else None,
            "recall": self.recall,
            "cost": self.cost,
            "error": round(100 * self.wrong / max(self.questions, 1), 3),
            "lives": means,
        }

    def table(self, count: int = 10) -> Table:
        """The drops that were regretted most."""
        rows = [
            (d.episode, d.item, d.text, d.t, d.keep, ", ".join(map(str, d.needed)), d.cost)
            for d in self.regretted[:count]
        ]
        return Table(("episode", "id", "item", "left at", "keep", "needed at", "cost"), rows)

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def judge(traces: Iterable[Trace]) -> Verdict:
    """Judges every drop of some traces.

    Args:
        traces: one for each stream, of one policy.

    Example:

    >>> steps = [Step(0, (-1, 0), (0.0, 1.0), 0), Step(1, (0, 1), (0.1, 0.9), 0, free=True)]
    >>> asked = Asked(1, 2, (1,), right=False, support=(0,), costs={0: 0.5})
    >>> judge([Trace([*steps, asked])]).summary()["regretted"]
    1
    """
    drops: list[Drop] = []
    lives: dict[str, list[int]] = {}
    needed = found = questions = wrong = examined = 0
    lost, known = 0.0, False
    for episode, trace in enumerate(traces):
        steps, asked = list(trace.steps()), list(trace.questions())
        drops += _drops(episode, steps, asked)
        for kind, age in _ages(steps, asked):
            lives.setdefault(kind, []).append(age)
        needed += sum(len(question.support) for question in asked)
        found += sum(one in question.ids for question in asked for one in question.support)
        questions += sum(question.right is not None for question in asked)
        wrong += sum(question.right is False for question in asked)
        examined += sum(question.costs is not None for question in asked)
        lost += sum(max((question.costs or {}).values(), default=0.0) for question in asked)
        known = known or any(question.examined for question in asked)
    told = {kind: tuple(ages) for kind, ages in sorted(lives.items())}
    return Verdict(tuple(drops), told, needed, found, questions, wrong, examined, lost, known)


def _drops(episode: int, steps: list[Step], asked: list[Asked]) -> list[Drop]:
    came = {step.t: step for step in steps}
    made = []
    for step in steps:
        item = step.evicted
        if item == EMPTY or item not in came:
            continue
        later = [question for question in asked if question.at > step.t and question.needs(item)]
        made.append(
            Drop(
                episode=episode,
                item=item,
                t=step.t,
                text=came[item].text,
                kind=came[item].kind,
                keep=step.keep_of(item),
                needed=tuple(question.number for question in later),
                wrong=sum(question.right is False for question in later),
                cost=sum((q.costs or {}).get(item, 0.0) for q in asked if q.at > step.t),
            )
        )
    return made


def _ages(steps: list[Step], asked: list[Asked]) -> list[tuple[str, int]]:
    """Each item's kind and how long it stayed; without a kind, whether it was needed, if known."""
    left = {step.evicted: step.t for step in steps}
    end = steps[-1].t + 1 if steps else 0
    needed = {one for question in asked for one in question.support}

    def kind(step: Step) -> str:
        if step.kind or not needed:
            return step.kind or "any item"
        return "needed" if step.t in needed else "never needed"

    return [(kind(step), left.get(step.t, end) - step.t) for step in steps]
