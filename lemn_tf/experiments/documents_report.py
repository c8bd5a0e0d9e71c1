"""`results/documents.md`: every keeper over one reader on the sets of documents at hand."""

from __future__ import annotations

import functools
import itertools
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from lemn_tf import runs
from lemn_tf.experiments import documents_folds as folds
from lemn_tf.experiments import documents_table as table
from lemn_tf.experiments.documents import Told
from lemn_tf.experiments.documents_scoring import interval
from lemn_tf.experiments.documents_words import OWN
from lemn_tf.experiments.minilm import Store
from lemn_tf.files import write_atomically

SIZES = (10, 0.2)
"""Sizes of memory: ten slots as in the paper, and a fifth of a document's slots."""
EPOCHS = 6
AWARE_EPOCHS = 2
"""Every question is a stream here, so there are thirty times as many."""
HEAD = """# Documents

Rules and learned policies over one reader, on the validation side of each set. A slot holds 20
words, and the whole document is read before any question is asked. In memory: the share of
questions for which a right answer lies within a slot that was kept. EM and F1 are by TriviaQA's
official rules, over all questions. The interval is a bootstrap over documents of how far the keeper
is ahead of the best rule in that table, by answers in memory.
"""


def reproduce(
    run: str | os.PathLike,
    folders: Sequence[str | os.PathLike],
    results: str | os.PathLike,
    seeds: int = 3,
    told: Told = lambda text: None,
    only: Sequence[str] | None = None,
    minilm: str | os.PathLike | None = None,
) -> Path:
    """Runs every cell that has no result yet, and writes the tables.

    What is learned comes last, one seed of everything after another, ST-LEMN first.

    Args:
        run: a trained model or preset, whose reader is used throughout.
        folders: sets, each with `qa/wikipedia-{train,dev}.json` and `evidence/`.
        results: folder for `documents.md`, and for the cells in `documents/`.
        seeds: trainings of each learned policy.
        told: called with lines to show.
        only: run only cells whose name has one of these in it; None for all.
        minilm: folder for MiniLM's vectors of slots, for policies that see them; None for none.
    """
    model, context = runs.load_reader(run), None if minilm is None else Store(minilm)
    cells = table.KeeperTable(Path(results) / "documents")
    seen = () if minilm is None else ("--minilm", "DIR")
    asked = ("reproduce", "documents", Path(run).name, *seen, "--sets")
    rows = {}
    for folder in folders:
        read = functools.partial(table.read_side, model, folder, context=context)
        rows[Path(folder).name] = _Rows(functools.cache(read), context is not None)
    plans: list[Callable[..., Plan]] = [_untrained]
    for seed, policy in itertools.product(range(seeds), reversed(table.LEARNED)):
        plans.append(functools.partial(_trained, seed=seed, policy=policy))
    for plan, (name, of_set) in itertools.product(plans, rows.items()):
        for label, make in plan(of_set):
            cell = f"{name}-{label}"
            if only is None or any(part in cell for part in only):
                command = (*asked, name, "--only", cell)
                cells.run_here([table.KeeperCell(cell, make, command)], told)
                write(results)
    return write(results)


Plan = Iterator[tuple[str, Callable[[], dict[str, Any]]]]
"""Names of cells, and how each is made."""


def _untrained(rows: _Rows) -> Plan:
    """The cells of a set for which nothing is trained."""
    part = functools.partial
    yield "whole", rows.whole
    yield "holding", rows.holding
    for rule in table.AWARE:
        yield f"10-aware-{rule}", part(rows.aware_rule, rule)
    for slots in SIZES:
        yield f"{slots:g}-bound", part(rows.bound, slots)
        for rule in table.RULES:
            yield f"{slots:g}-{rule}", part(rows.rule, rule, slots)
        yield f"{slots:g}-{table.OPENING}", part(rows.opening, slots)
        yield f"{slots:g}-folds", part(rows.folds, slots)
        for tag, view in rows.views.items():
            yield f"{slots:g}-{tag}linear", part(rows.begun, slots, True, view)
        yield f"{slots:g}-untrained", part(rows.begun, slots, False)


def _trained(rows: _Rows, seed: int, policy: str) -> Plan:
    """Those of a learned policy."""
    yield f"10-aware-{policy}-seed{seed}", functools.partial(rows.aware, policy, seed)
    for slots in SIZES:
        for tag, view in rows.views.items():
            make = functools.partial(rows.learned, policy, slots, seed, view)
            yield f"{slots:g}-{tag}{policy}-seed{seed}", make


class _Rows:
    """The rows of the tables of one set; its sides are read when they are first needed.

    Args:
        side: `table.read_side` of the set, from name, whether to ask the reader, and how many.
        context: whether the sides have MiniLM's vectors.
    """

    def __init__(self, side: Callable[..., table.Side], context: bool):
        self.side = side
        self.views: dict[str, tuple[str, ...]] = {"": OWN}
        if context:
            self.views["minilm-"] = (*OWN, "sentence")

    @property
    def dev(self) -> table.Side:
        return self.side("dev", True)

    def _scored(self, kept: table.Kept) -> dict[str, Any]:
        return table.summary(table.marks(self.dev, kept))

    def whole(self):
        return self._scored([np.arange(document.slots) for document in self.dev.documents])

    def holding(self):
        return table.summary(table.holding(self.dev, 10))

    def bound(self, slots):
        real, shuffled = table.bound(self.dev, slots), table.bound(self.dev, slots, 0)
        return {"in_memory": real, "shuffled": shuffled}

    def folds(self, slots):
        train = self.side("train", False)
        return {"shares": folds.tried(train.documents, train.parts, slots, table.RIDGE)}

    def rule(self, rule, slots):
        return self._scored(table.rule(self.dev, rule, slots))

    def opening(self, slots):
        return self._scored(table.opening(self.dev, slots))

    def begun(self, slots, linear, view=OWN):
        """As policies begin: by the regression alone, or ST-LEMN at random without it."""
        keras.utils.set_random_seed(0)
        policy, train = "s-lemn" if linear else "st-lemn", self.side("train", False)
        return self._scored(
            table.learned(train, self.dev, policy, slots, 0, view, epochs=0, linear=linear)
        )

    def learned(self, policy, slots, seed, view):
        keras.utils.set_random_seed(seed)
        train = self.side("train", False)
        return self._scored(
            table.learned(train, self.dev, policy, slots, seed, view, epochs=EPOCHS)
        )

    def aware_rule(self, rule):
        return self._scored(table.aware_rule(self.dev, 10, rule))

    def aware(self, policy, seed):
        keras.utils.set_random_seed(seed)
        train = self.side("train", True, table.AWARE_QUESTIONS)
        return self._scored(
            table.aware(
                train, self.dev, policy, 10, seed, epochs=AWARE_EPOCHS, rate=table.AWARE_RATE
            )
        )


def ahead(ours: Sequence[Any], theirs: Sequence[Any]) -> tuple[float, ...]:
    """How far one keeper is ahead of another by answers in memory, with a 95% interval.

    Args:
        ours, theirs: `documents` of their cells.

    Example:

    >>> ahead([[2, 0, 2], [2, 0, 1]], [[2, 0, 1], [2, 0, 0]])
    (50.0, 50.0, 50.0)
    """
    mine, other = np.array(ours), np.array(theirs)
    return interval(mine[:, 2] - other[:, 2], mine[:, 0])


def write(results: str | os.PathLike) -> Path:
    """Writes `documents.md` from the cells that are there."""
    folder = Path(results) / "documents"
    found = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
    if not found:
        raise ValueError(f"{folder}: expected results of cells, found none")
    path = Path(results) / "documents.md"
    sets = sorted({name.removesuffix("-whole") for name in found if name.endswith("-whole")})
    parts = [HEAD]
    for name in sets:
        parts.append(f"\n## {name}\n")
        parts.append(_whole(found, name))
        for slots in SIZES:
            parts.append(_table(found, name, slots))
    notes = folder / "notes.md"
    parts.append(notes.read_text() if notes.exists() else "")
    write_atomically(path, "\n".join(part.strip("\n") for part in parts if part) + "\n")
    return path


def _whole(found: dict[str, Any], name: str) -> str:
    whole, held = found[f"{name}-whole"], found.get(f"{name}-holding")
    text = (
        f"The reader over the whole document: EM {whole['exact']:.1f}, F1 {whole['f1']:.1f}, with "
        f"an answer within a slot for {whole['in_memory']:.1f}% of {whole['questions']:,} "
        f"questions in {len(whole['documents'])} documents.\n"
    )
    if held is None:
        return text
    return text + (
        f"From ten random slots, one of which holds an answer: EM {held['exact']:.1f}, "
        f"F1 {held['f1']:.1f}.\n"
    )


def _table(found: dict[str, Any], name: str, slots: float) -> str:
    tag = f"{name}-{slots:g}-"
    rows = {key.removeprefix(tag): value for key, value in found.items() if key.startswith(tag)}
    rules = [*table.RULES, table.OPENING]
    known = [key for key in rows if key in rules]
    if not known:
        return ""
    best = max(known, key=lambda key: rows[key]["in_memory"])
    size = f"{slots} slots" if slots >= 1 else f"{slots:.0%} of the slots"
    lines = [f"### {size}\n", f"| keeper | EM | F1 | in memory % | ahead of {best} |"]
    lines.append("|---|---|---|---|---|")
    order = [*rules, *sorted(key for key in rows if key not in rules)]
    for key in order:
        row = rows.get(key)
        if row is None or "documents" not in row:
            continue
        gap = "{:+.1f} [{:.1f}, {:.1f}]".format(*ahead(row["documents"], rows[best]["documents"]))
        told = f"{row['exact']:.1f} | {row['f1']:.1f} | {row['in_memory']:.1f}"
        lines.append(f"| {key} | {told} | {gap} |")
    if "bound" in rows:
        bound = rows["bound"]
        lines.append(
            f"\nChosen greedily, all questions known: {bound['in_memory']:.1f}% in memory; with "
            f"every question's slots shuffled within its document: {bound['shuffled']:.1f}%."
        )
    if "folds" in rows:
        shares = rows["folds"]["shares"]
        lines.append("\nRegressions by folds over the training documents, in memory %:\n")
        lines += [f"- {variant}: {share:.1f}" for variant, share in shares.items()]
    return "\n" + "\n".join(lines) + "\n"
