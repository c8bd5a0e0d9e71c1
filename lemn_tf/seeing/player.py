"""Data for the episode player of a report: a trace as compact JSON, with every drop explained."""

from __future__ import annotations

from typing import Any

from lemn_tf.seeing.trace import EMPTY, Asked, Step, Trace


def played(trace: Trace, name: str) -> dict[str, Any]:
    """An episode for the player.

    Args:
        trace: what happened.
        name: shown in the list of episodes.
    """
    steps = {step.t: step for step in trace.steps()}
    items = {
        t: {key: value for key, value in (("x", step.text), ("p", step.picture)) if value}
        for t, step in steps.items()
    }
    lines = [_step(line, trace) if isinstance(line, Step) else _question(line) for line in trace]
    return {"name": name, "items": items, "lines": lines}


def _step(step: Step, trace: Trace) -> dict[str, Any]:
    why = "" if step.evicted == EMPTY else _sentence(trace.why(step.evicted))
    return {
        "t": step.t,
        "ids": step.ids,
        "k": [round(share, 3) for share in step.keep],
        "s": step.slot,
        "e": step.evicted,
        "f": step.free,
        "w": why,
    }


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 3)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _question(asked: Asked) -> dict[str, Any]:
    return {
        "q": asked.number,
        "at": asked.at,
        "ids": asked.ids,
        "a": [round(weight, 3) for weight in asked.attention],
        "text": asked.text,
        "answer": asked.answer,
        "expected": asked.expected,
        "right": asked.right,
        "p": _rounded(asked.probability),
        "need": asked.support,
        "missed": [[item, _rounded((asked.costs or {}).get(item))] for item in asked.missed],
    }
