"""Joins concurrent requests to one signature into one call.

A request that finds nobody under way runs at once, on its own thread. Requests of the same shapes
that arrive meanwhile queue up, and the first of them takes all that fit together:

    idle:  A runs alone -> B, C, D arrive -> A is done, B leads: [B, C, D] run as one -> ...

A call takes nearly as long for one row as for many, so a leader first waits until as many are there
as were under way at the end of the last call, because clients that got an answer mostly ask again;
or half as many as the last leader waited for, if that is more, because on a busy machine clients
take their time. It waits only while they keep coming. So one client sees no added delay, and 64
soon share every call.

A request comes on a thread of its own, which sleeps until there is a result, or from an event loop,
which is told of all results of a call at once: to wake many threads costs more than a call.

Requests of other shapes have a lane of their own, and large ones run alone, behind a gate: no
request waits for one that it could not have joined.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from concurrent import futures

import numpy as np

from lemn_tf.export.errors import late
from lemn_tf.export.loaded import LoadedSignature
from lemn_tf.export.server.gate import Gate
from lemn_tf.export.tensors import Arrays

_LARGE = 2048  # rows times steps from which a request runs alone
_MOST_LANES = 64
_PATIENCE = 8  # a leader waits for company at most this many times, each as long as a call takes
_KEPT = 0.5  # of the requests that were expected, if fewer came
_SHORTEST, _LONGEST = 0.004, 0.01  # seconds; a call counts as at least and at most this long


class _Entry:
    """A request in a queue; `gate` opens when there is a result or when it is to lead.

    From an event loop, `told` becomes done instead when there is a result.
    """

    __slots__ = ("arrays", "batch", "deadline", "error", "gate", "leads", "outputs", "rows", "told")

    def __init__(
        self,
        arrays: Arrays,
        rows: int,
        deadline: float | None,
        told: asyncio.Future | None = None,
    ):
        self.arrays, self.rows, self.deadline = arrays, rows, deadline
        self.outputs: Arrays | None = None
        self.error: Exception | None = None
        self.batch, self.leads, self.told = 1, False, told
        self.gate = threading.Lock()
        self.gate.acquire()

    def result(self) -> tuple[Arrays, int]:
        """The outputs and how many requests shared the call, or the error that came of it."""
        if self.error is not None:
            raise self.error
        assert self.outputs is not None
        return self.outputs, self.batch


class Batcher:
    """Runs one signature, several requests at a time.

    Args:
        signature: what to run.
        batch_rows: rows in one call, unless a single request brings more.
        gate: where large requests wait.
    """

    def __init__(self, signature: LoadedSignature, batch_rows: int = 64, gate: Gate | None = None):
        if batch_rows < 1:
            raise ValueError(f"expected batch_rows of at least 1; got {batch_rows}")
        self.signature, self.batch_rows, self.gate = signature, batch_rows, gate or Gate()
        self.lanes: dict[tuple, Lane] = {}
        self._lock = threading.Lock()

    def run(self, arrays: Arrays, deadline: float | None = None) -> tuple[Arrays, int]:
        """Runs one request, perhaps with others.

        Args:
            arrays: checked inputs.
            deadline: `time.monotonic()` after which nobody wants the answer.

        Returns:
            The outputs, and how many requests shared the call.
        """
        signature = self.signature
        rows = signature.rows(arrays)
        if self._large(arrays, rows):
            with self.gate.enter(deadline):
                return signature(arrays, deadline), 1
        if not signature.batches or not rows:
            return signature(arrays, deadline), 1
        return self._lane(arrays).run(_Entry(arrays, rows, deadline))

    async def run_from_loop(
        self, arrays: Arrays, deadline: float | None, pool: futures.Executor
    ) -> tuple[Arrays, int]:
        """As `run`, for an event loop, which it does not hold up.

        Args:
            arrays: checked inputs.
            deadline: `time.monotonic()` after which nobody wants the answer.
            pool: gives the threads that run the model.
        """
        signature, loop = self.signature, asyncio.get_running_loop()
        rows = signature.rows(arrays)
        if self._large(arrays, rows) or not signature.batches or not rows:
            return await loop.run_in_executor(pool, self.run, arrays, deadline)
        told = loop.create_future()
        entry = _Entry(arrays, rows, deadline, told)
        self._lane(arrays).add(entry, pool)
        await told
        return entry.result()

    def _large(self, arrays: Arrays, rows: int) -> bool:
        return rows >= self.batch_rows or rows * self.signature.steps(arrays) > _LARGE

    def _lane(self, arrays: Arrays) -> Lane:
        kind = tuple([arrays[name].shape[1:] for name in self.signature.inputs])
        with self._lock:
            lane = self.lanes.get(kind)
            if lane is None:
                if len(self.lanes) >= _MOST_LANES:
                    self.lanes = {k: one for k, one in self.lanes.items() if one.busy}
                lane = self.lanes[kind] = Lane(self.signature, self.batch_rows)
            return lane


class Lane:
    """Requests of the same shapes, which can be joined.

    Args:
        signature: what to run.
        batch_rows: rows in one call.
    """

    def __init__(self, signature: LoadedSignature, batch_rows: int):
        self.signature, self.batch_rows = signature, batch_rows
        self.queue: deque[_Entry] = deque()
        self.busy = False
        self._lock = threading.Lock()
        self._company = threading.Condition(self._lock)
        self._expected = 1  # requests that a leader waits for
        self.took = 0.0  # seconds of a call
        self._pool: futures.Executor  # that of the event loop, if any

    def run(self, entry: _Entry) -> tuple[Arrays, int]:
        """Runs a request, perhaps with others; returns its outputs and how many shared the call."""
        self._join(entry)
        if not entry.leads:
            self._await(entry)
        if entry.leads:
            self._lead(entry)
        return entry.result()

    def add(self, entry: _Entry, pool: futures.Executor) -> None:
        """Runs a request of an event loop, which is told when there is a result."""
        self._pool = pool
        self._join(entry)
        if entry.leads:
            pool.submit(self._lead, entry)

    def _join(self, entry: _Entry) -> None:
        """Lets a request lead if nobody does, and else puts it into the queue."""
        with self._lock:
            entry.leads = not self.busy
            self.busy = True
            if not entry.leads:
                self.queue.append(entry)
                if self._complete():
                    self._company.notify()

    def _await(self, entry: _Entry) -> None:
        """Until there is a result or it is to lead; raises DEADLINE_EXCEEDED in time."""
        left = -1 if entry.deadline is None else max(entry.deadline - time.monotonic(), 0)
        if entry.gate.acquire(timeout=left):
            return
        with self._lock:
            if entry.leads:  # made the leader just now: it must pass the lead on
                return
            if entry in self.queue:
                self.queue.remove(entry)
        raise late()

    def _lead(self, first: _Entry) -> None:
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
                    heir.leads = True
            if heir is not None and heir.told is not None:
                self._pool.submit(self._lead, heir)
            elif heir is not None:
                heir.gate.release()
            for entry in group:
                if entry.told is None and entry is not first:
                    entry.gate.release()
            _tell([entry.told for entry in group if entry.told is not None])

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

    def _take(self, first: _Entry) -> list[_Entry]:
        """Every queued request that fits beside `first`."""
        taken: list[_Entry] = []
        left: deque[_Entry] = deque()
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

    def _run(self, group: list[_Entry]) -> None:
        now = time.monotonic()
        for entry in group:
            if entry.deadline is not None and entry.deadline < now:
                entry.error = late()
        alive = [entry for entry in group if entry.error is None]
        if len(alive) > 1 and self._together(alive):
            return
        for entry in alive:
            try:
                entry.outputs = self.signature(entry.arrays, entry.deadline)
            except Exception as error:  # raised again on the thread of the request
                entry.error = error

    def _together(self, group: list[_Entry]) -> bool:
        """One call for all; False if it failed, so that each is to be tried alone."""
        joined = {
            name: np.concatenate([entry.arrays[name] for entry in group])
            for name in self.signature.inputs
        }
        deadlines = [entry.deadline for entry in group if entry.deadline is not None]
        latest = max(deadlines) if len(deadlines) == len(group) else None
        try:
            outputs = self.signature(joined, latest)
        except Exception:  # one bad request must not fail the others
            return False
        total = sum(entry.rows for entry in group)
        if any(array.ndim == 0 or array.shape[0] != total for array in outputs.values()):
            return False
        start = 0
        for entry in group:
            stop = start + entry.rows
            entry.batch = len(group)
            entry.outputs = {name: array[start:stop] for name, array in outputs.items()}
            start = stop
        return True


def _tell(waiting: list[asyncio.Future]) -> None:
    """Tells event loops, each once, that what they wait for is there."""

    def tell(loop: asyncio.AbstractEventLoop) -> None:
        for one in waiting:
            if one.get_loop() is loop and not one.done():  # the caller may have given up
                one.set_result(None)

    for loop in {one.get_loop() for one in waiting}:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the server has stopped
            loop.call_soon_threadsafe(tell, loop)
