"""gRPC's wire: requests come in, and answers go out whenever they are ready, from any thread.

grpcio's own server gives each request a thread, which sleeps until the message has come and again
until there is an answer. To wake it costs more than all the rest, and whoever opens requests
without sending a message holds all threads. So this one, like both servers of grpcio, stands on the
library's core: one thread takes what happens from a queue, and nobody sleeps.

The core, `cygrpc`, is not a public module. It has had the names used here for years, and
`setup.py` says which releases were tried.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from grpc._cython import cygrpc

from lemn_tf.export.errors import Code, ServingError, late, shorten

log = logging.getLogger("lemn_tf.server")

_MOST_CALLS = 1024
_LOOK = 0.2  # seconds between looks for calls whose time is over
_NO_FLAGS = 0
_OK = cygrpc.StatusCode.ok
_CODES = {code: getattr(cygrpc.StatusCode, code.name.lower()) for code in Code}


class Call:
    """A request under way, which is to be answered once; further answers are ignored.

    Attributes:
        method: its full name, such as `/tensorflow.serving.PredictionService/Predict`.
        start: `time.monotonic()` when it came.
        deadline: when nobody wants the answer any more.
        model: the name of the model that it is for, once that is known.
    """

    def __init__(self, wire: Wire, event: Any):
        self._wire, self._call = wire, event.call
        self.method = event.call_details.method.decode("utf-8", "replace")
        self.start, self.model = time.monotonic(), ""
        wanted = event.call_details.deadline - time.time()
        self.deadline = self.start + min(max(wanted, 0), wire.seconds)

    def answer(self, body: bytes, note: str = "-") -> bool:
        """Sends the answer; `note` is for the log. False if the call is over already."""
        if not self._wire.end(self, Code.OK, note):
            return False
        return self._send(_OK, b"", cygrpc.SendMessageOperation(body, _NO_FLAGS))

    def refuse(self, error: ServingError) -> bool:
        """Says what is wrong. False if the call is over already."""
        if not self._wire.end(self, error.code, error.message):
            return False
        return self._send(_CODES[error.code], error.message.encode("utf-8", "replace"))

    def _send(self, code: Any, details: bytes, *message: Any) -> bool:
        first = cygrpc.SendInitialMetadataOperation(None, _NO_FLAGS)
        last = cygrpc.SendStatusFromServerOperation(None, code, details, _NO_FLAGS)
        begun = self._wire.begin(self._call, [first, *message, last], _nothing)
        self._call = None
        return begun

    def receive(self) -> None:
        """Lets the message come."""
        close = cygrpc.ReceiveCloseOnServerOperation(_NO_FLAGS)
        self._wire.begin(self._call, [close], self._closed)
        message = cygrpc.ReceiveMessageOperation(_NO_FLAGS)
        self._wire.begin(self._call, [message], self._came)

    def _closed(self, event: Any) -> None:
        gone = event.batch_operations[0].cancelled()
        if gone and self._wire.end(self, Code.CANCELLED, "the client went away"):
            self._call = None  # nobody will answer it, and the core waits for who holds on to it

    def _came(self, event: Any) -> None:
        self._wire.take(self, event.batch_operations[0].message())


def _nothing(event: Any) -> None:
    """What is done about an event of no interest."""


class Wire:
    """Listens, and hands each request to the function for its method.

    Args:
        address: `HOST:PORT`; port 0 for any that is free.
        methods: full name to a function of the message and its call. It runs on the thread that
            everything comes on, so it must not take long.
        ended: told of each call, once, with the code and a note, when it is over.
        seconds: for a request to come and to be answered.
        most_bytes: of a request.
    """

    def __init__(
        self,
        address: str,
        methods: Mapping[str, Callable[[bytes, Call], None]],
        ended: Callable[[Call, Code, str], None],
        seconds: float,
        most_bytes: int,
    ):
        self.seconds, self._methods, self._ended = seconds, methods, ended
        self._open: dict[Call, bool] = {}  # not answered yet, the oldest first
        self._unread: dict[Call, bool] = {}  # those among them whose message has not come
        self._todo: deque[Callable[[], bool]] = deque()
        self._stopping, self._over = False, False
        # The core does not look after itself: what is started after the end, or ended while
        # another thread is still in it, is a crash.
        self._lock = threading.Lock()
        self._queue = cygrpc.CompletionQueue()
        options = (
            (b"grpc.max_receive_message_length", most_bytes),
            (b"grpc.max_send_message_length", -1),
            (b"grpc.so_reuseport", 0),
        )
        self._server = cygrpc.Server(options, False)
        self._server.register_completion_queue(self._queue)
        self.port = self._server.add_http2_port(address.encode())
        if not self.port:
            raise RuntimeError(f"could not bind to {address}")
        self._server.start()
        self._server.request_call(self._queue, self._queue, self._arrived)
        self._thread = threading.Thread(target=self._run, name="grpc", daemon=True)
        self._thread.start()

    def stop(self, grace: float) -> None:
        """Takes no new requests, and waits so many seconds for those under way."""
        with self._lock:
            self._stopping = True
            self._server.shutdown(self._queue, self._all_done)
        self._thread.join(grace)
        with self._lock:
            if not self._over:
                self._server.cancel_all_calls()
        self._thread.join(5)

    def do_soon(self, work: Iterable[Callable[[], bool]]) -> None:
        """Has things done on the thread of the wire, where nobody contends for the interpreter.

        Args:
            work: functions that tell whether they have sent something. The first are called here,
                until one has: to be told that it was sent wakes that thread.
        """
        self._todo.extend(work)
        while (one := self._next()) and not one():
            pass

    def _next(self) -> Callable[[], bool] | None:
        try:
            return self._todo.popleft()
        except IndexError:
            return None

    def begin(self, call: Any, operations: list, done: Callable[[Any], None]) -> bool:
        """Starts operations of a call; `done` is told when they are done. False after the end."""
        with self._lock:
            if not self._over:
                call.start_server_batch(operations, done)
            return not self._over

    def end(self, call: Call, code: Code, note: str) -> bool:
        """Takes note that a call is over; False if it was already."""
        self._unread.pop(call, False)
        if not self._open.pop(call, False):
            return False
        self._ended(call, code, note)
        return True

    def take(self, call: Call, message: bytes | None) -> None:
        """Has a request answered whose message has come."""
        self._unread.pop(call, False)
        if message is None:
            call.refuse(ServingError(Code.INVALID_ARGUMENT, "expected a message; got none"))
        else:
            self._methods[call.method](message, call)

    # -- on the thread of the wire ----------------------------------------------------------------

    def _run(self) -> None:
        looked, event = time.monotonic(), None
        while event is None or event.completion_type != cygrpc.CompletionType.queue_shutdown:
            event = None  # its call may be the last one that the server waits for
            event = self._queue.poll(time.time() + _LOOK)
            if event.tag is not None:
                try:
                    event.tag(event)
                except Exception:
                    log.exception("gRPC: an event was lost")
            while one := self._next():
                one()
            if time.monotonic() > looked + _LOOK:
                looked = time.monotonic()
                self._end_late(looked)

    def _all_done(self, event: Any) -> None:
        with self._lock:
            self._over = True
            self._server.destroy()
            self._queue.shutdown()

    def _arrived(self, event: Any) -> None:
        with self._lock:
            if self._stopping or not event.success:
                return
            self._server.request_call(self._queue, self._queue, self._arrived)
        call = Call(self, event)
        self._open[call] = True
        if call.method not in self._methods:
            call.refuse(ServingError(Code.UNIMPLEMENTED, f"no method {shorten(call.method)}"))
            return
        if len(self._open) > _MOST_CALLS:  # the one whose message is awaited longest makes room
            oldest = next(iter(self._unread), call)
            oldest.refuse(
                ServingError(Code.RESOURCE_EXHAUSTED, "too many requests are under way: try later")
            )
        if call in self._open:
            self._unread[call] = True
            call.receive()

    def _end_late(self, now: float) -> None:
        for call in list(self._open):
            if now < call.start + self.seconds:
                break
            call.refuse(late())
