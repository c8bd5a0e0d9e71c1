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
    runs = ", ".join(
        f"{name} ({one.policy}, {one.slots} slots)" for name, one in found.subjects.items()
    )
    return (
        "<header><h1>What it remembers</h1>"
        f"<p class='soft'>{_text(runs)} on {_text(found.first.data)}: a memory too small for all, "
        "and a policy that chooses what to forget before it knows what will be asked.</p></header>"
    )


TOLD = {
    "fifo": "fifo drops the oldest item",
    "lru": "lru drops what was read longest ago",
    "uniform": "uniform drops any item by chance",
    "distinct-salient": "distinct-salient keeps the most distinct names and numbers",
    "overlap": "overlap keeps what shares words with the question",
    "oracle": "the oracle knows what will be asked, and shows what is possible",
    "winnable": "winnable fails only where nobody could win",
}
"""What a reader should know about the rules beside a policy."""


def headlines(found: Findings) -> str:
    """The error of the first run, and all side by side."""
    first, name = found.first, next(iter(found.subjects))
    own = found.scores[name]
    facts = [(f"{own['count']:,}", first.unit), (f"{first.slots}", "slots")]
    if own["recall"] is not None:
        facts.append((f"{own['recall']:.1f}%", "of what was needed was in memory"))
    told = "".join(f"<div><dt>{_text(words)}</dt><dd>{n}</dd></div>" for n, words in facts)
    said = f"<div class='big'>{_result(found, name)}</div>"
    said += f"<p class='label'>{_text(first.measure)}</p>"
    results = {one: score["result"] for one, score in found.scores.items()}
    least = min(0.0, *results.values())
    most = (max(results.values()) - least) or 1.0
    rows = "".join(
        _bar(one, (results[one] - least) / most, _result(found, one), _fills(found)[one])
        for one in sorted(results, key=results.__getitem__, reverse=not first.rising)
    )
    rules = "; ".join(words for rule, words in TOLD.items() if rule in found.scores)
    legend = f"<p class='soft small'>With {first.slots} slots: {_text(rules)}.</p>" if rules else ""
    legend += f"<p class='soft small'>{_text(first.note)}</p>" if first.note else ""
    return (
        f"<section id='numbers' class='grid'><div class='card'>{said}<dl>{told}</dl></div>"
        f"<div class='card'><h3>{_text(first.measure.capitalize())}, side by side</h3>{rows}"
        f"{legend}</div></section>"
    )


def _result(found: Findings, name: str) -> str:
    """The result of a run or rule in words."""
    result = found.scores[name]["result"]
    return f"{result:.2f}" if found.first.rising else f"{result:.1f}%"


VARIABLES = {
    "#000000": "currentColor",
    "#555555": "currentColor",
    "#0072b2": "var(--blue)",
    "#009e73": "var(--mint)",
    "#d55e00": "var(--rust)",
    "#cc0000": "var(--red)",
}
"""Colours of figures that change with the page's light or dark."""


def _fills(found: Findings) -> dict[str, str]:
    """The colours of runs and rules, the same as in the figures."""
    colours = {name: colour for name, (colour, _) in figures.styles(found.scores).items()}
    return {name: VARIABLES.get(colour, colour) for name, colour in colours.items()}


def _bar(name: str, share: float, told: str, colour: str) -> str:
    """A name, a bar and a number."""
    bar = f"<i style='width:{100 * share:.1f}%;background:{colour}'></i>"
    bar = f"<div class='bar'>{bar}</div>"
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
        "<button id='back'>← Back</button><button id='play'>▶ Play</button>"
        "<button id='next'>Next →</button><span id='where' class='soft small'></span></div>"
        "<input type='range' id='seek' min='0' value='0' aria-label='position'>"
        "<div id='strip' aria-hidden='true'></div><div id='news' aria-live='polite'></div>"
        "<div id='slots' class='slots'></div><div id='beside' class='small'></div>"
        "<p class='soft small'>The strip is the whole stream: tall and blue is in memory, low is "
        "gone, dotted lines are questions. <b>Keep</b> is how likely the policy was to keep an "
        "item, <b>read</b> how much of the attention it got from a question; below is what the "
        "other policies hold at the same moment. The arrow keys step too.</p></div></section>"
    )


def curves(found: Findings) -> str:
    """Budget curve, in a picture and in numbers, and learning curve."""
    trained = {name: one.slots for name, one in found.subjects.items()}
    measure, percent = found.first.measure, not found.first.rising
    budget = figures.budget_curve(found.curves, measure, trained, percent)
    title = f"{measure.capitalize()}, %" if percent else measure.capitalize()
    cards = (
        f"<div class='card grid'><figure>{_svg(budget)}<figcaption>The same "
        "policies with other numbers of slots. A ring marks the number a policy comes with."
        f"</figcaption></figure><div><h3>{_text(title)}</h3>{_sizes(found)}</div></div>"
    )
    learning = figures.learning_curve(found.histories) if any(found.histories.values()) else None
    if learning is not None:
        lines = (line for history in found.histories.values() for line in history)
        phases = ", phase by phase" if any({"phase", "stage"} & {*one} for one in lines) else ""
        cards += (
            f"<figure class='card'>{_svg(learning)}<figcaption>How it learned: "
            f"{_text(found.first.learned)}{phases}.</figcaption></figure>"
        )
    title = "One memory, many sizes" if learning is None else "Sizes and learning"
    return f"<section id='curves'><h2>{title}</h2><div class='grid wide'>{cards}</div></section>"


def _sizes(found: Findings) -> str:
    sizes = sorted({slots for points in found.curves.values() for slots, _ in points})
    form = "{:.2f}" if found.first.rising else "{:.1f}"
    rows = {
        name: [form.format(dict(points)[slots]) if slots in dict(points) else "" for slots in sizes]
        for name, points in found.curves.items()
    }
    return _table(["slots", *map(str, sizes)], rows)


def _table(heads: Sequence[str], rows: Mapping[str, Sequence[str]]) -> str:
    """A table of numbers, with names in the first column."""
    top = "".join(f"<th{' class=n' if n else ''}>{_text(one)}</th>" for n, one in enumerate(heads))
    body = ""
    for name, cells in rows.items():
        numbers = "".join(f"<td class=n>{cell}</td>" for cell in cells)
        body += f"<tr><td>{_text(name)}</td>{numbers}</tr>"
    made = f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div class='scroll'>{made}</div>"


def lives(found: Findings) -> str:
    """The life-lines of an episode."""
    name, traces = next(iter(found.traces.items()))
    if not traces:
        return ""
    return (
        "<section id='lives'><h2>Life-lines</h2><figure class='card'><div class='scroll'>"
        f"{_svg(figures.life_lines(traces[0]))}</div><figcaption>Episode 0 with {_text(name)}: "
        "each row is an item, from when it came to when it left; dotted lines are questions."
        "</figcaption></figure></section>"
    )


def regret(found: Findings) -> str:
    """Drops judged in hindsight, and how long items live."""
    told = [verdict.summary() for verdict in found.verdicts.values()]

    def row(name: str, words: str) -> list[str]:
        return ["-" if one[name] is None else words.format(one[name]) for one in told]

    rows = {
        "items dropped": row("drops", "{:,}"),
        "of these needed later": row("regretted", "{:,}"),
        "needed items that were found": row("recall", "{:.1f}%"),
    }
    legend = "An item was needed if a later question asked for it; - is not known."
    if any(one["cost"] is not None for one in told):
        rows["probability lost a question"] = row("cost", "{:.3f}")
        legend += (
            " Probability lost is how much likelier the right answer would be had the one dropped "
            "item stayed that matters most to it."
        )
    bound = found.scores.get(found.first.bound)
    if bound is not None:
        above = [found.scores[name]["result"] - bound["result"] for name in found.verdicts]
        rows[f"points above {found.first.bound}"] = [f"{points:.1f}" for points in above]
        legend += f" The last row compares {found.first.measure} over all data."
    return (
        "<section id='regret'><h2>Regret</h2><div class='grid'><div class='card'>"
        f"<h3>Every drop, judged in hindsight</h3>{_table(['', *found.verdicts], rows)}"
        f"<p class='soft small'>{legend}</p></div>"
        f"<div class='card'><h3>How many steps items stay, by kind</h3>{_stays(found)}"
        "</div></div></section>"
    )


def _stays(found: Findings) -> str:
    """For each kind of item, a bar for each policy."""
    means = {name: verdict.summary()["lives"] for name, verdict in found.verdicts.items()}
    most = max((age for ages in means.values() for age in ages.values()), default=1) or 1
    made = ""
    for kind in sorted({kind for ages in means.values() for kind in ages}):
        made += f"<p class='kind'>{_text(kind)}</p>"
        for name, ages in means.items():
            age = ages.get(kind, 0.0)
            made += _bar(name, age / most, f"{age:.1f}", _fills(found)[name])
    return made


def mistakes(
    found: Findings, worst: Sequence[Mistake], places: Mapping[tuple[str, int], int]
) -> str:
    """The worst mistakes, each with a way into the player."""
    if not worst:
        none = "None among those examined."
        if found.first.rising:
            none = (
                "No step was punished in the episodes examined; nothing says whether a step is why "
                "a reward did not come."
            )
        return f"<section id='mistakes'><h2>Worst mistakes</h2><p>{none}</p></section>"
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
            f"<span class='wrong'>{_text(asked.answer)}</span>{_expected(asked)}</p>{why}{held}"
            f"<button data-show='{places[one.run, one.episode]}' data-line='{lines.index(asked)}'>"
            "Watch it happen</button></div>"
        )
    cards = f"<div class='grid wide'>{made}</div>"
    return f"<section id='mistakes'><h2>Worst mistakes</h2>{cards}</section>"


def _expected(asked: Asked) -> str:
    """What would have been right, and how likely it was given out to be, if that is known."""
    told = f", expected {_text(asked.expected)}" if asked.expected else ""
    return told if asked.probability is None else f"{told} (probability {asked.probability:.2f})"


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
