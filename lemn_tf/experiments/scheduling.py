"""Where jobs run: a job is a `lemn` command, and a scheduler starts them and says which have ended.

`Processes` runs them here, one process each; `lemn_tf.experiments.ray_tasks.RayTasks` on a cluster.
A job's results are files, the same ones wherever it ran.
"""

from __future__ import annotations

import abc
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

MODULE = "lemn_tf.cli"
"""The module that is run as `lemn`."""
LEMN = (sys.executable, "-m", MODULE)
"""How a process of `lemn` is started."""


FOLLOWS = "LEMN_FOLLOWS"
"""The environment variable that tells a job to end with the process that started it."""


def follow() -> None:
    """If this process is a job, it is told to stop when the one that started it is gone.

    That one need not do anything, so it may also have been killed: a pipe that it holds closes.
    """
    if os.environ.pop(FOLLOWS, None) is None:
        return

    def wait() -> None:
        os.read(0, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


class Job(NamedTuple):
    """A command to run.

    Attributes:
        name: no other job of the scheduler has it.
        arguments: of `lemn`.
        log: the file that its output is added to.
    """

    name: str
    arguments: tuple[str, ...]
    log: Path


class Scheduler(abc.ABC):
    """Runs jobs somewhere.

    Attributes:
        width: how many run at a time.
        queue: how many may be started at a time; those beyond `width` wait where they run.
    """

    width: int
    queue: int

    @abc.abstractmethod
    def start(self, job: Job) -> None:
        """Starts a job, and returns at once."""

    @abc.abstractmethod
    def ended(self) -> dict[str, bool]:
        """The jobs that have ended since this was last asked: whether each went well."""

    @abc.abstractmethod
    def stop(self, seconds: float) -> None:
        """Asks all jobs to save what they have, and waits for at most so long."""

    @abc.abstractmethod
    def close(self) -> None:
        """Ends what still runs, and releases the machines."""

    def __enter__(self) -> Scheduler:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class Processes(Scheduler):
    """Jobs as processes of this machine.

    Args:
        jobs: how many at a time; with more than one, each keeps to one thread.
        programs: folder for compiled XLA programs, which jobs share.
    """

    def __init__(self, jobs: int, programs: Path):
        self.width = self.queue = jobs
        self._environment = {**os.environ, **variables(programs, jobs > 1), FOLLOWS: "yes"}
        self._running: dict[str, subprocess.Popen] = {}

    def start(self, job: Job) -> None:
        with open(job.log, "ab") as file:
            command = [*LEMN, *job.arguments]
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=file, stderr=file, env=self._environment
            )
        self._running[job.name] = process

    def ended(self) -> dict[str, bool]:
        codes = {name: process.poll() for name, process in self._running.items()}
        done = {name: code == 0 for name, code in codes.items() if code is not None}
        for name in done:
            del self._running[name]
        return done

    def stop(self, seconds: float) -> None:
        deadline = time.time() + seconds  # Ctrl-C has reached the processes too
        for process in self._running.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(deadline - time.time(), 0))

    def close(self) -> None:
        for process in self._running.values():
            process.terminate()


def variables(programs: Path, one_thread: bool) -> dict[str, str]:
    """The environment variables of a job."""
    cache = f"--tf_xla_persistent_cache_directory={programs.absolute()}"
    made = {
        "TF_XLA_FLAGS": f"{os.environ.get('TF_XLA_FLAGS', '')} {cache}".strip(),
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    if one_thread:
        made |= {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}
    return made
