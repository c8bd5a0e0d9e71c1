"""Large requests go through a gate, a few at a time, so that the others need not wait for them."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator

from lemn_tf.export.errors import Code, ServingError, late


class Gate:
    """Lets a few requests in at once and a few more wait; the rest are refused.

    Args:
        inside: how many may be inside at once; default: one less than there are processors.
        waiting: how many may wait.
    """

    def __init__(self, inside: int | None = None, waiting: int = 16):
        self.inside = max(1, (os.cpu_count() or 2) - 1) if inside is None else inside
        self.waiting = waiting
        self._lock, self._free = threading.Lock(), threading.Semaphore(self.inside)
        self._here, self._closed = 0, False

    def close(self) -> None:
        """Sends away whoever waits or comes."""
        self._closed = True
        self._free.release(self.waiting + 1)

    @contextlib.contextmanager
    def enter(self, deadline: float | None = None) -> Iterator[None]:
        """Waits until there is room; raises RESOURCE_EXHAUSTED, DEADLINE_EXCEEDED or UNAVAILABLE.

        Args:
            deadline: `time.monotonic()` after which waiting is useless.
        """
        with self._lock:
            if self._here >= self.inside + self.waiting:
                raise ServingError(
                    Code.RESOURCE_EXHAUSTED, "too many large requests are under way: try later"
                )
            self._here += 1
        try:
            left = None if deadline is None else max(deadline - time.monotonic(), 0)
            if not self._free.acquire(timeout=left):
                raise late()
            try:
                if self._closed:
                    raise ServingError(Code.UNAVAILABLE, "the server is stopping")
                yield
            finally:
                self._free.release()
        finally:
            with self._lock:
                self._here -= 1
