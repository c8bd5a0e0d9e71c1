"""A crew: the workers of one training, found by `TF_CONFIG` or started here as local processes."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from lemn_tf.experiments.scheduling import LEMN
from lemn_tf.learning.workers import (
    ALONE,
    VARIABLE,
    Cluster,
    WorkerLost,
    Workers,
    read_config,
    write_config,
)

PATIENCE = 10.0
"""Seconds that local workers have to end on their own."""


def size(asked: int | None) -> int:
    """How many workers there will be: `asked`; if that is None, what `TF_CONFIG` says, or one."""
    text = os.environ.get(VARIABLE)
    named = len(read_config(text)[0]) if text else None
    if asked and named and asked != named:
        raise ValueError(f"--workers: {VARIABLE} names {named}, got {asked}")
    return named or asked or 1


@contextlib.contextmanager
def gathered(count: int, command: Sequence[str], out: Path) -> Iterator[Workers]:
    """The workers of a training, of which this process is one.

    Where `TF_CONFIG` names none, this is the chief and starts the others here.

    Args:
        count: how many there are.
        command: the arguments of `lemn` with which the others are started.
        out: folder of the run; what the others print goes to `worker-K.log` there.
    """
    if count == 1:
        yield ALONE
    elif VARIABLE in os.environ:
        yield Cluster()
    else:
        addresses = [f"127.0.0.1:{port}" for port in free_ports(count)]
        out.mkdir(parents=True, exist_ok=True)
        others = [_start(addresses, rank, command, out) for rank in range(1, count)]
        os.environ[VARIABLE] = write_config(addresses, 0)
        try:
            yield Cluster()
            _ends(others)
        except WorkerLost as lost:
            ends = [
                f"; worker {rank + 1} ended with code {code} (its log: {_log(out, rank)})"
                for rank, code in _ends(others).items()
            ]
            raise WorkerLost(str(lost) + "".join(ends)) from None
        finally:
            del os.environ[VARIABLE]
            for process in others:
                process.kill()  # they keep nothing that could be lost
                process.wait()


def _start(addresses: list[str], rank: int, command: Sequence[str], out: Path) -> subprocess.Popen:
    environment = {**os.environ, VARIABLE: write_config(addresses, rank)}
    with open(_log(out, rank), "wb") as log:
        return subprocess.Popen([*LEMN, *command], stdout=log, stderr=log, env=environment)


def _log(out: Path, rank: int) -> Path:
    return out / f"worker-{rank + 1}.log"


def _ends(others: Sequence[subprocess.Popen]) -> dict[int, int]:
    """Waits a little for the other workers: the codes of those that have ended, by rank."""
    deadline = time.monotonic() + PATIENCE
    for process in others:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(deadline - time.monotonic(), 0))
    codes = {rank: process.poll() for rank, process in enumerate(others, start=1)}
    return {rank: code for rank, code in codes.items() if code is not None}


def free_ports(count: int) -> list[int]:
    """Free ports of this machine."""
    with contextlib.ExitStack() as stack:
        servers = [
            stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)
        ]
        return [server.getsockname()[1] for server in servers]
