"""Cells of a table: each one run in a process of its own, some at a time, none twice."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

LEMN = (sys.executable, "-m", "lemn_tf.cli")
"""How a cell's process is started."""


class Cell(Protocol):
    """One training of a table; its result is the file `NAME.json`."""

    @property
    def name(self) -> str: ...


def run_cells(
    cells: Sequence[Cell],
    results: Path,
    out: Path,
    command: Callable[[Cell], list[str]],
    told: Callable[[dict], str],
    jobs: int = 2,
    ready: Callable[[Cell], bool] = lambda cell: True,
    total: int | None = None,
) -> list[str]:
    """Runs cells, `jobs` at a time, and says how each one came out.

    Args:
        cells: what to run, in this order as far as they are ready.
        results: folder in which a cell leaves its result.
        out: folder for their logs, and for the XLA programs they share.
        command: the arguments of `lemn` that run a cell.
        told: says in a few words what a result is.
        jobs: processes at a time; with more than one, each keeps to one thread.
        ready: whether a cell can begin; others wait.
        total: cells of the whole table, those done before included; default all are here.

    Returns:
        Names of the cells that left no result, or never could begin.
    """
    todo, failed, running = list(cells), [], {}
    total = len(todo) if total is None else total
    done = total - len(todo)
    (out / "logs").mkdir(parents=True, exist_ok=True)
    # Cells of one column share XLA programs: compile each once.
    cache = f"--tf_xla_persistent_cache_directory={(out / 'xla').absolute()}"
    flags = f"{os.environ.get('TF_XLA_FLAGS', '')} {cache}".strip()
    environment = {**os.environ, "TF_XLA_FLAGS": flags, "TF_CPP_MIN_LOG_LEVEL": "3"}
    if jobs > 1:
        environment |= {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}
    began, here = time.time(), 0
    try:
        while todo or running:
            for cell in [one for one in todo if ready(one)][: jobs - len(running)]:
                todo.remove(cell)
                log = out / "logs" / f"{cell.name}.log"
                with open(log, "ab") as file:
                    process = subprocess.Popen(
                        [*LEMN, *command(cell)], stdout=file, stderr=file, env=environment
                    )
                running[cell] = (process, time.time(), log)
            if not running:  # what is left waits for a cell that failed
                failed += [cell.name for cell in todo]
                break
            time.sleep(1)
            for cell, (process, start, log) in list(running.items()):
                if process.poll() is None:
                    continue
                del running[cell]
                path = results / f"{cell.name}.json"
                if process.returncode or not path.exists():
                    failed.append(cell.name)
                    print(f"{cell.name} failed: see {log}", file=sys.stderr, flush=True)
                    continue
                done, here = done + 1, here + 1
                left = (time.time() - began) / here * (len(todo) + len(running)) / 60
                print(
                    f"[{done}/{total}] {cell.name}: {told(json.loads(path.read_text()))} "
                    f"({time.time() - start:.0f} s; about {left:.0f} min left)",
                    file=sys.stderr,
                    flush=True,
                )
    except KeyboardInterrupt:
        deadline = time.time() + 60
        for process, _, _ in running.values():  # Ctrl-C reaches them too: let them save
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(deadline - time.time(), 0))
        print(
            "stopped; what is finished is kept, and the same command again goes on",
            file=sys.stderr,
        )
        raise
    finally:
        for process, _, _ in running.values():
            process.terminate()
    return failed
