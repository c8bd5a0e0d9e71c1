"""What the subcommands share: argument types, and running a table of trainings."""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lemn_tf import retention
from lemn_tf.files import place_for, room_for
from lemn_tf.pipelines.story_files import check_beginning

if TYPE_CHECKING:
    from lemn_tf.experiments.cells import C, CellTable
    from lemn_tf.experiments.scheduling import Scheduler


MOST = 2**31 - 1
"""The largest number that is taken where no other limit is meant, such as of a seed."""
MOST_SLOTS = 1 << 16
"""The largest memory: a policy scores all slots at each step."""


def whole_number(least: int, most: int = MOST):
    """An argparse type: an integer of at least `least` and at most `most`."""

    def convert(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = None
        if number is None or number < least:
            raise argparse.ArgumentTypeError(f"expected a whole number >= {least}; got {text!r}")
        if number > most:
            raise argparse.ArgumentTypeError(f"expected a whole number <= {most}; got {text!r}")
        return number

    return convert


def whole_numbers(least: int, most: int = MOST):
    """An argparse type: integers of at least `least`, separated by commas."""
    one = whole_number(least, most)
    return lambda text: [one(part) for part in text.split(",")]


slot_count, slot_counts = whole_number(1, MOST_SLOTS), whole_numbers(1, MOST_SLOTS)


def amount(text: str) -> float:
    """An argparse type: a finite number of at least 0."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number >= 0; got {text!r}")
    return number


def given(arguments: argparse.Namespace, names: Iterable[str] | type) -> dict[str, Any]:
    """Those options that have a value, of the ones named or of a dataclass' fields."""
    if isinstance(names, type):
        names = [field.name for field in dataclasses.fields(names)]
    values = {name: getattr(arguments, name, None) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def percent(text: str) -> float:
    """An argparse type: a number from 0 to 100."""
    number = amount(text)
    if number > 100:
        raise argparse.ArgumentTypeError(f"expected a percentage; got {text!r}")
    return number


def refuse(arguments: argparse.Namespace, names: Sequence[str], meant_for: str) -> None:
    """Raises if one of these options was given although it is meant for something else."""
    given = [name for name in names if getattr(arguments, name) is not None]
    if given:
        flags = {"modules": "--import"}
        options = ", ".join(flags.get(name, "--" + name.replace("_", "-")) for name in given)
        raise ValueError(f"{options}: meant for {meant_for}, and {arguments.run} is not one")


VARIANTS = ("original", "noisy", "large")
"""The stories that can be generated, as `lemn_tf.pipelines.babi_generator` has them."""


def there(*paths: str | os.PathLike | None) -> None:
    """Raises unless each file that is not None exists and can be read."""
    for path in paths:
        if path is not None:
            open(path, "rb").close()


def stories(*paths: str | os.PathLike | None) -> None:
    """Raises unless each file that is not None begins with a story."""
    for path in paths:
        if path is not None:
            check_beginning(path)


def folders(*paths: str | os.PathLike | None) -> None:
    """Raises unless each folder that is not None exists and can be read."""
    for path in paths:
        if path is not None:
            if not os.path.exists(path):
                raise FileNotFoundError(f"{path}: expected a folder, found nothing there")
            os.scandir(os.fspath(path)).close()


def figure_for(path: str | None) -> None:
    """Raises unless a figure can be written to the path, if it is not None."""
    if path is not None and Path(path).suffix.lower() not in (".svg", ".png"):
        raise ValueError(f"expected a figure's file to end in .svg or .png, got {path!r}")
    room_for(path)


def usable(policy: str, learned: bool = False, documents: bool = False) -> None:
    """Raises unless there is such a policy, and it can be used without labels.

    Args:
        policy: its name.
        learned: whether it must be one that learns.
        documents: whether it sees the words of documents.
    """
    known = retention.facts(policy)
    if known.clairvoyant:
        raise ValueError(f"{policy} needs labels: expected a policy that works without them")
    if learned and not known.learns:
        raise ValueError(f"{policy} does not learn: expected a policy that does")
    if policy in retention.FOR_WORDS and not documents:
        raise ValueError(f"{policy} needs the words of documents: expected another policy")


def words(text: str) -> list[str]:
    """An argparse type: words separated by commas."""
    return [word.strip() for word in text.split(",") if word.strip()]


def add_table_arguments(parser: argparse.ArgumentParser, out: str) -> None:
    """The options of every `lemn reproduce` that trains a table, with the folder for its runs."""
    add = parser.add_argument
    add_scheduling_arguments(parser)
    add("--out", default=out, metavar="DIR", help="for the runs")
    add("--results", default="results", metavar="DIR", help="for the report")
    add("--presets", metavar="DIR", help="also copy the best ST-LEMN models there as presets")
    add("--report-only", action="store_true", help="only write the report")
    add("--cell", help=argparse.SUPPRESS)


def add_scheduling_arguments(parser: argparse.ArgumentParser, jobs: int | None = 2) -> None:
    """Adds the options of commands that run jobs: how many at a time, and where.

    Args:
        parser: of the command.
        jobs: how many at a time by default; None for none, all in one process.
    """
    add = parser.add_argument
    default = "%(default)s" if jobs else "default: no jobs, all in one process"
    add("--jobs", type=whole_number(1), default=jobs, help=f"how many at a time ({default})")
    about = (
        "run as Ray tasks, on a cluster at ADDRESS that sees the same folders or on this machine"
    )
    add("--ray", nargs="?", const="local", metavar="ADDRESS", help=about)


def scheduler_for(arguments: argparse.Namespace, out: str | os.PathLike) -> Scheduler:
    """What runs the jobs, by the options; compiled programs go to `xla` in `out`."""
    programs = Path(out) / "xla"
    if arguments.ray is None:
        from lemn_tf.experiments.scheduling import Processes

        return Processes(arguments.jobs, programs)
    from lemn_tf.experiments.ray_tasks import RayTasks

    return RayTasks(arguments.ray, arguments.jobs or os.cpu_count() or 1, programs)


def the_cell(cells: Sequence[C], name: str) -> C:
    """The cell of this name."""
    for cell in cells:
        if cell.name == name:
            return cell
    raise ValueError(f"--cell: none of the cells asked for is called {name!r}")


def check_table(cells: Sequence[C] | None, arguments: argparse.Namespace) -> None:
    """Raises unless there is such a cell, if one is asked for, and room for what is written."""
    if getattr(arguments, "cell", None) is not None:
        the_cell(cells or (), arguments.cell)
    place_for(*(getattr(arguments, name, None) for name in ("out", "results", "presets")))


def run_table(
    table: CellTable[C],
    cells: Sequence[C],
    arguments: argparse.Namespace,
    report: Callable[[], None],
) -> int | None:
    """Runs what has no result yet, or the one cell asked for; then writes the report."""
    if arguments.cell is not None:
        table.run_cell(the_cell(cells, arguments.cell))
        return None
    failed: list[str] = []
    if not arguments.report_only:
        with scheduler_for(arguments, table.out) as scheduler:
            failed = table.run(cells, scheduler)
    if failed:
        print(f"lemn: {len(failed)} {table.made_of} failed: {', '.join(failed)}", file=sys.stderr)
    report()
    return 1 if failed else None
