"""Report: one HTML file that shows what runs remember; it needs no network and no server.

Headline numbers beside the rules and the clairvoyant bound, the budget curve, the learning curve,
an episode player with every drop explained, the worst mistakes, and how it was all made.
"""

from __future__ import annotations

import dataclasses
import html
import json
import os
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from lemn_tf.files import write_atomically
from lemn_tf.seeing import figures
from lemn_tf.seeing.budgets import budgets
from lemn_tf.seeing.player import played
from lemn_tf.seeing.regret import Verdict, judge
from lemn_tf.seeing.subjects import Subject
from lemn_tf.seeing.trace import Asked, Trace

EXAMINED = 100
"""Episodes whose drops are judged in hindsight."""
SHOWN = 4
"""Mistakes that are told, and episodes of each policy that can be played."""
Told = Callable[[str], None]


@dataclasses.dataclass
class Findings:
    """What a page is made of.

    Attributes:
        subjects: the runs by name, all with the same data.
        scores: error, recall and count, of each run and rule.
        curves: error by number of slots, of each run and rule.
        traces: of the first episodes, by run and rule.
        verdicts: the same judged in hindsight.
        histories: lines of the trainings, by run.
        made: how the page was made.
    """

    subjects: Mapping[str, Subject]
    scores: dict[str, dict[str, Any]]
    curves: dict[str, list[tuple[int, float]]]
    traces: dict[str, list[Trace]]
    verdicts: dict[str, Verdict]
    histories: Mapping[str, Sequence[Mapping[str, Any]]]
    made: Mapping[str, Any]

    @property
    def first(self) -> Subject:
        """The run whose reader the rules share."""
        return next(iter(self.subjects.values()))


def look(
    subjects: Mapping[str, Subject],
    slots: Sequence[int] | None = None,
    histories: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    made: Mapping[str, Any] | None = None,
    told: Told = lambda text: None,
) -> Findings:
    """Finds out all that a page shows.

    Args:
        subjects: runs by name, all with the same data.
        slots: sizes of memory for the budget curve; default some around the first run's own.
        histories: lines of the trainings, by run.
        made: how it was made, in names and values.
        told: is given lines to show.
    """
    first = next(iter(subjects.values()))
    own = first.slots
    sizes = sorted(set(slots or (max(1, own - 2), own, own + 2, 2 * own)))
    told(
        f"{len(subjects)} runs and {', '.join(first.rules())} with {', '.join(map(str, sizes))} slots"
    )
    scores = {name: one.score() for name, one in subjects.items()}
    scores |= {rule: first.score(rule, own) for rule in first.rules()}
    curves = budgets(subjects, sizes)
    some = range(min(first.count, EXAMINED))
    traces = {name: one.traces(some) for name, one in subjects.items()}
    if "fifo" in first.rules() and first.policy != "fifo":
        try:
            traces["fifo"] = first.traces(some, "fifo")
        except ValueError:
            told("the rules cannot be traced in this model")
    told(f"{sum(map(len, traces.values()))} episodes examined in hindsight")
    verdicts = {name: judge(several) for name, several in traces.items()}
    return Findings(subjects, scores, curves, traces, verdicts, histories or {}, made or {})


def write(found: Findings, out: str | os.PathLike) -> Path:
    """Writes the page, whole or not at all.

    Args:
        found: what `look` found out.
        out: the file, `.html`.
    """
    path = Path(out)
    if path.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"expected a file that ends in .html, got {str(out)!r}")
    worst = mistakes(found)
    shows, places = episodes(found, worst)
    parts = [
        _head(found),
        _headlines(found),
        _player(found),
        _curves(found),
        _regret(found),
        _mistakes(found, worst, places),
        _made(found),
    ]
    template = resources.files("lemn_tf.seeing").joinpath("page.html").read_text(encoding="utf-8")
    data = json.dumps(shows, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    page = template.replace("<!--CONTENT-->", "\n".join(parts)).replace("<!--DATA-->", data)
    write_atomically(path, page)
    return path


@dataclasses.dataclass(frozen=True)
class Mistake:
    """A wrong answer: the run, the number of the episode, the question, and its trace."""

    run: str
    episode: int
    question: Asked
    trace: Trace


def mistakes(found: Findings, count: int = SHOWN) -> list[Mistake]:
    """The worst mistakes of the runs, one from an episode: the least likely right answers."""
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
    """The episodes that can be played, and where each run's stand among them."""
    wanted = [one.episode for one in worst]
    few = min(map(len, found.traces.values()))
    wanted = list(dict.fromkeys([*wanted, *range(few)]))[: max(SHOWN, len(set(wanted)))]
    shows, places = [], {}
    for episode in sorted(wanted):
        for name, traces in found.traces.items():
            if episode < len(traces):
                places[name, episode] = len(shows)
                shows.append(played(traces[episode], f"episode {episode}, {name}"))
    return shows, places


# -- the parts of the page --------------------------------------------------------------------------


def _text(value: Any) -> str:
    return html.escape(str(value))


def _head(found: Findings) -> str:
    first, runs = found.first, ", ".join(found.subjects)
    return (
        "<header><h1>What it remembers</h1>"
        f"<p class='soft'>{_text(runs)} on {_text(first.data)}: a memory of {first.slots} slots, and "
        f"a policy ({_text(first.policy)}) that chooses what to forget before it knows what will be "
        "asked.</p></header>"
    )


def _headlines(found: Findings) -> str:
    first, name = found.first, next(iter(found.subjects))
    own, fifo = found.scores[name], found.scores.get("fifo")
    said = f"<div class='big'>{own['error']:.1f}%</div><p>{_text(first.measure)} of "
    said += f"{own['count']:,} {first.unit}"
    if fifo is not None and first.policy != "fifo":
        said += f"; with FIFO in its place {fifo['error']:.1f}%"
    said += f". {first.slots} slots.</p>"
    if own["recall"] is not None:
        said += f"<p class='soft small'>What was needed was in memory {own['recall']:.1f}% of the time.</p>"
    most = max(score["error"] for score in found.scores.values()) or 1.0
    rows = "".join(
        f"<div class='row'><span>{_text(one)}</span><div class='bar'><i style='width:"
        f"{100 * score['error'] / most:.1f}%{_fill(one)}'></i></div><span>{score['error']:.1f}%</span></div>"
        for one, score in sorted(found.scores.items(), key=lambda pair: -pair[1]["error"])
    )
    return (
        f"<section id='numbers' class='grid'><div class='card'>{said}</div>"
        f"<div class='card'><strong>{_text(first.measure.capitalize())}, side by side</strong>{rows}"
        f"</div></section>"
    )


VARIABLES = {
    "#000000": "currentColor",
    "#555555": "currentColor",
    "#0072b2": "var(--blue)",
    "#009e73": "var(--mint)",
    "#d55e00": "var(--rust)",
    "#cc0000": "var(--red)",
}
"""Colours of figures that change with the page's light or dark."""


def _fill(name: str) -> str:
    colour = figures.COLOURS.get(name)
    return f";background:{VARIABLES.get(colour, colour)}" if colour else ""


def _svg(figure: Any) -> str:
    text = figures.svg(figure)
    for colour, variable in VARIABLES.items():
        text = text.replace(colour, variable)
    return text


def _player(found: Findings) -> str:
    return (
        "<section id='player'><h2>Step through an episode</h2><div class='card'>"
        "<div class='controls'><select id='which' aria-label='episode'></select>"
        "<button id='back' aria-label='one back'>◀</button><button id='play'>▶ Play</button>"
        "<button id='next' aria-label='one further'>▶|</button>"
        "<span id='where' class='soft small'></span></div>"
        "<input type='range' id='seek' min='0' value='0' aria-label='position'>"
        "<div id='strip' aria-hidden='true'></div><div id='news' aria-live='polite'></div>"
        "<div id='slots' class='slots'></div>"
        "<p class='soft small'>Arrow keys step. In the strip, blue is in memory, small is gone, dotted "
        "lines are questions.</p></div></section>"
    )


def _curves(found: Findings) -> str:
    trained = {name: one.slots for name, one in found.subjects.items()}
    shown = [
        (
            _svg(figures.budget_curve(found.curves, found.first.measure, trained)),
            "The budget curve: the same policy served with other numbers of slots. A ring marks the "
            "number it was trained with.",
        )
    ]
    learning = figures.learning_curve(found.histories) if any(found.histories.values()) else None
    if learning is not None:
        shown.append((_svg(learning), "The learning curve: error on validation data."))
    cards = "".join(
        f"<figure class='card'>{picture}<figcaption>{_text(words)}</figcaption></figure>"
        for picture, words in shown
    )
    name, first = next(iter(found.traces.items()))
    lives = _svg(figures.life_lines(first[0])) if first else ""
    return (
        f"<section id='curves'><h2>Sizes and learning</h2><div class='grid'>{cards}</div>"
        f"<h2>Life-lines</h2><figure class='card'><div class='scroll'><div style='min-width:36rem'>{lives}"
        f"</div></div><figcaption>Episode 0 with {_text(name)}: each row is an item, from when it came to "
        "when it left.</figcaption></figure></section>"
    )


def _regret(found: Findings) -> str:
    head = ("", "drops", "needed later", "needed items found", "lost per question")
    rows = ""
    for name, verdict in found.verdicts.items():
        told = verdict.summary()
        recall = "-" if told["recall"] is None else f"{told['recall']:.1f}%"
        cells = (f"{told['drops']:,}", f"{told['regretted']:,}", recall, f"{told['cost']:.3f}")
        numbers = "".join(f"<td class='n'>{cell}</td>" for cell in cells)
        rows += f"<tr><td>{_text(name)}</td>{numbers}</tr>"
    heads = "".join(f"<th class='{'n' if one else ''}'>{one}</th>" for one in head)
    return (
        "<section id='regret'><h2>Regret</h2><div class='grid'><div class='card scroll'>"
        f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        "<p class='soft small'>Every drop judged in hindsight: whether a later question needed it, and "
        "how much probability of the right answer drops cost a question.</p></div>"
        f"<div class='card'><strong>How long items live, by kind</strong>{_lives(found)}</div></div>"
        "</section>"
    )


def _lives(found: Findings) -> str:
    means = {name: verdict.summary()["lives"] for name, verdict in found.verdicts.items()}
    most = max((age for lives in means.values() for age in lives.values()), default=1) or 1
    made = ""
    for name, lives in means.items():
        made += f"<p class='small soft' style='margin:.7rem 0 0'>{_text(name)}, items</p>"
        for kind, age in lives.items():
            made += (
                f"<div class='row'><span>{_text(kind)}</span><div class='bar'><i style='width:"
                f"{100 * age / most:.1f}%{_fill(name)}'></i></div><span>{age:.1f}</span></div>"
            )
    return made


def _mistakes(found: Findings, worst: Sequence[Mistake], places) -> str:
    if not worst:
        return "<section id='mistakes'><h2>Worst mistakes</h2><p>None among those examined.</p></section>"
    made = ""
    for one in worst:
        asked, lines = one.question, list(one.trace)
        why = "".join(f"<p class='small'>{_text(one.trace.why(i))}</p>" for i in asked.missed[:3])
        held = "" if asked.missed else "<p class='small soft'>All it needed was in memory.</p>"
        if not asked.support:
            held = ""
        made += (
            f"<div class='card mistake'><p class='soft small'>{_text(one.run)}, episode {one.episode}, "
            f"after {asked.at} items</p><p><strong>{_text(asked.text or 'the answer')}</strong> "
            f"<span class='wrong'>{_text(asked.answer)}</span>, expected {_text(asked.expected)}"
            f"{_chance(asked)}</p>{why}{held}<button data-show='{places[one.run, one.episode]}' "
            f"data-line='{lines.index(asked)}'>Watch it happen</button></div>"
        )
    return f"<section id='mistakes'><h2>Worst mistakes</h2>{made}</section>"


def _chance(asked: Asked) -> str:
    return "" if asked.probability is None else f" (probability {asked.probability:.2f})"


def _made(found: Findings) -> str:
    rows = "".join(
        f"<tr><td>{_text(name)}</td><td>{_text(value)}</td></tr>"
        for name, value in found.made.items()
    )
    return (
        "<section id='made'><h2>How it was made</h2><div class='card scroll'>"
        f"<table><tbody>{rows}</tbody></table></div></section>"
    )
