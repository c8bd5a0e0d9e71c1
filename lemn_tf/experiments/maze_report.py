"""The maze tables and the I-Maze figure, written from the results at hand."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from lemn_tf import runs
from lemn_tf.files import write_atomically
from lemn_tf.navigation.recipe import READERS

PAPER = {
    "single-indicator-mqn-fifo-5": (68.9, 60.4),
    "single-indicator-mqn-st-lemn-5": (73.2, 74.8),
    "single-indicator-frmqn-fifo-5": (84.3, 91.2),
    "single-indicator-frmqn-st-lemn-5": (88.5, 93.7),
}
"""The paper's success rates, Test and Large."""
SHIPPED = ("imaze-mqn-st-lemn-4",)
"""The rows of the table whose best agent ships. The agents for random mazes that ship were trained
on generated maps only, apart from the table."""
POLICIES = ("st-lemn", "im-lemn", "s-lemn", "fifo")
"""The policies of the paper's tables."""

Record = dict[str, Any]


def copy_presets(results: Path, out: Path, presets: Path) -> list[Path]:
    """Copies the agents that validated best, in half precision; returns what was written.

    Args:
        results: folder of the report.
        out: folder of the runs.
        presets: folder to copy to.
    """
    written = []
    for row in SHIPPED:
        found = [json.loads(path.read_text()) for path in (results / "maze").glob(f"{row}-*.json")]
        if not found:
            continue
        best = max(found, key=lambda one: (one["best_validation"], -one["seed"]))
        folder = out / f"{row}-seed{best['seed']}"
        if folder.exists():  # a result may have come from elsewhere, and its preset with it
            presets.mkdir(parents=True, exist_ok=True)
            written.append(presets / f"{row}.keras")
            runs.save_small(runs.load(folder), written[-1])
    return written


def write_report(results: Path) -> list[Path]:
    """Writes `imaze.md` with its figure and `maze.md`; returns what was written."""
    found = [json.loads(path.read_text()) for path in sorted((results / "maze").glob("*.json"))]
    if not found:
        raise ValueError(f"expected results in {results / 'maze'}, found none")
    imaze = [one for one in found if one["env"] == "imaze"]
    mazes = [one for one in found if one["env"] != "imaze"]
    content: dict[Path, bytes | str] = {}
    if imaze:
        content[results / "imaze.svg"] = plot(imaze)
        content[results / "imaze.md"] = imaze_table(imaze)
    if mazes:
        content[results / "maze.md"] = maze_table(mazes)
    for path, data in content.items():
        write_atomically(path, data)
    return list(content)


def imaze_table(found: list[Record]) -> str:
    """Success by length, one line for each run."""
    lengths = list(found[0]["scores"]["per_length"])
    lines = [
        "# I-Maze: success % by length of the corridor",
        "",
        "Memory of 4 frames unless said, trained on lengths 5, 7, 9; every start heading and both "
        "indicators, the likeliest action each time. Every seed is shown. The limit of steps grows "
        "with the length from 40 on (see `lemn_tf.mazes.imaze_rules`).",
        "",
        "![success by length](imaze.svg)",
        "",
        "| run | " + " | ".join(lengths) + " | frames | minutes |",
        "|---|" + "---:|" * (len(lengths) + 2),
    ]
    for one in found:
        rates = [f"{one['scores']['per_length'][n]['success_rate']:.0f}" for n in lengths]
        lines.append(f"| {_name(one)} | " + " | ".join(rates) + f" | {_cost(one)} |")
    return "\n".join([*lines, *_commands(found)]) + "\n"


def maze_table(found: list[Record]) -> str:
    """Success on generated test and large maps, one line for each run, with the paper's numbers."""
    lines = [
        "# Single Goal with Indicator: success %",
        "",
        "Memory of 5 frames, 200 generated maps of each kind that were never trained on, every "
        "start heading; actions are drawn with a fixed seed at the temperature shown. Trained with "
        "guidance, see docs/mazes.md, on the training maps of Oh et al. and generated ones, or on "
        "generated ones only. The paper's numbers are for the maps of Oh et al. (2016).",
        "",
        "| run | test | large | paper test | paper large | temperature | frames | minutes |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for one in found:
        split = one["scores"]["per_split"]
        paper = PAPER.get(one["row"], ("", ""))
        lines.append(
            f"| {_name(one)} | {split['test']['success_rate']:.1f}"
            f" | {split['large']['success_rate']:.1f} | {paper[0]} | {paper[1]}"
            f" | {one['scores']['temperature']:g} | {_cost(one)} |"
        )
    return "\n".join([*lines, *_commands(found)]) + "\n"


def _name(one: Record) -> str:
    return f"{_kind(one)}, seed {one['seed']}"


def _kind(one: Record) -> str:
    """What all seeds of a run share."""
    label = f", {one['label']}" if "label" in one else ""
    return f"{one['reader']} {one['policy']}{label}"


def _cost(one: Record) -> str:
    return f"{one['frames']:,} | {one['training_seconds'] / 60:.0f}"


def _commands(found: list[Record]) -> list[str]:
    """What to type to get each run again, how long all of them took, and what was not run."""
    hours = sum(one["training_seconds"] for one in found) / 3600
    lines = ["", f"Trainings: {len(found)}, {hours:.1f} hours of one core in all.", ""]
    known = {(one["reader"], one["policy"]) for one in found}
    rows = [(reader, policy) for reader in READERS for policy in POLICIES]
    missing = [" ".join(row) for row in rows if row not in known]
    lines += [f"Not run: {', '.join(missing)}.", ""] if missing else []
    for one in found:
        note = f"; {one['note']}" if "note" in one else ""
        lines.append(f"- `{one['command']}` (commit {one['commit']}{note})")
    return lines


def plot(found: list[Record]) -> bytes:
    """Success over length as an SVG, one curve for each row: the mean of its seeds."""
    import matplotlib
    from matplotlib.figure import Figure

    rows: dict[str, list[Record]] = {}
    for one in found:
        rows.setdefault(_kind(one), []).append(one["scores"]["per_length"])
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot(xlabel="length", ylabel="success %", ylim=(-4, 104))
    axes.grid(axis="y", alpha=0.4)
    for name, seeds in rows.items():
        means = [sum(one[n]["success_rate"] for one in seeds) / len(seeds) for n in seeds[0]]
        axes.plot(list(seeds[0]), means, marker=".", label=name)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "imaze", "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})  # the same bytes every time
    return buffer.getvalue()
