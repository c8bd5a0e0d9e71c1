"""Joins concurrent requests to one signature into one call.

A request that finds the signature idle runs at once, on its own thread. Requests that arrive
meanwhile queue up, and the first of them takes all that fit together:

    idle:  A runs alone -> B, C, D arrive -> A is done, B leads: [B, C, D] run as one -> ...

A call takes nearly as long for one row as for many, so a leader first waits until as many are there
as were under way at the end of the last call: those who got an answer mostly ask again. It waits
only while they keep coming. So one client sees no added delay, and 64 soon share every call.
"""

from __future__ import annotations

import threading
import time
from collections import deque

import numpy as np

from lemn_tf.export.errors import late
from lemn_tf.export.loaded import LoadedSignature
from lemn_tf.export.tensors import Arrays

_PATIENCE = 8  # a leader waits for company so many times at most, each as long as a call takes
_SHORTEST, _LONGEST = 0.004, 0.05  # seconds; a call counts as at least and at most this long


class _Entry:
    """A request in the queue; `gate` opens when there is a result or when it is to lead."""

    __slots__ = ("arrays", "batch", "deadline", "error", "gate", "kind", "outputs", "rows")

    def __init__(self, arrays: Arrays, rows: int, kind: tuple | None, deadline: float | None):
        self.arrays, self.rows, self.kind, self.deadline = arrays, rows, kind, deadline
        self.outputs: Arrays | None = None
        self.error: Exception | None = None
        self.batch = 1
        self.gate = threading.Lock()
        self.gate.acquire()

    @property
    def done(self) -> bool:
        return self.outputs is not None or self.error is not None


class Batcher:
    """Runs one signature, several requests at a time.

    Args:
        signature: what to run.
        most_rows: rows in one call, unless a single request brings more.
    """

    def __init__(self, signature: LoadedSignature, most_rows: int = 64):
        if most_rows < 1:
            raise ValueError(f"expected most_rows of at least 1; got {most_rows}")
        self.signature, self.most_rows = signature, most_rows
        self._queue: deque[_Entry] = deque()
        self._lock, self._busy = threading.Lock(), False
        self._company = threading.Condition(self._lock)
        self._expected, self._took = 1, 0.0  # requests that a leader waits for; seconds of a call

    def run(self, arrays: Arrays, deadline: float | None = None) -> tuple[Arrays, int]:
        """Runs one request, perhaps with others.

        Args:
            arrays: checked inputs.
            deadline: `time.monotonic()` after which nobody wants the answer.

        Returns:
            The outputs, and how many requests shared the call.
        """
        rows = self.signature.rows(arrays)
        kind = tuple(arrays[name].shape[1:] for name in self.signature.inputs) if rows else None
        entry = _Entry(arrays, rows, kind, deadline)
        with self._lock:
            leads = not self._busy
            self._busy = True
            if not leads:
                self._queue.append(entry)
                if self._complete():
                    self._company.notify()
        if not leads:
            remaining = -1 if deadline is None else max(deadline - time.monotonic(), 0)
            if not entry.gate.acquire(timeout=remaining):
                with self._lock:
                    if not entry.done and entry in self._queue:
                        self._queue.remove(entry)
                        raise late()
                entry.gate.acquire()  # taken into a call at the last moment
        if not entry.done:
            self._lead(entry)
        if entry.error is not None:
            raise entry.error
        assert entry.outputs is not None
        return entry.outputs, entry.batch

    def _lead(self, first: _Entry) -> None:
        group = [first]
        try:
            if self.signature.batches and first.kind:
                self._wait()
                group += self._take(first)
            start = time.monotonic()
            self._run(group)
            self._took = min(max(time.monotonic() - start, _SHORTEST), _LONGEST)
        finally:
            with self._lock:
                fit = self.most_rows // max(first.rows, 1)
                self._expected = min(len(group) + len(self._queue), fit)
                heir = self._queue.popleft() if self._queue else None
                self._busy = heir is not None
            if heir is not None:
                heir.gate.release()
            for entry in group:
                if entry is not first:
                    entry.gate.release()

    def _complete(self) -> bool:
        return len(self._queue) + 1 >= self._expected

    def _wait(self) -> None:
        """Until the company is complete, or twice nobody came for as long as a call takes.

        Once is not enough: on a busy machine this process may not have run in the meantime.
        """
        with self._lock:
            alone = 0
            for _ in range(_PATIENCE):
                before = len(self._queue)
                if self._company.wait_for(self._complete, self._took):
                    return
                alone = alone + 1 if len(self._queue) == before else 0
                if alone == 2:
                    return

    def _take(self, first: _Entry) -> list[_Entry]:
        """Every queued request that fits beside `first`."""
        taken: list[_Entry] = []
        left: deque[_Entry] = deque()
        rows = first.rows
        with self._lock:
            for entry in self._queue:
                if entry.kind == first.kind and rows + entry.rows <= self.most_rows:
                    taken.append(entry)
                    rows += entry.rows
                else:
                    left.append(entry)
            self._queue = left
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
                entry.outputs = self.signature(entry.arrays)
            except Exception as error:  # raised again on the thread of the request
                entry.error = error

    def _together(self, group: list[_Entry]) -> bool:
        """One call for all; False if it failed, so that each is to be tried alone."""
        joined = {
            name: np.concatenate([entry.arrays[name] for entry in group])
            for name in self.signature.inputs
        }
        try:
            outputs = self.signature(joined)
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
