"""`lemn reproduce`: every cell of the paper's tables, run by run, resumable."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lemn_tf.commands import documents, maze_reproduce, world
from lemn_tf.commands.common import (
    add_table_arguments,
    check_table,
    folders,
    run_table,
    whole_number,
    words,
)
from lemn_tf.experiments.babi_cells import ROWS, BabiCell, plan


class Reproduce:
    """Trains and scores every cell of the paper's tables."""

    name = "reproduce"
    help = "run every cell of the paper's tables; resumable"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        tasks = parser.add_subparsers(dest="task", metavar="task", required=True)
        babi = tasks.add_parser("babi", help="the bAbI tables and the shuffling table")
        babi.add_argument(
            "--seeds", type=whole_number(1), help="trainings per cell; default as in the row"
        )
        babi.add_argument(
            "--data",
            metavar="DIR",
            help="folder with {original,noisy,large}_{train,valid,test}.txt; what is missing is "
            "generated",
        )
        babi.add_argument("--rows", type=words, default=list(ROWS), help=", ".join(ROWS))
        babi.add_argument(
            "--columns", type=words, help="such as noisy-5,large-10; default all of them"
        )
        add_table_arguments(babi, out="runs/babi")
        maze = tasks.add_parser("maze", help="the I-Maze figure and the random-maze table")
        maze_reproduce.add_reproduce_arguments(maze)
        worlds = tasks.add_parser("worlds", help="tests of memory from popgym, bsuite and minigrid")
        world.add_reproduce_arguments(worlds)
        asked = tasks.add_parser("documents", help="rules and learned policies over documents")
        documents.add_reproduce_arguments(asked)
        about = "the paper's table on TriviaQA's official files"
        documents.add_triviaqa_arguments(tasks.add_parser("triviaqa", help=about))

    def check(self, arguments: argparse.Namespace) -> None:
        """Raises if there are no such rows or columns, or something to read from is missing."""
        checks: dict[str, Callable[[argparse.Namespace], Sequence[Any] | None]] = {
            "babi": self._check_babi,
            "maze": maze_reproduce.cells_of,
            "worlds": world.cells_of,
            "documents": documents.check_reproduce,
            "triviaqa": documents.check_triviaqa,
        }
        check_table(checks[arguments.task](arguments), arguments)

    def _check_babi(self, arguments: argparse.Namespace) -> list[BabiCell]:
        folders(arguments.data)
        return plan(arguments.rows, arguments.columns, arguments.seeds)

    def run(self, arguments: argparse.Namespace) -> int | None:
        tasks = {
            "babi": self._run_babi,
            "maze": maze_reproduce.run_reproduce,
            "worlds": world.run_reproduce,
            "documents": documents.run_reproduce,
            "triviaqa": documents.run_triviaqa,
        }
        return tasks[arguments.task](arguments)

    def _run_babi(self, arguments: argparse.Namespace) -> int | None:
        from lemn_tf.experiments import babi_report
        from lemn_tf.experiments.babi_table import BabiTable

        cells = plan(arguments.rows, arguments.columns, arguments.seeds)
        table = BabiTable(arguments.out, arguments.results)
        if not (arguments.cell or arguments.report_only):
            table.prepare(arguments.data)

        def report() -> None:
            print(f"wrote {babi_report.write(Path(arguments.results))}")
            if arguments.presets:
                chosen = babi_report.copy_presets(table, Path(arguments.presets))
                for path, errors in chosen.items():
                    told = ", ".join(f"{name} {error:.2f}%" for name, error in errors.items())
                    print(f"wrote {path}, the best by validation with names exchanged: {told}")

        return run_table(table, cells, arguments, report)
