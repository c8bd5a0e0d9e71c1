"""A server's gRPC API. Needs `grpcio` and `protobuf`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import grpc
import numpy as np

from lemn_tf.export import messages
from lemn_tf.export.errors import Code, ServingError
from lemn_tf.export.protos import decode, encode
from lemn_tf.export.tensors import Arrays, Spec
from lemn_tf.export.transport.base import Interface, only

_SERVICE = "/tensorflow.serving.PredictionService/"


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
        self._predict = self._method("Predict", messages.PredictResponse)
        self._metadata = self._method("GetModelMetadata", messages.GetModelMetadataResponse)
        self._version = 0
        self._interfaces: dict[str, Interface] = {}

    def _method(self, name: str, answer: Any) -> grpc.UnaryUnaryMultiCallable:
        return self._channel.unary_unary(
            _SERVICE + name,
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=answer.FromString,
        )

    def describe(self, version: int | None = None) -> tuple[int, dict[str, Interface]]:
        request = messages.GetModelMetadataRequest(metadata_field=["signature_def"])
        request.model_spec.name = self.name or ""
        if version is not None:
            request.model_spec.version.value = version
        try:
            response = self._call(self._metadata, request)
        except ServingError as error:
            if self.name or error.code is Code.UNAVAILABLE:
                raise
            only([], f"grpc://{self.address}/NAME")
        self.name = response.model_spec.name
        self._version = response.model_spec.version.value
        found = messages.SignatureDefMap.FromString(response.metadata["signature_def"].value)
        self._interfaces = {
            key: Interface(_specs(definition.inputs), _specs(definition.outputs))
            for key, definition in found.signature_def.items()
            if not key.startswith("__")
        }
        return self._version, self._interfaces

    def run(self, signature: str, arrays: Mapping[str, np.ndarray]) -> Arrays:
        request = messages.PredictRequest()
        request.model_spec.name = self.name
        request.model_spec.version.value = self._version
        request.model_spec.signature_name = signature
        for name, value in arrays.items():
            encode(value, request.inputs[name])
        outputs = self._call(self._predict, request).outputs
        specs = self._interfaces[signature].outputs
        return {name: decode(outputs[name], spec) for name, spec in specs.items()}

    def _call(self, method: grpc.UnaryUnaryMultiCallable, request: Any) -> Any:
        try:
            return method(request, timeout=self.timeout)
        except grpc.RpcError as error:
            code = Code[error.code().name]
            raise ServingError(code, f"{self.address}: {error.details()}") from error

    def close(self) -> None:
        self._channel.close()


def _specs(infos: Mapping[str, Any]) -> dict[str, Spec]:
    return {name: Spec.of(name, infos[name]) for name in infos}
