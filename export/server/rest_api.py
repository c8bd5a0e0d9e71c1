"""The REST front door: `/v1/models/NAME[/versions/V|/labels/L][:predict]`, `/metadata`, status."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from urllib.parse import unquote

from google.protobuf import json_format
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_pb2,
)

from lemn_tf.export import folders, json_tensors
from lemn_tf.export.errors import Code, ServingError, invalid, shorten
from lemn_tf.export.loaded import LoadedSignature
from lemn_tf.export.server import grpc_api, metrics
from lemn_tf.export.server.catalog import Catalog, Version

log = logging.getLogger("lemn_tf.server")

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
"""What ASGI hands over: what is asked for, where its body comes from, where the answer goes."""

_WHICH = r"/v1/models/([^/:]+)(?:/versions/(\d{1,19})|/labels/([^/:]+))?"
_POST = re.compile(_WHICH + r":(classify|regress|predict)", re.IGNORECASE)
_GET = re.compile(_WHICH + r"(/metadata)?", re.IGNORECASE)
_SMALL = 1 << 14  # bytes of a body that is read on the event loop
_FEW = 1 << 12  # elements of an answer that is written there


class RestApi:
    """An ASGI application.

    Args:
        catalog: the models.
    """

    def __init__(self, catalog: Catalog):
        self.catalog, self.limits = catalog, catalog.limits
        self._endpoint = grpc_api.Endpoint(catalog)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, and writes one line to the log."""
        start = time.monotonic()
        method, path = scope["method"], scope["raw_path"].decode("ascii", "replace")
        status, code, note, body = 500, Code.INTERNAL, "-", None
        try:
            async with asyncio.timeout(self.limits.seconds):
                body = await self._body(dict(scope["headers"]), receive)
                content, note = await self._work(method, path, body, start + self.limits.seconds)
            if len(content) > self.limits.answer_bytes:
                raise grpc_api.too_long(len(content), self.limits)
            status, code = 200, Code.OK
        except ServingError as error:
            status, code, note = error.code.http, error.code, error.message
        except TimeoutError:
            what, code = "body" if body is None else "answer", Code.DEADLINE_EXCEEDED
            status = 408 if body is None else code.http
            note = f"no {what} within {self.limits.seconds:g} seconds"
        except ConnectionError:
            status, code, note = Code.CANCELLED.http, Code.CANCELLED, "the client went away"
        except Exception:
            note = "internal error; the server's log says more"
            log.exception("REST %s %s failed", method, shorten(path, 200))
        finally:
            took = time.monotonic() - start
            said = shorten(path, 200)[1:-1]
            log.info("REST %s %s %d %.2f ms %s", method, said, status, 1e3 * took, note)
            if method == "POST" and (match := _POST.fullmatch(path.split("?")[0])):
                self.catalog.count(unquote(match[1]), code.name, "REST", took)
        if status != 200:
            content = json_tensors.error(note)
        watched = status == 200 and path.split("?")[0] == metrics.PATH
        headers = [
            (b"content-type", metrics.CONTENT_TYPE if watched else b"application/json"),
            (b"content-length", b"%d" % len(content)),
        ]
        if body is None:
            headers.append((b"connection", b"close"))  # the rest of the request is not read
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        announced = headers.get(b"content-length", b"")
        if announced and b"transfer-encoding" in headers:
            raise invalid("expected either Content-Length or Transfer-Encoding; got both")
        if announced.isdigit() and int(announced) > self.limits.request_bytes:
            raise self._too_large(int(announced))
        parts, size, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ConnectionError
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
            size += len(parts[-1])
            if size > self.limits.request_bytes:
                raise self._too_large(size)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _too_large(self, size: int) -> ServingError:
        return invalid(
            f"the body has {size} bytes or more; at most {self.limits.request_bytes} are taken"
        )

    async def _work(
        self, method: str, path: str, body: bytes, deadline: float
    ) -> tuple[bytes, str]:
        path = path.split("?")[0]
        if method == "POST" and (match := _POST.fullmatch(path)):
            if match[4].lower() != "predict":
                raise ServingError(Code.UNIMPLEMENTED, f"{match[4]} is not served: use predict")
            return await self._predict(match, body, deadline)
        return await self._on_thread(self._look, method, path)

    async def _on_thread(self, work: Callable, *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self.catalog.pool, work, *arguments)

    async def _predict(self, match: re.Match, body: bytes, deadline: float) -> tuple[bytes, str]:
        """Runs a request; little is read and written on the event loop, more on a thread."""
        little = len(body) <= _SMALL
        document = (
            json_tensors.parse(body) if little else await self._on_thread(json_tensors.parse, body)
        )
        with self._asked(match, document) as (version, signature):
            read = json_tensors.arrays
            given = (
                read(document, signature)
                if little
                else await self._on_thread(read, document, signature)
            )
            arrays, rows = given
            outputs, batch = await version.run_from_loop(signature, arrays, deadline)
            note = f"{version.model.name}/{version.model.version}:{signature.name} batch={batch}"
            if sum(array.size for array in outputs.values()) <= _FEW:
                return json_tensors.response(outputs, rows), note
            return await self._on_thread(json_tensors.response, outputs, rows), note

    # -- on a thread of the pool ------------------------------------------------------------------

    def _look(self, method: str, path: str) -> tuple[bytes, str]:
        """Answers what is not a request to a model."""
        if method == "GET" and path == "/":
            return self._about()
        if method == "GET" and path == metrics.PATH:
            return self.catalog.metrics.text().encode(), "metrics"
        if method == "GET" and (match := _GET.fullmatch(path)):
            return self._metadata(match) if match[4] else self._status(match)
        raise invalid(f"malformed request: {method} {shorten(path, 200)[1:-1]}")

    def _about(self) -> tuple[bytes, str]:
        """What this server is and which models it has; TF Serving has no such page."""
        names = sorted(self.catalog.models)
        return json.dumps({"server": "lemn_tf embedded server", "models": names}).encode(), "about"

    @contextlib.contextmanager
    def _asked(self, match: re.Match, document: dict) -> Iterator[tuple[Version, LoadedSignature]]:
        """What a request is for: a version, which stays loaded meanwhile, and a signature."""
        with self.catalog.lease(*_wanted(match)) as version:
            try:
                signature = version.model.signature(json_tensors.signature_name(document))
            except ServingError as error:
                raise invalid(error.message) from error
            yield version, signature

    def _metadata(self, match: re.Match) -> tuple[bytes, str]:
        request = get_model_metadata_pb2.GetModelMetadataRequest(
            model_spec=_spec(match), metadata_field=["signature_def"]
        )
        response, note = self._endpoint.metadata(request)
        signatures = get_model_metadata_pb2.SignatureDefMap()
        response.metadata["signature_def"].Unpack(signatures)
        content = {
            "model_spec": _plain(response.model_spec),
            "metadata": {"signature_def": _plain(signatures)},
        }
        return json.dumps(content, indent=1).encode(), note

    def _status(self, match: re.Match) -> tuple[bytes, str]:
        request = get_model_status_pb2.GetModelStatusRequest(model_spec=_spec(match))
        response, note = self._endpoint.status(request)
        content = _plain(response)
        for status in content["model_version_status"]:
            # TF Serving writes the code by name and leaves nothing out.
            status.setdefault("status", {"error_code": "OK", "error_message": ""})
        return json.dumps(content, indent=1).encode(), note


def _wanted(match: re.Match) -> tuple[str, int | None, str]:
    version = int(match[2]) if match[2] else None
    if version is not None and version > folders.LARGEST:
        raise invalid(f"the version must be at most {folders.LARGEST}; got {shorten(match[2])}")
    return unquote(match[1]), version, unquote(match[3] or "")


def _spec(match: re.Match) -> model_pb2.ModelSpec:
    name, version, label = _wanted(match)
    spec = model_pb2.ModelSpec(name=name, version_label=label)
    if version is not None:
        spec.ClearField("version_label")
        spec.version.value = version
    return spec


def _plain(message) -> dict:
    return json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
