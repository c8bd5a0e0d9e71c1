"""`lemn report`: a page that shows what runs remember.

lemn report RUN [RUN...] --data F --out report.html
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from lemn_tf import runs
from lemn_tf.commands.common import slot_counts
from lemn_tf.commands.trace import add_data_arguments, check_shown, subject_of


class Report:
    """Writes one HTML file: numbers, curves, an episode player, mistakes."""

    name = "report"
    help = "write one HTML page that shows what runs remember, with an episode player"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("runs", metavar="RUN", nargs="+", help="runs, model files or presets")
        add_data_arguments(parser)
        sizes = "sizes of memory for the budget curve (default some around the first run's)"
        parser.add_argument("--slots", type=slot_counts, help=sizes)
        parser.add_argument("--out", required=True, metavar="F", help="the .html to write")

    def check(self, arguments: argparse.Namespace) -> None:
        """Raises if a run, the data or the folder for the page is missing."""
        if Path(arguments.out).suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"expected --out to end in .html, got {arguments.out!r}")
        check_shown(arguments.runs, arguments, arguments.out)
        kinds = {(found.cls, found.documents) for found in map(runs.about, arguments.runs)}
        if len(kinds) > 1:
            raise ValueError("expected runs of one task in a report, got several")

    def run(self, arguments: argparse.Namespace) -> None:
        subjects = {name: subject_of(name, arguments) for name in arguments.runs}
        write_report(subjects, arguments.out, arguments.slots, shlex.join(["lemn", *sys.argv[1:]]))


def write_report(
    subjects: dict, out: str | Path, slots: Sequence[int] | None = None, command: str = ""
) -> None:
    """Examines the runs, writes the page and prints its path."""
    from lemn_tf.loop import history
    from lemn_tf.seeing import findings, making, report

    began = time.time()
    if len({type(one) for one in subjects.values()}) > 1:
        raise ValueError("expected runs of one task in a report, got several")
    histories = {name: history(name) for name in subjects}
    found = findings.look(
        subjects, slots, histories, told=lambda text: print(text, file=sys.stderr)
    )
    found.made = making.made(command, list(subjects), time.time() - began)
    path = report.write(found, out)
    print(f"wrote {path}: {path.stat().st_size / 1e6:.1f} MB, open it in a browser")
