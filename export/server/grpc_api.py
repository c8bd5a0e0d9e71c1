"""The gRPC front door: `PredictionService` and `ModelService` of tensorflow-serving-api.

Requests are taken as bytes and parsed here, so that bytes that are no message are refused with
INVALID_ARGUMENT like any other malformed request. Small ones are read, and small
answers written, on the thread that they come on.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import DecodeError, Message
from tensorflow_serving.apis import get_model_metadata_pb2, get_model_status_pb2, status_pb2

from lemn_tf.export import messages, protos
from lemn_tf.export.errors import Code, ServingError, invalid, shorten
from lemn_tf.export.limits import Limits
from lemn_tf.export.loaded import LoadedSignature
from lemn_tf.export.server.batching import Entry
from lemn_tf.export.server.catalog import Catalog, Version
from lemn_tf.export.server.wire import Call, Wire
from lemn_tf.export.tensors import Arrays

log = logging.getLogger("lemn_tf.server")

Reply = tuple[Message, str]
"""A message, and a note for the log."""
Method = Callable[[Any], Reply]
_STATES = get_model_status_pb2.ModelVersionStatus.State
_SMALL = 1 << 14  # bytes of a request that is read on the thread that it comes on
_FEW = 1 << 12  # elements of an answer that is written there
_PREDICT = "/tensorflow.serving.PredictionService/Predict"


@dataclass(frozen=True)
class Job:
    """A request to predict that is being worked on."""

    call: Call
    version: Version
    signature: LoadedSignature
    chosen: list[str]


class Endpoint:
    """The methods themselves.

    Args:
        catalog: the models.
    """

    wire: Wire
    """Where requests come from."""

    def __init__(self, catalog: Catalog):
        self.catalog = catalog

    def predict(self, body: bytes, call: Call) -> None:
        """`PredictionService.Predict`: reads the request and has it run."""
        try:
            request = _parsed(messages.PredictRequest, body)
            spec = request.model_spec
            call.model = spec.name
            version = self.catalog.lease(*wanted(spec))
            try:
                signature = version.model.signature(spec.signature_name)
                signature.check_names(request.inputs)
                arrays = {
                    name: protos.decode(request.inputs[name], expected)
                    for name, expected in signature.inputs.items()
                }
                job = Job(call, version, signature, _chosen(request, signature))
                version.submit(signature, arrays, call.deadline, self._tell, job)
            except BaseException:
                version.release()
                raise
        except Exception as error:
            _refuse(call, error)

    def _tell(self, entries: list[Entry]) -> None:
        """Answers requests that have been run."""
        soon = []
        for entry in entries:
            if entry.size > _FEW:
                self._settle(entry)
            else:
                soon.append(functools.partial(self._settle, entry))
        self.wire.do_soon(soon)

    def _settle(self, entry: Entry) -> bool:
        job: Job = entry.ticket
        try:
            return job.call.answer(*self._answer(job, *entry.result()))
        except Exception as error:
            return _refuse(job.call, error)
        finally:
            job.version.release()

    def _answer(self, job: Job, outputs: Arrays, batch: int) -> tuple[bytes, str]:
        model, signature = job.version.model, job.signature
        outputs = job.version.sealed(signature, outputs)
        response = messages.PackedResponse()
        for name in job.chosen:
            protos.encode(outputs[name], response.outputs[name], signature.outputs[name].enum)
        response.model_spec.name = model.name
        response.model_spec.version.value = model.version
        response.model_spec.signature_name = signature.name
        answer = response.SerializeToString()
        if len(answer) > self.catalog.limits.answer_bytes:
            raise too_long(len(answer), self.catalog.limits)
        return answer, f"{model.name}/{model.version}:{signature.name} batch={batch}"

    def metadata(self, request: Any) -> Reply:
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

    def status(self, request: Any) -> Reply:
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


def _parsed(message: Any, body: bytes) -> Any:
    try:
        return message.FromString(body)
    except DecodeError as error:
        raise invalid(f"the request is not a {message.DESCRIPTOR.name}") from error


def _refuse(call: Call, error: Exception) -> bool:
    if not isinstance(error, ServingError):
        log.error("gRPC %s failed", call.method, exc_info=error)
        error = ServingError(Code.INTERNAL, "internal error; the server's log says more")
    return call.refuse(error)


def _at_once(method: Method, message: Any) -> Callable[[bytes, Call], None]:
    """A method that answers on the thread that it is called on."""

    def handle(body: bytes, call: Call) -> None:
        try:
            response, note = method(_parsed(message, body))
            call.answer(response.SerializeToString(), note)
        except Exception as error:
            _refuse(call, error)

    return handle


def serve(catalog: Catalog, host: str, port: int) -> Wire:
    """Starts the gRPC server.

    Args:
        catalog: the models.
        host: address to listen on.
        port: 0 for any that is free.
    """
    endpoint, limits = Endpoint(catalog), catalog.limits
    metadata = get_model_metadata_pb2.GetModelMetadataRequest
    status = get_model_status_pb2.GetModelStatusRequest
    methods = {
        _PREDICT: endpoint.predict,
        "/tensorflow.serving.PredictionService/GetModelMetadata": _at_once(
            endpoint.metadata, metadata
        ),
        "/tensorflow.serving.ModelService/GetModelStatus": _at_once(endpoint.status, status),
    }

    def handle(body: bytes, call: Call) -> None:
        if len(body) <= _SMALL:
            methods[call.method](body, call)
        else:
            catalog.pool.submit(methods[call.method], body, call)

    def ended(call: Call, code: Code, note: str) -> None:
        took, title = time.monotonic() - call.start, call.method.rpartition("/")[2]
        log.info("gRPC %s %s %.2f ms %s", title, code.name, 1e3 * took, note)
        if call.method == _PREDICT:
            catalog.count(call.model, code.name, "GRPC", took)

    endpoint.wire = Wire(
        f"{host}:{port}",
        dict.fromkeys(methods, handle),
        ended,
        limits.seconds,
        limits.request_bytes,
    )
    return endpoint.wire
