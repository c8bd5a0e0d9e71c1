"""How far the runs of a table are, in one view, read from the folders of the runs."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

SELDOM = 60.0
"""Seconds between two lines where there is no terminal."""
COUNTED = ("episodes", "frames")
"""What a line of a history may count."""


def standing(folder: Path) -> str:
    """How far a run is, in a few words."""
    line = _last(folder / "history.jsonl")
    if not line:
        return "not validated yet" if folder.exists() else "under way"
    told = [str(line["phase"])] if "phase" in line else []
    told += [_counted(folder, line, name) for name in COUNTED if name in line]
    if "best" in line:
        told.append(f"best {line['best']:.3f}")
    if "seconds" in line:
        told.append(f"{line['seconds'] / 60:.0f} min")
    return ", ".join(told)


def _counted(folder: Path, line: dict[str, Any], name: str) -> str:
    """Episodes or frames, and of how many, where the run says so."""
    told, of = f"{line[name]:,}", ""
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
        phases = json.loads((folder / "config.json").read_text())["phases"]
        of = f" of {phases[line['phase_index']][name]:,}"
    return f"{told}{of} {name}"


def _last(path: Path) -> dict[str, Any]:
    """The last whole line of a history; empty if there is none."""
    with contextlib.suppress(OSError):
        for line in reversed(path.read_text().splitlines()):
            with contextlib.suppress(ValueError):
                return json.loads(line)
    return {}


class View:
    """Shows how far runs are: lines that are updated in place, or a line now and then.

    Args:
        terminal: whether standard error is a terminal; None to find out.
    """

    def __init__(self, terminal: bool | None = None):
        self._terminal = sys.stderr.isatty() if terminal is None else terminal
        self._live: Any = None
        self._told = time.time()

    def show(self, runs: Mapping[str, Path]) -> None:
        """Shows the runs in these folders, if it is time to."""
        if self._terminal:
            self._screen().update(_table(runs), refresh=True)
        elif runs and time.time() - self._told >= SELDOM:
            self._told = time.time()
            told = "; ".join(f"{name}: {standing(folder)}" for name, folder in runs.items())
            print(f"running: {told}", file=sys.stderr, flush=True)

    def tell(self, line: str) -> None:
        """Prints a line that stays."""
        if self._live is not None:
            self._live.console.print(line, highlight=False, markup=False, soft_wrap=True)
        else:
            print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Clears the lines that are updated in place."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _screen(self) -> Any:
        if self._live is None:
            from rich.console import Console
            from rich.live import Live

            console = Console(stderr=True, force_terminal=True)
            self._live = Live(console=console, transient=True, auto_refresh=False)
            self._live.start()
        return self._live


def _table(runs: Mapping[str, Path]) -> Table:
    from rich.table import Table

    shown = Table.grid(padding=(0, 2))
    for name, folder in runs.items():
        shown.add_row(name, standing(folder))
    return shown
