"""What the subcommands share: argument types, and running a table of trainings."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lemn_tf.experiments.cells import C, Table


def whole_number(least: int):
    """An argparse type: an integer of at least `least`."""

    def convert(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = None
        if number is None or number < least:
            raise argparse.ArgumentTypeError(f"expected a whole number >= {least}; got {text!r}")
        return number

    return convert


def whole_numbers(least: int):
    """An argparse type: integers of at least `least`, separated by commas."""
    one = whole_number(least)
    return lambda text: [one(part) for part in text.split(",")]


def amount(text: str) -> float:
    """An argparse type: a finite number of at least 0."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number >= 0; got {text!r}")
    return number


def refuse(arguments: argparse.Namespace, names: Sequence[str], meant_for: str) -> None:
    """Raises if one of the named options was given: they are meant for something else."""
    given = [name for name in names if getattr(arguments, name) is not None]
    if given:
        options = ", ".join("--" + name.replace("_", "-") for name in given)
        raise ValueError(f"{options}: meant for {meant_for}, and {arguments.run} is not one")


def there(*paths: str | None) -> None:
    """Raises unless each of the files, those that are None aside, is there and can be read."""
    for path in paths:
        if path is not None:
            open(path, "rb").close()


def words(text: str) -> list[str]:
    """An argparse type: words separated by commas."""
    return [word.strip() for word in text.split(",") if word.strip()]


def add_table_arguments(parser: argparse.ArgumentParser, out: str) -> None:
    """The options of every `lemn reproduce` that trains a table, with the folder for its runs."""
    add = parser.add_argument
    add("--jobs", type=whole_number(1), default=2, help="trainings at a time")
    add("--out", default=out, metavar="DIR", help="for the runs")
    add("--results", default="results", metavar="DIR", help="for the report")
    add("--presets", metavar="DIR", help="also copy the best ST-LEMN models there as presets")
    add("--report-only", action="store_true", help="only write the report")
    add("--cell", help=argparse.SUPPRESS)


def run_table(
    table: Table[C], cells: Sequence[C], arguments: argparse.Namespace, report: Callable[[], None]
) -> int | None:
    """Runs what has no result yet, or the one cell asked for; then writes the report."""
    if arguments.cell:
        table.run_cell(next(cell for cell in cells if cell.name == arguments.cell))
        return None
    failed = [] if arguments.report_only else table.run(cells, arguments.jobs)
    if failed:
        print(f"lemn: {len(failed)} trainings failed: {', '.join(failed)}", file=sys.stderr)
    report()
    return 1 if failed else None
