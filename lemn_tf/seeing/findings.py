"""Findings: everything a report shows, obtained from its subjects."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lemn_tf.seeing.player import played
from lemn_tf.seeing.regret import Verdict, judge
from lemn_tf.seeing.subjects import Subject
from lemn_tf.seeing.trace import Asked, Trace

SHOWN = 4
"""How many mistakes are shown, and how many episodes of each policy can be played."""
Told = Callable[[str], None]


@dataclasses.dataclass
class Findings:
    """The contents of a page.

    Attributes:
        subjects: the runs by name, all with the same data.
        scores: result, recall and count, of each run and rule.
        curves: result by number of slots, of each run and rule.
        traces: of the first episodes, by run and rule.
        verdicts: the same traces, judged in hindsight.
        histories: lines of the trainings, by run.
        made: how the page was made.
    """

    subjects: Mapping[str, Subject]
    scores: dict[str, dict[str, Any]]
    curves: dict[str, list[tuple[int, float]]]
    traces: dict[str, list[Trace]]
    verdicts: dict[str, Verdict]
    histories: Mapping[str, Sequence[Mapping[str, Any]]]
    made: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def first(self) -> Subject:
        """The run whose reader the rules share."""
        return next(iter(self.subjects.values()))


def look(
    subjects: Mapping[str, Subject],
    slots: Sequence[int] | None = None,
    histories: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    told: Told = lambda text: None,
) -> Findings:
    """Collects everything a page shows.

    Args:
        subjects: runs by name, all with the same data.
        slots: sizes of memory for the budget curve; default some around the first run's own.
        histories: lines of the trainings, by run.
        told: called with progress messages.
    """
    first = next(iter(subjects.values()))
    own = first.slots
    sizes = sorted(set(slots or (max(1, own - 2), own, own + 2, 2 * own)))
    several = f"{len(subjects)} runs" if len(subjects) > 1 else "the run"
    told(
        f"{several} and {', '.join(first.rules())}, memories of {', '.join(map(str, sizes))} slots"
    )
    rows: dict[str, tuple[Subject, str | None]] = {rule: (first, rule) for rule in first.rules()}
    rows = {name: (one, None) for name, one in subjects.items()} | rows
    scores, curves = {}, {}
    for name, (subject, rule) in rows.items():
        each = {size: subject.score(rule, size) for size in sorted({*sizes, subject.slots})}
        scores[name] = each[subject.slots]
        curves[name] = [(size, each[size]["result"]) for size in sizes]
    some = range(min(first.count, first.examined))
    traces = {name: one.traces(some) for name, one in subjects.items()}
    for rule in first.traced:
        if rule != first.policy:
            traces[rule] = first.traces(some, rule)
    told(f"{sum(map(len, traces.values()))} episodes traced")
    verdicts = {name: judge(several) for name, several in traces.items()}
    return Findings(subjects, scores, curves, traces, verdicts, histories or {})


@dataclasses.dataclass(frozen=True)
class Mistake:
    """A wrong answer: the run, the number of the episode, the question, and its trace."""

    run: str
    episode: int
    question: Asked
    trace: Trace


def mistakes(found: Findings, count: int = SHOWN) -> list[Mistake]:
    """The worst mistakes of the runs, one per episode: the least likely right answers."""
    made: list[Mistake] = []
    for run in found.subjects:
        for episode, trace in enumerate(found.traces[run]):
            wrong = [question for question in trace.questions() if question.right is False]
            if wrong:
                one = min(wrong, key=lambda question: question.probability or 0.0)
                made.append(Mistake(run, episode, one, trace))
    return sorted(made, key=lambda one: one.question.probability or 0.0)[:count]


def episodes(
    found: Findings, worst: Sequence[Mistake]
) -> tuple[list[dict[str, Any]], dict[tuple[str, int], int]]:
    """The episodes that can be played, and where each run's begin among them."""
    wanted = [one.episode for one in worst]
    few = min(map(len, found.traces.values()))
    wanted = list(dict.fromkeys([*wanted, *range(few)]))[: max(SHOWN, len(set(wanted)))]
    shows: list[dict[str, Any]] = []
    places: dict[tuple[str, int], int] = {}
    for episode in sorted(wanted):
        begun = len(shows)
        for name, traces in found.traces.items():
            if episode < len(traces):
                places[name, episode] = len(shows)
                show = played(traces[episode], f"episode {episode}, {name}")
                others = range(begun, len(shows))
                first = (n for n in others if shows[n]["items"] == show["items"])
                # policies that saw the same stream are shown beside each other
                shows.append({**show, "who": name, "stream": next(first, len(shows))})
    return shows, places
