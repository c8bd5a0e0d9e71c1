"""`lemn reproduce maze`: every run of the paper's maze experiments, its scores, and the report."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path

from lemn_tf.commands.common import whole_number, words
from lemn_tf.experiments.cells import Table

PAPER = {
    "single-indicator-mqn-fifo-5": (68.9, 60.4),
    "single-indicator-mqn-st-lemn-5": (73.2, 74.8),
    "single-indicator-frmqn-fifo-5": (84.3, 91.2),
    "single-indicator-frmqn-st-lemn-5": (88.5, 93.7),
}
"""The paper's success rates, Test and Large."""
PRESETS = ("imaze-mqn-st-lemn-4", "single-indicator-frmqn-st-lemn-5")
"""The rows whose best agent is shipped."""
COLOURS = ("#c62828", "#3b6fb5", "#d98324", "#2e7d32", "#6a1b9a", "#00838f")


@dataclasses.dataclass(frozen=True)
class Cell:
    """One run: environment, reader, policy, seed."""

    env: str
    reader: str
    policy: str
    seed: int

    @property
    def slots(self) -> int:
        return 4 if self.env == "imaze" else 5

    @property
    def row(self) -> str:
        return f"{self.env}-{self.reader}-{self.policy}-{self.slots}"

    @property
    def name(self) -> str:
        return f"{self.row}-seed{self.seed}"


def add_reproduce_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `lemn reproduce maze`."""
    parser.add_argument("--envs", type=words, default=["imaze", "single-indicator"])
    parser.add_argument("--readers", type=words, default=["mqn", "frmqn"])
    parser.add_argument("--policies", type=words, default=["st-lemn", "fifo"])
    parser.add_argument("--seeds", type=whole_number(1), default=3, help="runs of each I-Maze row")
    parser.add_argument(
        "--maze-seeds", type=whole_number(1), default=1, help="runs of each random maze row"
    )
    parser.add_argument("--maps", metavar="F", help="maps to train on beside the generated ones")
    parser.add_argument("--frames", type=whole_number(1), help="another length of the trainings")
    parser.add_argument("--jobs", type=whole_number(1), default=2, help="runs at a time")
    parser.add_argument("--out", default="runs/maze", metavar="DIR", help="for the runs")
    parser.add_argument("--results", default="results", metavar="DIR", help="for the report")
    parser.add_argument(
        "--presets", metavar="DIR", help="also copy the best ST-LEMN agents there as presets"
    )
    parser.add_argument("--report-only", action="store_true", help="only write the report")
    parser.add_argument("--cell", help=argparse.SUPPRESS)


def plan(arguments: argparse.Namespace) -> list[Cell]:
    """The runs asked for, those of the I-Maze first."""
    known = {"envs": ("imaze", "single-indicator"), "readers": ("mqn", "frmqn")}
    for name, values in known.items():
        unknown = [one for one in getattr(arguments, name) if one not in values]
        if unknown:
            raise ValueError(f"expected {name} among {', '.join(values)}, got {unknown}")
    return [
        Cell(env, reader, policy, seed)
        for env in arguments.envs
        for seed in range(arguments.seeds if env == "imaze" else arguments.maze_seeds)
        for reader in arguments.readers
        for policy in arguments.policies
    ]


def train_command(cell: Cell, arguments: argparse.Namespace) -> list[str]:
    """The arguments of `lemn` that train a cell."""
    command = ["train", "maze", "--env", cell.env, "--reader", cell.reader]
    command += ["--policy", cell.policy, "--slots", str(cell.slots), "--seed", str(cell.seed)]
    if cell.env != "imaze" and arguments.maps:
        command += ["--maps", arguments.maps, "--generated", "1000"]
    if arguments.frames:
        command += ["--frames", str(arguments.frames)]
    return [*command, "--out", str(Path(arguments.out) / cell.name)]


def reproduce_command(cell: Cell, arguments: argparse.Namespace) -> str:
    """What to type to get this run again; files by their names."""
    seeds = "--seeds" if cell.env == "imaze" else "--maze-seeds"
    command = f"lemn reproduce maze --envs {cell.env} --readers {cell.reader}"
    command += f" --policies {cell.policy} {seeds} {cell.seed + 1}"
    if cell.env != "imaze" and arguments.maps:
        command += f" --maps {Path(arguments.maps).name}"
    return command + (f" --frames {arguments.frames}" if arguments.frames else "")


def run_reproduce(arguments: argparse.Namespace) -> int | None:
    """Runs what has no result yet, and writes the report."""
    cells, results = plan(arguments), Path(arguments.results)
    table = MazeTable(arguments)
    if arguments.cell:
        table.run_cell(next(cell for cell in cells if cell.name == arguments.cell))
        return None
    failed: list[str] = []
    if not arguments.report_only:
        given = [*sys.argv[1:]] if sys.argv[1:2] == ["reproduce"] else ["reproduce", "maze"]
        todo = [cell for cell in cells if not table.is_done(cell)]
        failed = table.run(
            todo, lambda cell: [*given, "--cell", cell.name], arguments.jobs, len(cells)
        )
    if failed:
        print(f"lemn: {len(failed)} runs failed: {', '.join(failed)}", file=sys.stderr)
    for path in write_report(results):
        print(f"wrote {path}")
    if arguments.presets:
        for path in copy_presets(results, Path(arguments.out), Path(arguments.presets)):
            print(f"wrote {path}")
    return 1 if failed else None


class MazeTable(Table[Cell]):
    """Trains and scores the runs asked for."""

    def __init__(self, arguments: argparse.Namespace):
        super().__init__(arguments.out, Path(arguments.results) / "maze")
        self.arguments = arguments

    def folder(self, cell: Cell) -> Path:
        return self.out / cell.name

    def train(self, cell: Cell, folder: Path) -> None:
        from lemn_tf.commands import maze

        parser = argparse.ArgumentParser()
        maze.add_train_arguments(parser)
        trained = maze.run_train(parser.parse_args(train_command(cell, self.arguments)[2:]))
        if trained:
            raise SystemExit(trained)

    def record(self, cell: Cell, folder: Path, history: list[dict]) -> dict:
        from lemn_tf.commands import maze

        keys = ("frames", "success", "val_success_rate")
        return {
            **dataclasses.asdict(cell),
            "row": cell.row,
            "scores": maze.score(maze.load(str(folder)), cell.env),
            "best_validation": history[-1]["best"],
            "frames": history[-1]["frames"],
            "curve": [[line[key] for key in keys] for line in history],
            "command": reproduce_command(cell, self.arguments),
        }

    def summary(self, record: dict) -> str:
        return f"success {record['scores']['success_rate']:.1f}%"


def copy_presets(results: Path, runs: Path, presets: Path) -> list[Path]:
    """Copies the agents that validated best, in half precision, and returns what was written."""
    from lemn_tf.navigation import navigator as maze

    written = []
    for row in PRESETS:
        found = [json.loads(path.read_text()) for path in (results / "maze").glob(f"{row}-*.json")]
        if not found:
            continue
        best = max(found, key=lambda one: (one["best_validation"], -one["seed"]))
        run = runs / f"{row}-seed{best['seed']}"
        if run.exists():  # a result may have come from elsewhere, and its preset with it
            presets.mkdir(parents=True, exist_ok=True)
            written.append(presets / f"{row}.npz")
            maze.load(run).save_to(written[-1], half=True)
    return written


# -- report ---------------------------------------------------------------------------------------


def write_report(results: Path) -> list[Path]:
    """Writes `imaze.md` with its plot and `maze.md` from the results at hand."""
    found = [json.loads(path.read_text()) for path in sorted((results / "maze").glob("*.json"))]
    if not found:
        raise ValueError(f"expected results in {results / 'maze'}, found none")
    written = []
    imaze = [one for one in found if one["env"] == "imaze"]
    if imaze:
        (results / "imaze.svg").write_text(plot(imaze))
        (results / "imaze.md").write_text(imaze_table(imaze))
        written += [results / "imaze.svg", results / "imaze.md"]
    mazes = [one for one in found if one["env"] != "imaze"]
    if mazes:
        (results / "maze.md").write_text(maze_table(mazes))
        written.append(results / "maze.md")
    return written


def imaze_table(found: list[dict]) -> str:
    """Success by length, a line a run."""
    lengths = list(found[0]["scores"]["per_length"])
    lines = [
        "# I-Maze: success % by length of the corridor",
        "",
        "Memory of 4 frames, trained on lengths 5, 7, 9; every start heading and both indicators, "
        "the likeliest action each time. Every seed is shown. The limit of steps grows with the "
        "length from 40 on (see `lemn_tf.mazes.imaze_rules`).",
        "",
        "![success by length](imaze.svg)",
        "",
        "| run | " + " | ".join(lengths) + " | frames | minutes |",
        "|---|" + "---:|" * (len(lengths) + 2),
    ]
    for one in found:
        rates = [f"{one['scores']['per_length'][n]['success_rate']:.0f}" for n in lengths]
        name = f"{one['reader']} {one['policy']}, seed {one['seed']}"
        cost = f"{one['frames']:,} | {one['training_seconds'] / 60:.0f}"
        lines.append(f"| {name} | " + " | ".join(rates) + f" | {cost} |")
    return "\n".join([*lines, *_commands(found)]) + "\n"


def maze_table(found: list[dict]) -> str:
    """Success on generated test and large maps, a line a run, the paper's numbers beside."""
    lines = [
        "# Single Goal with Indicator: success %",
        "",
        "Memory of 5 frames, 200 generated maps of each kind that were never trained on, every "
        "start heading; actions are drawn with a fixed seed at the temperature said. Trained with "
        "guidance, see docs/mazes.md. "
        "The paper's numbers are for the maps of Oh et al. (2016).",
        "",
        "| run | test | large | paper test | paper large | temperature | frames | minutes |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for one in found:
        split = one["scores"]["per_split"]
        paper = PAPER.get(one["row"], ("", ""))
        name = f"{one['reader']} {one['policy']}, seed {one['seed']}"
        lines.append(
            f"| {name} | {split['test']['success_rate']:.1f} | {split['large']['success_rate']:.1f}"
            f" | {paper[0]} | {paper[1]} | {one['scores']['temperature']:g}"
            f" | {one['frames']:,} | {one['training_seconds'] / 60:.0f} |"
        )
    return "\n".join([*lines, *_commands(found)]) + "\n"


def _commands(found: list[dict]) -> list[str]:
    """What to type to get each run again, and how long all of them took."""
    hours = sum(one["training_seconds"] for one in found) / 3600
    lines = ["", f"Trainings: {len(found)}, {hours:.1f} hours of one core in all.", ""]
    for one in found:
        note = f"; {one['note']}" if "note" in one else ""
        lines.append(f"- `{one['command']}` (commit {one['commit']}{note})")
    return lines


def plot(found: list[dict], width: int = 640, height: int = 360) -> str:
    """Success over length as an SVG, a curve a row: the mean of its seeds."""
    rows: dict[str, list[dict]] = {}
    for one in found:
        rows.setdefault(f"{one['reader']} {one['policy']}", []).append(one["scores"]["per_length"])
    lengths = list(next(iter(rows.values()))[0])
    left, top, right, bottom = 50, 20, width - 130, height - 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]

    def place(index, rate):
        x = left + (right - left) * index / max(len(lengths) - 1, 1)
        return x, bottom - (bottom - top) * rate / 100

    for rate in (0, 25, 50, 75, 100):
        _, y = place(0, rate)
        parts.append(f'<line x1="{left}" x2="{right}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{rate}%</text>')
    for index, length in enumerate(lengths):
        x, _ = place(index, 0)
        parts.append(f'<text x="{x}" y="{bottom + 16}" text-anchor="middle">{length}</text>')
    middle = (left + right) / 2
    parts.append(f'<text x="{middle}" y="{height - 6}" text-anchor="middle">length</text>')
    for number, (name, runs) in enumerate(rows.items()):
        colour = COLOURS[number % len(COLOURS)]
        means = [sum(run[n]["success_rate"] for run in runs) / len(runs) for n in lengths]
        points = " ".join("{:.1f},{:.1f}".format(*place(i, r)) for i, r in enumerate(means))
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        y = top + 16 * number
        parts.append(f'<text x="{right + 10}" y="{y + 4}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
