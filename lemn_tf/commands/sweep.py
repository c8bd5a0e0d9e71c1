"""`lemn sweep`: the same training with every combination of some settings, resumable."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from lemn_tf.commands.common import (
    VARIANTS,
    add_scheduling_arguments,
    check_table,
    folders,
    run_table,
    whole_number,
)
from lemn_tf.commands.train import lengths
from lemn_tf.experiments import babi_grid


def varied(text: str) -> tuple[str, list[str]]:
    """An argparse type: "entropy=0.05,0.1" as a name and its values."""
    name, equals, values = text.partition("=")
    several = [value.strip() for value in values.split(",")]
    if not (name.strip() and equals and all(several)):
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE,VALUE,...; got {text!r}")
    return name.strip(), list(dict.fromkeys(several))


def combined(given: Sequence[tuple[str, list[str]]], seeds: int) -> list[babi_grid.SweepCell]:
    """Every combination of the values that were given, with several seeds of each."""
    values: dict[str, list[babi_grid.Value]] = {}
    for name, texts in given:
        values.setdefault(name, []).extend(babi_grid.parsed(name, text) for text in texts)
    return babi_grid.grid(values, seeds)


class Sweep:
    """Trains every combination of some settings with several seeds, and writes a report."""

    name = "sweep"
    help = "train with every combination of some settings; resumable"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        tasks = parser.add_subparsers(dest="task", metavar="task", required=True)
        babi = tasks.add_parser("babi", help="question answering on text streams")
        add = babi.add_argument
        about = "a setting and the values to try, such as entropy=0.05,0.1; may be given repeatedly"
        add(
            "--param", type=varied, action="append", required=True, metavar="NAME=V,...", help=about
        )
        add("--seeds", type=whole_number(1), default=1, help="trainings of each combination")
        add("--variant", choices=VARIANTS, default="noisy", help="of stories")
        given = "folder with VARIANT_{train,valid,test}.txt; what is missing is generated"
        add("--data", metavar="DIR", help=given)
        others = "other lengths of phases, such as 'reader=24000,polish=40000'"
        add("--phases", type=lengths, default={}, metavar="NAME=EPISODES,...", help=others)
        add_scheduling_arguments(babi)
        add("--out", default="runs/sweep", metavar="DIR", help="for runs, results and the report")
        add("--report-only", action="store_true", help="only write the report")
        add("--cell", help=argparse.SUPPRESS)

    def check(self, arguments: argparse.Namespace) -> None:
        """Raises if there are no such settings, or nothing can be trained with them."""
        folders(arguments.data)
        cells = combined(arguments.param, arguments.seeds)
        for cell in cells:
            cell.check(arguments.phases)
        check_table(cells, arguments)

    def run(self, arguments: argparse.Namespace) -> int | None:
        from lemn_tf.experiments import babi_sweep, babi_table

        cells = combined(arguments.param, arguments.seeds)
        table = babi_sweep.SweepTable(arguments.out, arguments.variant, arguments.phases)
        if not (arguments.cell or arguments.report_only):
            babi_table.prepare(table.out / "data", arguments.variant, arguments.data)

        def report() -> None:
            page, data = table.report(cells)
            print(f"{page.read_text()}\nwrote {page} and {data}")

        return run_table(table, cells, arguments, report)
