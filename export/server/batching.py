"""Joins concurrent requests to one signature into one call.

A request that finds nobody under way runs at once. Requests of the same shapes that come meanwhile
queue up, and the first of them takes all that fit together:

    idle:  A runs alone -> B, C, D arrive -> A is done, B leads: [B, C, D] run as one -> ...

A call takes nearly as long for one row as for many, so a leader first waits until as many are there
as were under way at the end of the last call, because clients that got an answer mostly ask again;
or half as many as the last leader waited for, if that is more, because on a busy machine clients
take their time. It waits only while they keep coming. So one client sees no added delay, and 64
soon share every call.

Nobody sleeps meanwhile: calls run on threads of a pool, and those who asked are told of the results
of a call all at once, for to wake a thread for each costs more than the call.

Requests of other shapes have a lane of their own, and large ones run alone, behind a gate: no
request waits for one that it could not have joined.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent import futures
from typing import Any

import numpy as np

from lemn_tf.export.errors import ServingError, late
from lemn_tf.export.loaded import LoadedSignature
from lemn_tf.export.server.gate import Gate
from lemn_tf.export.tensors import Arrays

_LARGE = 2048  # rows times steps from which a request runs alone
_MOST_LANES = 64
_PATIENCE = 8  # a leader waits for company at most this many times, each as long as a call takes
_KEPT = 0.5  # of the requests that were expected, if fewer came
_SHORTEST, _LONGEST = 0.004, 0.01  # seconds; a call counts as at least and at most this long


class Entry:
    """A request that waits for its result.

    Attributes:
        tell: is called with entries that have a result, on the thread that ran them.
        ticket: whatever the one who is told needs to know.
        batch: how many requests shared the call.
    """

    __slots__ = ("_error", "_outputs", "arrays", "batch", "deadline", "rows", "tell", "ticket")

    def __init__(self, arrays: Arrays, rows: int, deadline: float | None, tell: Tell, ticket: Any):
        self.arrays, self.rows, self.deadline = arrays, rows, deadline
        self.tell, self.ticket, self.batch = tell, ticket, 1
        self._outputs: Arrays | None = None
        self._error: Exception | None = None

    @property
    def done(self) -> bool:
        """Whether there is a result."""
        return self._outputs is not None or self._error is not None

    @property
    def size(self) -> int:
        """How many elements the outputs have."""
        return sum(array.size for array in (self._outputs or {}).values())

    def succeed(self, outputs: Arrays, batch: int = 1) -> None:
        """Sets the outputs."""
        self._outputs, self.batch = outputs, batch

    def run(self, signature: LoadedSignature) -> None:
        """Calls the signature with this request alone."""
        try:
            self._outputs = signature(self.arrays, self.deadline)
        except Exception as error:  # raised again where the result is wanted
            self._error = error

    def fail(self, error: Exception) -> None:
        """Sets the error."""
        self._error = error

    def result(self) -> tuple[Arrays, int]:
        """The outputs and how many requests shared the call, or the error that came of it."""
        if self._error is not None:
            raise self._error
        assert self._outputs is not None
        return self._outputs, self.batch


Tell = Callable[[list[Entry]], None]


class Batcher:
    """Runs one signature, several requests at a time.

    Args:
        signature: what to run.
        pool: gives the threads that run it.
        batch_rows: rows in one call, unless a single request brings more.
        gate: where large requests wait.
    """

    def __init__(
        self,
        signature: LoadedSignature,
        pool: futures.Executor,
        batch_rows: int = 64,
        gate: Gate | None = None,
    ):
        if batch_rows < 1:
            raise ValueError(f"expected batch_rows of at least 1; got {batch_rows}")
        self.signature, self.pool = signature, pool
        self.batch_rows, self.gate = batch_rows, gate or Gate()
        self.lanes: dict[tuple, Lane] = {}
        self._lock = threading.Lock()

    def submit(
        self, arrays: Arrays, deadline: float | None, tell: Tell, ticket: Any = None
    ) -> None:
        """Has a request run, perhaps with others.

        Args:
            arrays: checked inputs.
            deadline: `time.monotonic()` after which nobody wants the answer.
            tell: is called with the `Entry` when it has a result, and with others of its call.
            ticket: is kept with the entry.
        """
        signature = self.signature
        entry = Entry(arrays, signature.rows(arrays), deadline, tell, ticket)
        if not signature.batches or not entry.rows or self._large(entry):
            self.pool.submit(self._alone, entry)
        else:
            self._lane(arrays).add(entry)

    async def run_from_loop(self, arrays: Arrays, deadline: float | None) -> tuple[Arrays, int]:
        """As `submit`, for an event loop, which it does not hold up.

        Returns:
            The outputs, and how many requests shared the call.
        """
        told = asyncio.get_running_loop().create_future()
        self.submit(arrays, deadline, _tell_loops, told)
        return (await told).result()

    def _alone(self, entry: Entry) -> None:
        try:
            with (
                self.gate.enter(entry.deadline) if self._large(entry) else contextlib.nullcontext()
            ):
                entry.run(self.signature)
        except ServingError as error:
            entry.fail(error)
        entry.tell([entry])

    def _large(self, entry: Entry) -> bool:
        if not self.signature.batches:
            return False
        steps = self.signature.steps(entry.arrays)
        return entry.rows >= self.batch_rows or entry.rows * steps > _LARGE

    def _lane(self, arrays: Arrays) -> Lane:
        kind = tuple([arrays[name].shape[1:] for name in self.signature.inputs])
        with self._lock:
            lane = self.lanes.get(kind)
            if lane is None:
                if len(self.lanes) >= _MOST_LANES:
                    self.lanes = {k: one for k, one in self.lanes.items() if one.busy}
                lane = self.lanes[kind] = Lane(self.signature, self.pool, self.batch_rows)
            return lane


class Lane:
    """Requests of the same shapes, which can be joined.

    Args:
        signature: what to run.
        pool: gives the threads that run it.
        batch_rows: rows in one call.
    """

    def __init__(self, signature: LoadedSignature, pool: futures.Executor, batch_rows: int):
        self.signature, self.pool, self.batch_rows = signature, pool, batch_rows
        self.queue: deque[Entry] = deque()
        self.busy = False
        self._lock = threading.Lock()
        self._company = threading.Condition(self._lock)
        self._expected = 1  # requests that a leader waits for
        self.took = 0.0  # seconds of a call

    def add(self, entry: Entry) -> None:
        """Lets a request lead if nobody does, and else puts it into the queue."""
        with self._lock:
            leads = not self.busy
            self.busy = True
            if not leads:
                self.queue.append(entry)
                if self._complete():
                    self._company.notify()
        if leads:
            self.pool.submit(self._lead, entry)

    def _lead(self, first: Entry) -> None:
        group = [first]
        try:
            self._wait()
            group += self._take(first)
            start = time.monotonic()
            self._run(group)
            self.took = min(max(time.monotonic() - start, _SHORTEST), _LONGEST)
        finally:
            with self._lock:
                fit = self.batch_rows // max(first.rows, 1)
                here = len(group) + len(self.queue)
                self._expected = min(max(here, int(_KEPT * self._expected)), fit)
                heir = self.queue.popleft() if self.queue else None
                self.busy = heir is not None
            if heir is not None:
                self.pool.submit(self._lead, heir)
            for tell in {entry.tell for entry in group}:
                tell([entry for entry in group if entry.tell == tell])

    def _complete(self) -> bool:
        return len(self.queue) + 1 >= self._expected

    def _wait(self) -> None:
        """Until the company is complete, or twice none came for as long as a call takes.

        Once is not enough: on a busy machine this process may not have run in the meantime.
        """
        with self._lock:
            alone = 0
            for _ in range(_PATIENCE):
                before = len(self.queue)
                if self._company.wait_for(self._complete, self.took):
                    return
                alone = alone + 1 if len(self.queue) == before else 0
                if alone == 2:
                    return

    def _take(self, first: Entry) -> list[Entry]:
        """Every queued request that fits beside `first`."""
        taken: list[Entry] = []
        left: deque[Entry] = deque()
        rows = first.rows
        with self._lock:
            for entry in self.queue:
                if rows + entry.rows <= self.batch_rows:
                    taken.append(entry)
                    rows += entry.rows
                else:
                    left.append(entry)
            self.queue = left
        return taken

    def _run(self, group: list[Entry]) -> None:
        now = time.monotonic()
        for entry in group:
            if entry.deadline is not None and entry.deadline < now:
                entry.fail(late())
        alive = [entry for entry in group if not entry.done]
        if len(alive) < 2 or not self._together(alive):
            for entry in alive:
                entry.run(self.signature)

    def _together(self, group: list[Entry]) -> bool:
        """One call for all; False if it failed, so that each is to be tried alone."""
        deadlines = [entry.deadline for entry in group if entry.deadline is not None]
        latest = max(deadlines) if len(deadlines) == len(group) else None
        try:
            joined = {
                name: np.concatenate([entry.arrays[name] for entry in group])
                for name in self.signature.inputs
            }
            outputs = self.signature(joined, latest)
        except Exception:  # one bad request must not fail the others
            return False
        total = sum(entry.rows for entry in group)
        if any(array.ndim == 0 or array.shape[0] != total for array in outputs.values()):
            return False
        start = 0
        for entry in group:
            stop = start + entry.rows
            entry.succeed({k: array[start:stop] for k, array in outputs.items()}, len(group))
            start = stop
        return True


def _tell_loops(entries: list[Entry]) -> None:
    """Tells event loops, each once, that what they wait for is there."""

    def tell(loop: asyncio.AbstractEventLoop) -> None:
        for entry in entries:
            told = entry.ticket
            if told.get_loop() is loop and not told.done():  # the caller may have given up
                told.set_result(entry)

    for loop in {entry.ticket.get_loop() for entry in entries}:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the server has stopped
            loop.call_soon_threadsafe(tell, loop)
