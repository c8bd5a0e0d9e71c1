"""The sections of a report's page, as HTML."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from lemn_tf.seeing import figures
from lemn_tf.seeing.findings import Findings, Mistake
from lemn_tf.seeing.trace import Asked


def _text(value: Any) -> str:
    return html.escape(str(value))


def head(found: Findings) -> str:
    """The title."""
    first, runs = found.first, ", ".join(found.subjects)
    return (
        "<header><h1>What it remembers</h1>"
        f"<p class='soft'>{_text(runs)} on {_text(first.data)}: a memory of {first.slots} slots, "
        f"and a policy ({_text(first.policy)}) that chooses what to forget before it knows what "
        "will be asked.</p></header>"
    )


def headlines(found: Findings) -> str:
    """The error of the first run, and all side by side."""
    first, name = found.first, next(iter(found.subjects))
    own, fifo = found.scores[name], found.scores.get("fifo")
    said = f"<div class='big'>{own['error']:.1f}%</div><p>{_text(first.measure)} of "
    said += f"{own['count']:,} {first.unit}"
    if fifo is not None and first.policy != "fifo":
        said += f"; with FIFO in its place {fifo['error']:.1f}%"
    said += f". {first.slots} slots.</p>"
    if own["recall"] is not None:
        held = f"What was needed was in memory {own['recall']:.1f}% of the time."
        said += f"<p class='soft small'>{held}</p>"
    most = max(score["error"] for score in found.scores.values()) or 1.0
    rows = "".join(
        _bar(one, score["error"] / most, f"{score['error']:.1f}%", one)
        for one, score in sorted(found.scores.items(), key=lambda pair: -pair[1]["error"])
    )
    title = f"{first.measure.capitalize()}, side by side"
    return (
        f"<section id='numbers' class='grid'><div class='card'>{said}</div>"
        f"<div class='card'><strong>{_text(title)}</strong>{rows}</div></section>"
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


def _bar(name: str, share: float, told: str, policy: str) -> str:
    """A name, a bar in the colour of a policy, and a number."""
    width = f"width:{100 * share:.1f}%{_fill(policy)}"
    bar = f"<div class='bar'><i style='{width}'></i></div>"
    return f"<div class='row'><span>{_text(name)}</span>{bar}<span>{told}</span></div>"


def _svg(figure: Any) -> str:
    text = figures.svg(figure, transparent=True)
    for colour, variable in VARIABLES.items():
        text = text.replace(colour, variable)
    return text


def player(found: Findings) -> str:
    """The episode player; the page's script fills it."""
    return (
        "<section id='player'><h2>Step through an episode</h2><div class='card'>"
        "<div class='controls'><select id='which' aria-label='episode'></select>"
        "<button id='back' aria-label='one back'>◀</button><button id='play'>▶ Play</button>"
        "<button id='next' aria-label='one further'>▶|</button>"
        "<span id='where' class='soft small'></span></div>"
        "<input type='range' id='seek' min='0' value='0' aria-label='position'>"
        "<div id='strip' aria-hidden='true'></div><div id='news' aria-live='polite'></div>"
        "<div id='slots' class='slots'></div>"
        "<p class='soft small'>Arrow keys step. In the strip, blue is in memory, small is gone, "
        "dotted lines are questions.</p></div></section>"
    )


def curves(found: Findings) -> str:
    """Budget curve, learning curve and life-lines."""
    trained = {name: one.slots for name, one in found.subjects.items()}
    shown = [
        (
            _svg(figures.budget_curve(found.curves, found.first.measure, trained)),
            "The budget curve: the same policy served with other numbers of slots. A ring marks "
            "the number it was trained with.",
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
        "<h2>Life-lines</h2><figure class='card'><div class='scroll'>"
        f"<div style='min-width:36rem'>{lives}</div></div><figcaption>Episode 0 with "
        f"{_text(name)}: each row is an item, from when it came to when it left."
        "</figcaption></figure></section>"
    )


def regret(found: Findings) -> str:
    """Drops judged in hindsight, and how long items live."""
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
        "<p class='soft small'>Every drop judged in hindsight: whether a later question needed it, "
        "and how much probability of the right answer drops cost a question.</p></div>"
        "<div class='card'><strong>How long items live, by kind</strong>"
        f"{_lives(found)}</div></div></section>"
    )


def _lives(found: Findings) -> str:
    means = {name: verdict.summary()["lives"] for name, verdict in found.verdicts.items()}
    most = max((age for lives in means.values() for age in lives.values()), default=1) or 1
    made = ""
    for name, lives in means.items():
        made += f"<p class='small soft' style='margin:.7rem 0 0'>{_text(name)}, items</p>"
        for kind, age in lives.items():
            made += _bar(kind, age / most, f"{age:.1f}", name)
    return made


def mistakes(
    found: Findings, worst: Sequence[Mistake], places: Mapping[tuple[str, int], int]
) -> str:
    """The worst mistakes, each with a way into the player."""
    if not worst:
        none = "<p>None among those examined.</p>"
        return f"<section id='mistakes'><h2>Worst mistakes</h2>{none}</section>"
    made = ""
    for one in worst:
        asked, lines = one.question, list(one.trace)
        why = "".join(f"<p class='small'>{_text(one.trace.why(i))}</p>" for i in asked.missed[:3])
        held = "" if asked.missed else "<p class='small soft'>All it needed was in memory.</p>"
        if not asked.support:
            held = ""
        question = _text(asked.text or "What is the answer?")
        made += (
            f"<div class='card mistake'><p class='soft small'>{_text(one.run)}, episode "
            f"{one.episode}, after {asked.at} items</p><p><strong>{question}</strong> "
            f"<span class='wrong'>{_text(asked.answer)}</span>, expected {_text(asked.expected)}"
            f"{_chance(asked)}</p>{why}{held}<button data-show='{places[one.run, one.episode]}' "
            f"data-line='{lines.index(asked)}'>Watch it happen</button></div>"
        )
    return f"<section id='mistakes'><h2>Worst mistakes</h2>{made}</section>"


def _chance(asked: Asked) -> str:
    return "" if asked.probability is None else f" (probability {asked.probability:.2f})"


def made(found: Findings) -> str:
    """How the page was made."""
    rows = "".join(
        f"<tr><td>{_text(name)}</td><td>{_text(value)}</td></tr>"
        for name, value in found.made.items()
    )
    return (
        "<section id='made'><h2>How it was made</h2><div class='card scroll'>"
        f"<table><tbody>{rows}</tbody></table></div></section>"
    )
