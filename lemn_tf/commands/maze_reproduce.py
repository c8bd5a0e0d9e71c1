"""`lemn reproduce maze`: every run of the paper's maze experiments, its scores, and the report."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lemn_tf.commands.common import whole_number, words
from lemn_tf.commands.maze import show_progress


def add_reproduce_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `lemn reproduce maze`."""
    parser.add_argument("--envs", type=words, default=["imaze", "single-indicator"])
    parser.add_argument("--readers", type=words, default=["mqn", "frmqn"])
    parser.add_argument("--policies", type=words, default=["st-lemn", "fifo"])
    parser.add_argument("--seeds", type=whole_number(1), default=3, help="runs of each I-Maze row")
    parser.add_argument(
        "--maze-seeds", type=whole_number(1), default=1, help="runs of each random maze row"
    )
    parser.add_argument(
        "--maps", metavar="F", help="maps to train on in addition to generated ones"
    )
    parser.add_argument("--frames", type=whole_number(1), help="another length of the trainings")
    parser.add_argument("--jobs", type=whole_number(1), default=2, help="runs at a time")
    parser.add_argument("--out", default="runs/maze", metavar="DIR", help="for the runs")
    parser.add_argument("--results", default="results", metavar="DIR", help="for the report")
    parser.add_argument(
        "--presets", metavar="DIR", help="also copy the best ST-LEMN agents there as presets"
    )
    parser.add_argument("--report-only", action="store_true", help="only write the report")
    parser.add_argument("--cell", help=argparse.SUPPRESS)


def run_reproduce(arguments: argparse.Namespace) -> int | None:
    """Runs what has no result yet, and writes the report."""
    from lemn_tf.experiments import maze_report, maze_table

    out, results = Path(arguments.out), Path(arguments.results)
    asked = ("envs", "readers", "policies", "seeds", "maze_seeds")
    cells = maze_table.plan(**{name: getattr(arguments, name) for name in asked})
    table = maze_table.MazeTable(out, results, arguments.maps, arguments.frames, show_progress)
    if arguments.cell:
        table.run_cell(next(cell for cell in cells if cell.name == arguments.cell))
        return None
    failed: list[str] = []
    if not arguments.report_only:
        todo = [cell for cell in cells if not table.is_done(cell)]
        failed = table.run(todo, table.process, arguments.jobs, len(cells))
    if failed:
        print(f"lemn: {len(failed)} runs failed: {', '.join(failed)}", file=sys.stderr)
    written = maze_report.write_report(results)
    if arguments.presets:
        written += maze_report.copy_presets(results, out, Path(arguments.presets))
    for path in written:
        print(f"wrote {path}")
    return 1 if failed else None
