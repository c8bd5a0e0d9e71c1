"""HTTP connections that are closed if a request does not come whole in time."""

from __future__ import annotations

import asyncio
from typing import cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


def impatient(seconds: float) -> type[asyncio.Protocol]:
    """A protocol for uvicorn that waits only so long for a request.

    Without it, whoever opens a connection and sends nothing, or half of a request, holds it for
    ever.

    Args:
        seconds: from the opening of the connection, or from the last answer, until the next
            request has come whole.
    """

    class Impatient(H11Protocol):
        """Closes the connection when the time for a request is over."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._start()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._clock.cancel()
            self._start()

        def connection_lost(self, exc: Exception | None) -> None:
            self._clock.cancel()
            super().connection_lost(exc)

        def _start(self) -> None:
            self._clock = self.loop.call_later(seconds, self._time_is_over)

        def _time_is_over(self) -> None:
            if self.conn.their_state not in (h11.DONE, h11.MUST_CLOSE):  # not come whole
                self.transport.close()

    return cast("type[asyncio.Protocol]", Impatient)
