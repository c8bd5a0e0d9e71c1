"""Three ways to the same signatures: REST, gRPC, and a SavedModel in this process.

Each transport runs a signature on arrays and describes what signatures there are. Which one a
target means is read off its form: `http://host:8501`, `grpc://host:8500` or `host:8500`, or a
folder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

import grpc
import numpy as np
import requests
import tensorflow as tf
from google.protobuf import json_format
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from lemn_tf.export.server import json_tensors
from lemn_tf.export.server.catalog import find_models, versions
from lemn_tf.export.server.errors import HTTP_STATUS, Code, ServingError
from lemn_tf.export.server.servable import Arrays, Servable
from lemn_tf.export.server.tensors import Spec

_CODE_OF = {400: Code.INVALID_ARGUMENT, 413: Code.INVALID_ARGUMENT, 502: Code.UNAVAILABLE}
_CODE_OF = {status: code for code, status in reversed(HTTP_STATUS.items())} | _CODE_OF


class Shape(NamedTuple):
    """What a signature takes and gives: name to `Spec`."""

    inputs: dict[str, Spec]
    outputs: dict[str, Spec]


class Transport(Protocol):
    """A way to one model."""

    def describe(self) -> tuple[int, dict[str, Shape]]:
        """The version that answers, and its signatures; later calls go to that version."""

    def run(self, signature: str, arrays: Mapping[str, np.ndarray]) -> Arrays:
        """Runs a signature; raises `ServingError`."""

    def close(self) -> None:
        """Lets go of connections or models."""


def connect(target: str | Path, name: str | None = None, timeout: float = 30.0) -> Transport:
    """The transport that `target` means.

    Args:
        target: `http://HOST:PORT[/v1/models/NAME]`, `grpc://HOST:PORT[/NAME]`, `HOST:PORT`, or a
            folder with a SavedModel or with numbered versions of one.
        name: of the model, if the target does not say it; needed unless there is only one model
            and the server can tell (TF Serving cannot).
        timeout: seconds for each request.
    """
    text = str(target)
    if match := re.fullmatch(r"(https?://[^/]+)(?:/v1/models/([^/:]+))?/?", text):
        return Rest(match[1], match[2] or name, timeout)
    if match := re.fullmatch(r"grpc://([^/]+)(?:/([^/:]+))?/?", text):
        return Grpc(match[1], match[2] or name, timeout)
    if Path(text).is_dir():
        return InProcess(text)
    if re.fullmatch(r"[\w.-]+:\d+|\[[0-9a-fA-F:]+\]:\d+", text):
        return Grpc(text, name, timeout)
    raise ValueError(
        "expected http://HOST:PORT, grpc://HOST:PORT, HOST:PORT or a folder with a SavedModel; "
        f"got {text!r}"
    )


class InProcess:
    """A SavedModel loaded here.

    Args:
        path: its folder, or one with numbered versions, of which the newest is taken.
    """

    def __init__(self, path: str | Path):
        found = find_models(Path(path))
        if len(found) != 1:
            raise ValueError(f"{path}: expected one model; got {[model.name for model in found]}")
        folders = versions(found[0].base)
        newest = max(folders)
        self.servable = Servable(folders[newest], found[0].name, newest)

    def describe(self) -> tuple[int, dict[str, Shape]]:
        signatures = self.servable.signatures.items()
        return self.servable.version, {k: Shape(s.inputs, s.outputs) for k, s in signatures}

    def run(self, signature: str, arrays: Mapping[str, np.ndarray]) -> Arrays:
        return self.servable.run(signature, arrays)

    def close(self) -> None:
        self.servable.close()


class Rest:
    """A server's REST API.

    Args:
        base: e.g. `http://127.0.0.1:8501`.
        name: of the model.
        timeout: seconds for each request.
    """

    def __init__(self, base: str, name: str | None, timeout: float):
        self.base, self.name, self.timeout = base, name, timeout
        self._session, self._model, self._shapes = requests.Session(), "", {}

    def describe(self) -> tuple[int, dict[str, Shape]]:
        name = self.name or self._only_model()
        document = self._ask("GET", f"/v1/models/{name}/metadata")
        signatures = get_model_metadata_pb2.SignatureDefMap()
        json_format.ParseDict(
            document["metadata"]["signature_def"], signatures, ignore_unknown_fields=True
        )
        version = int(document["model_spec"]["version"])
        self._model, self._shapes = f"/v1/models/{name}/versions/{version}", _shapes(signatures)
        return version, self._shapes

    def _only_model(self) -> str:
        try:
            names = self._ask("GET", "/").get("models", [])
        except ServingError as error:
            if error.code is Code.UNAVAILABLE:
                raise
            names = []
        return _single(names, f"{self.base}/v1/models/NAME")

    def run(self, signature: str, arrays: Mapping[str, np.ndarray]) -> Arrays:
        body = json_tensors.request(arrays, signature)
        outputs = self._ask("POST", f"{self._model}:predict", body)["outputs"]
        specs = self._shapes[signature].outputs
        if len(specs) == 1:
            outputs = {next(iter(specs)): outputs}
        return {name: json_tensors.array(outputs[name], spec) for name, spec in specs.items()}

    def _ask(self, method: str, path: str, body: bytes | None = None) -> dict:
        headers = {"Content-Type": "application/json"} if body else None
        try:
            response = self._session.request(
                method, self.base + path, data=body, headers=headers, timeout=self.timeout
            )
        except requests.Timeout as error:
            raise ServingError(Code.DEADLINE_EXCEEDED, f"{self.base}: {error}") from error
        except requests.ConnectionError as error:
            raise ServingError(Code.UNAVAILABLE, f"{self.base}: {error}") from error
        try:
            document = response.json()
        except requests.JSONDecodeError:
            document = {"error": f"expected JSON; got {response.text[:200]!r}"}
        if response.status_code != 200 or "error" in document:
            code = _CODE_OF.get(response.status_code, Code.UNKNOWN)
            raise ServingError(code, str(document.get("error", response.reason)))
        return document

    def close(self) -> None:
        self._session.close()


class Grpc:
    """A server's gRPC API.

    Args:
        address: `host:port`.
        name: of the model.
        timeout: seconds for each request.
    """

    def __init__(self, address: str, name: str | None, timeout: float):
        self.address, self.name, self.timeout = address, name, timeout
        self._channel = grpc.insecure_channel(
            address,
            options=[
                ("grpc.max_receive_message_length", -1),
                ("grpc.initial_reconnect_backoff_ms", 100),
                ("grpc.min_reconnect_backoff_ms", 100),
                ("grpc.max_reconnect_backoff_ms", 2000),
            ],
        )
        self._stub = prediction_service_pb2_grpc.PredictionServiceStub(self._channel)
        self._version = 0

    def describe(self) -> tuple[int, dict[str, Shape]]:
        request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
        request.model_spec.name = self.name or ""
        try:
            response = self._call(self._stub.GetModelMetadata, request)
        except ServingError as error:
            if self.name or error.code is Code.UNAVAILABLE:
                raise
            _single([], f"grpc://{self.address}/NAME")
        self.name = response.model_spec.name
        self._version = response.model_spec.version.value
        signatures = get_model_metadata_pb2.SignatureDefMap()
        response.metadata["signature_def"].Unpack(signatures)
        return self._version, _shapes(signatures)

    def run(self, signature: str, arrays: Mapping[str, np.ndarray]) -> Arrays:
        request = predict_pb2.PredictRequest()
        request.model_spec.name = self.name
        request.model_spec.version.value = self._version
        request.model_spec.signature_name = signature
        for name, value in arrays.items():
            request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
        response = self._call(self._stub.Predict, request)
        return {name: tf.make_ndarray(proto) for name, proto in response.outputs.items()}

    def _call(self, method, request):
        try:
            return method(request, timeout=self.timeout)
        except grpc.RpcError as error:
            raise ServingError(error.code(), f"{self.address}: {error.details()}") from error

    def close(self) -> None:
        self._channel.close()


def _shapes(signatures: get_model_metadata_pb2.SignatureDefMap) -> dict[str, Shape]:
    def specs(infos):
        return {name: Spec.of(name, infos[name]) for name in infos}

    return {
        name: Shape(specs(definition.inputs), specs(definition.outputs))
        for name, definition in signatures.signature_def.items()
    }


def _single(names: list[str], form: str) -> str:
    if len(names) != 1:
        raise ValueError(f"which model? Say {form}, or name=...; the server names {names}")
    return names[0]
