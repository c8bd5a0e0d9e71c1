"""Several servers of the same model, taken in turn.

The memory travels with each request, so it does not matter which replica answers, and a request
that was lost with one of them is simply sent to the next.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from lemn_tf.export.errors import Code, ServingError
from lemn_tf.export.tensors import Arrays
from lemn_tf.export.transport.base import Interface, Transport

REST = 5.0
"""Seconds in which a replica that was not available is asked only if no other one can be."""
T = TypeVar("T")


class Replicas:
    """Transports to the same model on several servers.

    Args:
        transports: one to each.
    """

    def __init__(self, transports: Sequence[Transport]):
        if not transports:
            raise ValueError("expected the addresses of one replica or more, got none")
        self._transports = list(transports)
        self._rests_until = [0.0] * len(transports)
        self._turn = 0
        self._met: dict[int, dict[str, Interface]] = {}
        self._version: int | None = None

    def describe(self, version: int | None = None) -> tuple[int, dict[str, Interface]]:
        self._met.clear()
        self._version = version
        return self._by_turns(self._meet)

    def _meet(self, number: int) -> tuple[int, dict[str, Interface]]:
        """Asks a replica for the version that the first one named."""
        self._version, interfaces = self._transports[number].describe(self._version)
        self._met[number] = interfaces
        return self._version, interfaces

    def run(self, signature: str, arrays: Mapping[str, np.ndarray]) -> Arrays:
        def ask(number: int) -> Arrays:
            if number not in self._met:
                self._meet(number)
            return self._transports[number].run(signature, arrays)

        return self._by_turns(ask)

    def _by_turns(self, function: Callable[[int], T]) -> T:
        """Calls a function with the replica whose turn it is, or the next one that is available."""
        count = len(self._transports)
        turns = [(self._turn + step) % count for step in range(count)]
        now = time.monotonic()
        turns.sort(key=lambda number: self._rests_until[number] > now)
        for number in turns:
            self._turn = (number + 1) % count
            try:
                return function(number)
            except ServingError as error:
                if error.code is not Code.UNAVAILABLE:
                    raise
                self._rests_until[number] = time.monotonic() + REST
                lost = error
        raise lost

    def close(self) -> None:
        for transport in self._transports:
            transport.close()
