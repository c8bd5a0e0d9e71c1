"""`lemn reproduce maze`: every run of the paper's maze experiments, its scores, and the report."""

from __future__ import annotations

import argparse
from pathlib import Path

from lemn_tf.commands.common import add_table_arguments, run_table, there, whole_number, words
from lemn_tf.commands.maze import show_progress
from lemn_tf.experiments.maze_cells import MazeCell, plan
from lemn_tf.navigation.recipe import READERS, SLOTS


def add_reproduce_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `lemn reproduce maze`."""
    parser.add_argument("--envs", type=words, default=list(SLOTS))
    parser.add_argument("--readers", type=words, default=list(READERS))
    parser.add_argument("--policies", type=words, default=["st-lemn", "fifo"])
    parser.add_argument("--seeds", type=whole_number(1), default=3, help="runs of each I-Maze row")
    parser.add_argument(
        "--maze-seeds", type=whole_number(1), default=1, help="runs of each random maze row"
    )
    parser.add_argument(
        "--maps", metavar="F", help="maps to train on in addition to generated ones"
    )
    parser.add_argument("--frames", type=whole_number(1), help="another length of the trainings")
    add_table_arguments(parser, out="runs/maze")


def cells_of(arguments: argparse.Namespace) -> list[MazeCell]:
    """The runs that were asked for; raises if a name is unknown or the file of maps is missing."""
    there(arguments.maps)
    asked = ("envs", "readers", "policies", "seeds", "maze_seeds")
    return plan(**{name: getattr(arguments, name) for name in asked})


def run_reproduce(arguments: argparse.Namespace) -> int | None:
    """Runs what has no result yet, and writes the report."""
    from lemn_tf.experiments import maze_report, maze_table

    out, results = Path(arguments.out), Path(arguments.results)
    cells = cells_of(arguments)
    table = maze_table.MazeTable(out, results, arguments.maps, arguments.frames, show_progress)

    def report() -> None:
        written = maze_report.write_report(results)
        if arguments.presets:
            written += maze_report.copy_presets(results, out, Path(arguments.presets))
        for path in written:
            print(f"wrote {path}")

    return run_table(table, cells, arguments, report)
