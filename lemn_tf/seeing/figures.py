"""Figures for notebooks, boards and pages: life-lines, budget curves, learning curves.

All are drawn by Matplotlib, in colours that colour-blind people can distinguish (Okabe and Ito's),
with a different marker for each line. Functions return figures, and neither show nor save them.
"""

from __future__ import annotations

import base64
import io
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PatchCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from PIL import Image

from lemn_tf.entries import Entry
from lemn_tf.files import write_atomically
from lemn_tf.memory import MemoryState
from lemn_tf.retention.decision import Decision
from lemn_tf.seeing.recording import as_trace
from lemn_tf.seeing.trace import EMPTY, Asked, Trace
from lemn_tf.tables import Table

COLOURS = {
    "fifo": "#e69f00",
    "lru": "#cc79a7",
    "oracle": "#009e73",
    "winnable": "#009e73",
    "lifo": "#999999",
    "uniform": "#7f7f00",
}
"""The rules' colours and markers; runs take the others in turn."""
RUNS = ("#0072b2", "#555555", "#d55e00", "#56b4e9", "#f0e442")
MARKERS = "osD^vPX*"
LONGEST = 44
"""How many characters of an item are shown beside its life-line."""


def life_lines(
    decisions: Trace | Decision,
    texts: Sequence[str] = (),
    most: int = 60,
    row: int = 0,
) -> Figure:
    """The life of every item: rows are items, columns time, the colour is the keep probability.

    A line begins when an item comes and ends with a cross when it leaves. Dotted lines are
    questions; a ring marks an item that a question needed and found, a red one an item it missed.

    Args:
        decisions: a `Trace`, or the decisions about streams that `EpisodicMemory` returned.
        texts: the items in words; a trace knows them.
        most: rows to draw; of longer streams, the items that stayed longest.
        row: of a batch of decisions.
    """
    trace = decisions if isinstance(decisions, Trace) else as_trace(decisions, texts, row)
    steps, asked = list(trace.steps()), list(trace.questions())
    if not steps:
        raise ValueError("expected a trace with at least one decision, got none")
    began, ended = steps[0].t, steps[-1].t + 1
    left = {step.evicted: step.t for step in steps if step.evicted != EMPTY}
    lives = {step.t: left.get(step.t, ended) - step.t for step in steps}
    needed = {item for question in asked for item in question.support}
    chosen = sorted(lives, key=lambda item: (item not in needed, -lives[item], item))[:most]
    place = {item: n for n, item in enumerate(sorted(chosen))}
    figure = Figure(figsize=(9, 1.2 + 0.2 * len(place)), layout="constrained")
    axes = figure.add_subplot()
    bars, shares = [], []
    for step in steps:
        for item, keep in zip(step.ids, step.keep, strict=True):
            if item in place and not (item == step.t == step.evicted):
                bars.append(Rectangle((step.t, place[item] - 0.36), 1, 0.72))
                shares.append(keep)
    colours = PatchCollection(bars, cmap="viridis", norm=Normalize(0, 1), linewidth=0)
    colours.set_array(np.array(shares))
    axes.add_collection(colours)
    gone = [(t + 0.5, place[item]) for item, t in left.items() if item in place]
    if gone:
        axes.plot(*zip(*gone, strict=True), "x", color="#d55e00", ms=5, label="left")
    _mark_questions(axes, asked, place, len(steps))
    axes.set(xlim=(began, ended + 0.4), ylim=(len(place) - 0.5, -0.5), xlabel="items seen")
    named = {step.t: step.text or str(step.t) for step in steps}
    axes.set_yticks(range(len(place)), [_label(named[i], i) for i in place], fontsize=7)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.spines[["top", "right"]].set_visible(False)
    bar = figure.colorbar(ScalarMappable(Normalize(0, 1), "viridis"), ax=axes, pad=0.01, aspect=40)
    bar.set_label("probability of being kept")
    if gone or asked:
        figure.legend(loc="outside upper right", ncols=4, fontsize=8, frameon=False)
    return figure


def _label(text: str, item: int) -> str:
    """An item beside its life-line: its text and its number, unless that is in it already."""
    return text if text in (str(item), f"view {item}") else f"{_short(text)} ({item})"


def _mark_questions(
    axes: Any, asked: Sequence[Asked], place: Mapping[int, int], steps: int
) -> None:
    found: list[tuple[int, int]] = []
    missed: list[tuple[int, int]] = []
    each_step = len(asked) > 0.5 * steps  # an agent asks at every step where to go
    for question in asked:
        if question.support or not each_step:
            axes.axvline(question.at, color="#555555", lw=0.8, ls=":")
        for item in question.support:
            if item in place:
                (found if item in question.ids else missed).append((question.at, place[item]))
    ring: dict[str, Any] = {"mfc": "none", "ms": 8, "mew": 1.6}
    if found:
        axes.plot(*zip(*found, strict=True), "o", mec="#009e73", label="needed, and there", **ring)
    if missed:
        axes.plot(*zip(*missed, strict=True), "o", mec="#cc0000", label="needed, and gone", **ring)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def memory_table(held: MemoryState | Sequence[Entry], row: int = 0) -> Table:
    """What a memory holds, as a table that a notebook shows.

    Args:
        held: a `MemoryState`, or the entries of `LiveReader.memory()`.
        row: of a batch.
    """
    if isinstance(held, MemoryState):
        return held.table(row)
    rows = [(one.id, one.text, one.keep, "pinned" if one.pinned else "") for one in held]
    return Table(("id", "entry", "keep", ""), rows)


def budget_curve(
    curves: Mapping[str, Sequence[tuple[int, float]]],
    measure: str = "wrong answers",
    trained: Mapping[str, int] | None = None,
    percent: bool = True,
) -> Figure:
    """The error, or another result, against the number of slots, a line for each policy.

    Args:
        curves: by name, pairs of slots and result (`seeing.errors_by_size`).
        measure: what the result is.
        trained: the number of slots each run comes with; it is marked.
        percent: whether it is an error in percent; otherwise any number, such as a return.
    """
    figure = Figure(figsize=(5.2, 3.5), layout="constrained")
    axes = figure.add_subplot()
    for name, (colour, marker) in styles(curves).items():
        points = sorted(curves[name])
        bound = name in ("oracle", "winnable")
        line: dict[str, Any] = {"color": colour, "ls": "--" if bound else "-", "lw": 2, "ms": 6}
        axes.plot(*zip(*points, strict=True), marker=marker, label=name, **line)
        own = dict(points).get((trained or {}).get(name, 0))
        if own is not None:
            axes.plot((trained or {})[name], own, "o", ms=13, mfc="none", mec=colour, mew=1.5)
    axes.set(xlabel="slots", ylabel=f"{measure}, %" if percent else measure)
    if percent:
        axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    _tidy(figure, axes)
    return figure


def learning_curve(histories: Mapping[str, Sequence[Mapping[str, Any]]]) -> Figure | None:
    """The error, or return, along a training, its phases marked.

    It is that in validation; a training over documents, which has none, shows how it went itself.

    Args:
        histories: by name, the lines of `history.jsonl`.

    Returns:
        The figure; None if no history says how it went.
    """
    figure = Figure(figsize=(5.2, 3.5), layout="constrained")
    axes, unit, measure = figure.add_subplot(), "", ""
    for name, (colour, marker) in styles(histories).items():
        points, phases, *told = along(histories[name])
        if not points:
            continue
        unit, measure = told
        line: dict[str, Any] = {"color": colour, "lw": 2, "ms": 4}
        axes.plot(*zip(*points, strict=True), marker=marker, label=name, **line)
        if sum(map(bool, histories.values())) == 1:
            for at, phase in phases:
                axes.axvline(at, color="#999999", lw=0.8, ls=":")
                where = (at, 1.02)  # above the curve, from where the phase begins
                how: dict[str, Any] = {"rotation": 30, "fontsize": 8, "va": "bottom", "ha": "left"}
                axes.annotate(phase, where, xycoords=("data", "axes fraction"), **how)
    if not unit:
        return None
    axes.set(xlabel=unit, ylabel=measure)
    if measure != RETURN:
        axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    _tidy(figure, axes)
    return figure


ERROR = "validation error, %"
RETURN = "validation return"
MISSED = "training error, %"


def along(history: Sequence[Mapping[str, Any]]):
    """A history as points over the whole training, starts of phases, its unit and measure."""
    if any("stage" in line for line in history):
        return _stages(history)
    points: list[tuple[float, float]] = []
    phases: list[tuple[float, str]] = []
    done = last = 0.0
    for line in history:
        if line.get("phase") is not None and (not phases or phases[-1][1] != line["phase"]):
            done += last
            phases.append((done, line["phase"]))
        last = line.get("episodes", 0)
        if "val_success_rate" in line:
            points.append((line["frames"], 100 - line["val_success_rate"]))
        elif "val_accuracy" in line:
            points.append((done + last, 100 * (1 - line["val_accuracy"])))
        elif "val_return" in line:
            points.append((line["frames"], line["val_return"]))
    frames = any("frames" in line for line in history)
    returns = any("val_return" in line and "val_success_rate" not in line for line in history)
    unit = "frames seen" if frames else "episodes seen"
    return points, phases, unit, RETURN if returns else ERROR


RIGHT = ("right", "answer_in_memory", "accuracy")
"""What stages of a training over documents call the share that they got right."""


def _stages(history: Sequence[Mapping[str, Any]]):
    """As `along`, for a training over documents.

    There is a gap between stages, as their errors are of different things.
    """
    points: list[tuple[float, float]] = []
    stages: list[tuple[float, str]] = []
    done = last = 0.0
    unit = "updates" if all("update" in line for line in history) else "epochs"
    for line in history:
        if not stages or stages[-1][1] != line["stage"]:
            done += last
            stages.append((done, line["stage"]))
            if points:
                points.append((done, math.nan))
        last = line["update"] if unit == "updates" else line.get("epoch", 0) + 1
        points += [(done + last, 100 * (1 - line[name])) for name in RIGHT if name in line][:1]
    return points, stages, unit, MISSED


def styles(names: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """A colour and a marker for each name: rules have their own, runs take them in turn."""
    runs = [name for name in names if name not in COLOURS]
    own = {name: RUNS[n % len(RUNS)] for n, name in enumerate(runs)}
    return {
        name: (COLOURS.get(name) or own[name], MARKERS[n % len(MARKERS)])
        for n, name in enumerate(names)
    }


def _tidy(figure: Figure, axes: Any) -> None:
    """A light grid, and a legend above, where it hides no line."""
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    lines = [line for line in axes.lines if line.get_label()[0] != "_"]
    figure.legend(handles=lines, loc="outside upper left", ncols=2, frameon=False, fontsize=9)


def png(figure: Figure, dpi: int = 110) -> bytes:
    """A figure as the bytes of a PNG."""
    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_figure(buffer, format="png", dpi=dpi)
    return buffer.getvalue()


def data_url(frame: np.ndarray) -> str:
    """A small picture `[H, W, 3]` as the address of an image, for a page."""
    buffer = io.BytesIO()
    Image.fromarray(frame.astype(np.uint8)).quantize(32).save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def write(figure: Figure, path: str | os.PathLike) -> None:
    """Writes a figure to an `.svg` or `.png`, whole or not at all."""
    ending = Path(path).suffix.lower()
    if ending not in (".svg", ".png"):
        raise ValueError(f"expected a figure's file to end in .svg or .png, got {str(path)!r}")
    write_atomically(path, svg(figure) if ending == ".svg" else png(figure))


def svg(figure: Figure, transparent: bool = False) -> str:
    """A figure as reproducible SVG, with text as text and a transparent background."""
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "lemn", "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", transparent=transparent, metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
