"""One memory, many sizes: a policy works with any number of slots.

`errors_by_size` asks a subject for its result at several sizes, beside the rules and the
clairvoyant bound; `figures.budget_curve` draws it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lemn_tf.seeing.subjects import Subject

Curves = dict[str, list[tuple[int, float]]]
"""By name: pairs of a number of slots and the result with it, such as the error in percent."""


def errors_by_size(subjects: Mapping[str, Subject], slots: Sequence[int]) -> Curves:
    """What runs, and rules over the first run's reader, come to at several sizes of memory.

    Args:
        subjects: runs by name, all with the same data.
        slots: the sizes.
    """
    first = next(iter(subjects.values()))
    found: Curves = {
        name: [(size, run.score(None, size)["result"]) for size in slots]
        for name, run in subjects.items()
    }
    for rule in first.rules():
        found[rule] = [(size, first.score(rule, size)["result"]) for size in slots]
    return found


def from_rows(rows: Sequence[Mapping[str, Any]]) -> Curves:
    """Curves from what `lemn compare --json` prints."""
    found: Curves = {}
    for row in rows:
        found.setdefault(row["name"], []).append((row["slots"], row["error_rate"]))
    return {name: sorted(points) for name, points in found.items()}
