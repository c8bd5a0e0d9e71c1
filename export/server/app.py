"""The server as a whole: both front doors over one catalog, started and stopped together."""

from __future__ import annotations

import contextlib
import gc
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import uvicorn

from lemn_tf.export.server import grpc_api
from lemn_tf.export.server.catalog import Catalog
from lemn_tf.export.server.http import impatient
from lemn_tf.export.server.rest_api import RestApi

_MOST_CONNECTIONS = 1024  # of REST; from there on those that wait longest make room


class Server:
    """Serves the SavedModels under a folder over gRPC and REST.

    Args:
        path: a SavedModel, a folder of numbered versions, or a folder of such folders.
        port: of gRPC; 0 for any that is free.
        rest_port: of REST; 0 for any that is free.
        host: address to listen on; keep it a loopback address unless others may use the server.
        name: of the model, if there is only one; the folder's name if not given.
        **catalog: passed on to `Catalog`: `labels`, `keep`, `batch_rows`, `poll`, `threads`,
            `limits`, `key`.

    Example:

        with Server("models/babi", port=0, rest_port=0) as server:
            client = MemoryClient(server.rest_url)
    """

    def __init__(
        self,
        path: str | Path,
        port: int = 8500,
        rest_port: int = 8501,
        host: str = "127.0.0.1",
        name: str | None = None,
        **catalog: Any,
    ):
        self.host = host
        listener = _listen(host, rest_port)
        try:
            self.catalog = Catalog(path, name, **catalog)
            try:
                self._grpc = grpc_api.serve(self.catalog, host, port)
            except RuntimeError as error:
                self.catalog.close()
                raise OSError(f"cannot listen on {host}:{port} for gRPC: {error}") from error
        except BaseException:
            listener.close()
            raise
        self.port, self.rest_port = self._grpc.port, listener.getsockname()[1]
        config = uvicorn.Config(
            RestApi(self.catalog),
            http=impatient(
                self.catalog.limits.seconds, self.catalog.limits.request_bytes, _MOST_CONNECTIONS
            ),
            log_config=None,
            access_log=False,
            proxy_headers=False,
            lifespan="off",
            interface="asgi3",
            ws="none",
            server_header=False,
            limit_concurrency=2 * _MOST_CONNECTIONS,  # when all are busy: 503
        )
        self._rest = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._rest.run, args=([listener],), name="rest", daemon=True
        )
        self._thread.start()
        self._stopped = threading.Event()
        give_up = time.monotonic() + 30
        while not self._rest.started and self._thread.is_alive() and time.monotonic() < give_up:
            time.sleep(0.005)

    @property
    def rest_url(self) -> str:
        """Where REST is, e.g. `http://127.0.0.1:8501`."""
        return f"http://{self.host}:{self.rest_port}"

    @property
    def grpc_url(self) -> str:
        """Where gRPC is, e.g. `grpc://127.0.0.1:8500`."""
        return f"grpc://{self.host}:{self.port}"

    def stop(self, grace: float = 10.0) -> None:
        """Takes no new requests, finishes those under way, frees the models.

        Args:
            grace: seconds after which requests under way are cut off.
        """
        if self._stopped.is_set():
            return
        self._rest.config.timeout_graceful_shutdown = max(int(grace), 1)
        self._rest.should_exit = True
        self._grpc.stop(grace)
        self._thread.join(grace + 1)
        self.catalog.close()
        self._stopped.set()

    def wait(self) -> None:
        """Serves until SIGINT or SIGTERM comes or `stop` is called, then stops.

        Meanwhile the garbage collector leaves alone what is there now: TensorFlow and the models
        are a million objects, and to look through them holds up all requests.
        """
        asked = threading.Event()
        gc.collect()
        gc.freeze()
        try:
            with _on_signals(asked.set):
                while not asked.is_set() and not self._stopped.is_set():
                    asked.wait(0.5)
                self.stop()
        finally:
            gc.unfreeze()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio turns off Nagle's delay on what it accepts: 40 ms a request.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise OSError(f"cannot listen on {host}:{port} for REST: {error.strerror}") from error
    listener.listen(1024)
    return listener


@contextlib.contextmanager
def _on_signals(action: Callable[[], None]) -> Iterator[None]:
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: action()) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
