"""HTTP connections that are closed if a request does not arrive in time, or does not end."""

from __future__ import annotations

import asyncio
from typing import cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_OVERHEAD = 1 << 16  # bytes of a request that are not its body


def impatient(seconds: float, most: int, connections: int) -> type[asyncio.Protocol]:
    """A protocol for uvicorn that waits only so long for a request, and takes only so much.

    Without it, a client that opens a connection and sends nothing, or half of a request, holds it
    for ever, and one that sends a header without an end fills the memory. Opening many connections
    keeps nobody else out: a new one takes the place of the one whose request is awaited longest.

    Args:
        seconds: from the opening of the connection, or from the last answer, until the next
            request has arrived completely.
        most: bytes of a body. The rest of a request, such as its headers and the sizes of chunks,
            may have as many, and a few more.
        connections: at once.
    """
    awaited: dict[Impatient, None] = {}  # whose request is incomplete, longest first

    class Impatient(HttpToolsProtocol):
        """Closes the connection when the time for a request is over."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._came = 0  # bytes of an incomplete request
            self._start()
            longest = next(iter(awaited))
            if len(self.connections) > connections and longest is not self:
                del awaited[longest]
                longest.transport.abort()

        def data_received(self, data: bytes) -> None:
            self._came += len(data)
            super().data_received(data)
            if self._came > 2 * most + _OVERHEAD:
                self.transport.close()

        def on_message_complete(self) -> None:
            super().on_message_complete()
            self._came = 0
            awaited.pop(self, None)

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._clock.cancel()
            self._start()

        def connection_lost(self, exc: Exception | None) -> None:
            self._clock.cancel()
            awaited.pop(self, None)
            super().connection_lost(exc)

        def _start(self) -> None:
            awaited[self] = None
            self._clock = self.loop.call_later(seconds, self._time_is_over)

        def _time_is_over(self) -> None:
            cycle = self.cycle
            if cycle is None or cycle.response_complete or cycle.more_body:  # incomplete
                self.transport.close()

    return cast("type[asyncio.Protocol]", Impatient)
