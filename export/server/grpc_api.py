"""The gRPC front door: `PredictionService` and `ModelService` of tensorflow-serving-api.

Requests are taken as bytes and parsed here, so that bytes that are no message are refused with
INVALID_ARGUMENT like any other malformed request. Handlers run on a pool of threads: with requests
this small, a thread that runs the model itself beats handing over from an event loop.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent import futures
from typing import Any

import grpc
from google.protobuf.message import DecodeError, Message
from tensorflow_serving.apis import get_model_metadata_pb2, get_model_status_pb2, status_pb2

from lemn_tf.export import messages, protos
from lemn_tf.export.errors import Code, ServingError, invalid, shorten
from lemn_tf.export.limits import Limits
from lemn_tf.export.loaded import LoadedSignature
from lemn_tf.export.server.catalog import Catalog

log = logging.getLogger("lemn_tf.server")

Reply = tuple[Message, str]
"""A message, and a note for the log."""
Method = Callable[[Any, float | None], Reply]
_STATES = get_model_status_pb2.ModelVersionStatus.State


class Endpoint:
    """The methods themselves: message in, message and a note for the log out.

    Args:
        catalog: the models.
    """

    def __init__(self, catalog: Catalog):
        self.catalog = catalog

    def predict(self, request: Any, deadline: float | None) -> Reply:
        """`PredictionService.Predict`."""
        spec = request.model_spec
        with self.catalog.lease(*wanted(spec)) as version:
            signature = version.model.signature(spec.signature_name)
            signature.check_names(request.inputs)
            arrays = {
                name: protos.decode(request.inputs[name], expected)
                for name, expected in signature.inputs.items()
            }
            chosen = _chosen(request, signature)
            outputs, batch = version.run(signature, arrays, deadline)
            response = messages.PackedResponse()
            for name in chosen:
                protos.encode(outputs[name], response.outputs[name], signature.outputs[name].enum)
            model = version.model
            response.model_spec.name = model.name
            response.model_spec.version.value = model.version
            response.model_spec.signature_name = signature.name
            return response, f"{model.name}/{model.version}:{signature.name} batch={batch}"

    def metadata(self, request: Any, deadline: float | None = None) -> Reply:
        """`PredictionService.GetModelMetadata`."""
        fields = list(request.metadata_field)
        if fields != ["signature_def"]:
            raise invalid(f"metadata_field must be ['signature_def']; got {shorten(fields)}")
        with self.catalog.lease(*wanted(request.model_spec)) as version:
            model = version.model
            response = get_model_metadata_pb2.GetModelMetadataResponse()
            response.model_spec.name = model.name
            response.model_spec.version.value = model.version
            signatures = get_model_metadata_pb2.SignatureDefMap()
            for name, signature in model.signatures.items():
                signatures.signature_def[name].CopyFrom(signature.definition)
            response.metadata["signature_def"].Pack(signatures)
            return response, f"{model.name}/{model.version} metadata"

    def status(self, request: Any, deadline: float | None = None) -> Reply:
        """`ModelService.GetModelStatus`."""
        name, version, label = wanted(request.model_spec)
        response = get_model_status_pb2.GetModelStatusResponse()
        for number, status in self.catalog.statuses(name, version, label).items():
            code = Code.UNKNOWN.value if status.error else 0
            response.model_version_status.add(
                version=number,
                state=_STATES.Value(status.state),
                status=status_pb2.StatusProto(error_code=code, error_message=status.error),
            )
        return response, f"{name} status"


def wanted(spec: Any) -> tuple[str, int | None, str]:
    """Name, version and label that a request asks for."""
    version = spec.version.value if spec.HasField("version") else None
    return spec.name, version, spec.version_label


def _chosen(request: Any, signature: LoadedSignature) -> list[str]:
    names = list(request.output_filter)
    for name in names:
        if name not in signature.outputs:
            raise invalid(f"no output {shorten(name)}; there are {sorted(signature.outputs)}")
    if len(set(names)) != len(names):
        raise invalid(f"output_filter names an output twice: {shorten(names)}")
    return names or list(signature.outputs)


def too_long(size: int, limits: Limits) -> ServingError:
    """The answer is too large: RESOURCE_EXHAUSTED, 429."""
    return ServingError(
        Code.RESOURCE_EXHAUSTED,
        f"the answer has {size} bytes; at most {limits.answer_bytes} are given",
    )


def _handler(method: Method, message: Any, title: str, catalog: Catalog) -> grpc.RpcMethodHandler:
    limits = catalog.limits

    def handle(body: bytes, context: grpc.ServicerContext) -> bytes:
        start = time.monotonic()
        remaining = context.time_remaining()
        deadline = start + min(limits.seconds if remaining is None else remaining, limits.seconds)
        note, code, model = "-", Code.OK, ""
        try:
            try:
                request = message.FromString(body)
            except DecodeError as error:
                raise invalid(f"the request is not a {message.DESCRIPTOR.name}") from error
            model = request.model_spec.name
            response, note = method(request, deadline)
            answer = response.SerializeToString()
            if len(answer) > limits.answer_bytes:
                raise too_long(len(answer), limits)
            return answer
        except ServingError as error:
            code, note = error.code, error.message
        except Exception:
            code, note = Code.INTERNAL, "internal error; the server's log says more"
            log.exception("gRPC %s failed", title)
        finally:
            took = time.monotonic() - start
            log.info("gRPC %s %s %.2f ms %s", title, code.name, 1e3 * took, note)
            if title == "Predict":
                catalog.count(model, code.name, "GRPC", took)
        context.abort(grpc.StatusCode[code.name], note)
        raise AssertionError("abort raises")

    return grpc.unary_unary_rpc_method_handler(handle)


def serve(catalog: Catalog, host: str, port: int, threads: int = 128) -> tuple[grpc.Server, int]:
    """Starts the gRPC server.

    Args:
        catalog: the models.
        host: address to listen on.
        port: 0 for any that is free.
        threads: requests under way at once.

    Returns:
        The server and its port.
    """
    endpoint = Endpoint(catalog)
    prediction = {
        "Predict": _handler(endpoint.predict, messages.PredictRequest, "Predict", catalog),
        "GetModelMetadata": _handler(
            endpoint.metadata,
            get_model_metadata_pb2.GetModelMetadataRequest,
            "GetModelMetadata",
            catalog,
        ),
    }
    models = {
        "GetModelStatus": _handler(
            endpoint.status, get_model_status_pb2.GetModelStatusRequest, "GetModelStatus", catalog
        )
    }
    server = grpc.server(
        futures.ThreadPoolExecutor(threads, thread_name_prefix="grpc"),
        options=[
            ("grpc.max_receive_message_length", catalog.limits.request_bytes),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", 0),
        ],
    )
    generic = grpc.method_handlers_generic_handler
    server.add_generic_rpc_handlers(
        [
            generic("tensorflow.serving.PredictionService", prediction),
            generic("tensorflow.serving.ModelService", models),
        ]
    )
    bound = server.add_insecure_port(f"{host}:{port}")
    server.start()
    return server, bound
