"""One error type for both front doors: a gRPC status code and a message."""

from __future__ import annotations

import grpc
import tensorflow as tf

Code = grpc.StatusCode

HTTP_STATUS = {
    Code.OK: 200,
    Code.CANCELLED: 499,
    Code.UNKNOWN: 500,
    Code.INVALID_ARGUMENT: 400,
    Code.DEADLINE_EXCEEDED: 504,
    Code.NOT_FOUND: 404,
    Code.ALREADY_EXISTS: 409,
    Code.PERMISSION_DENIED: 403,
    Code.RESOURCE_EXHAUSTED: 429,
    Code.FAILED_PRECONDITION: 400,
    Code.ABORTED: 409,
    Code.OUT_OF_RANGE: 400,
    Code.UNIMPLEMENTED: 501,
    Code.INTERNAL: 500,
    Code.UNAVAILABLE: 503,
    Code.DATA_LOSS: 500,
    Code.UNAUTHENTICATED: 401,
}
"""The HTTP status that TF Serving's REST API gives for each code."""

_BY_NUMBER = {code.value[0]: code for code in Code}
_LONGEST = 1000  # a gRPC message travels in the trailers, which are limited to a few kilobytes


class ServingError(Exception):
    """A request that was refused or failed.

    Args:
        code: gRPC status code.
        message: what was expected and what came; cut if it is very long.
    """

    def __init__(self, code: grpc.StatusCode, message: str):
        if len(message) > _LONGEST:
            message = f"{message[:_LONGEST]} ... ({len(message)} characters)"
        super().__init__(message)
        self.code, self.message = code, message
        self.http = HTTP_STATUS[code]


def invalid(message: str) -> ServingError:
    """The request is wrong and will be wrong again: INVALID_ARGUMENT, 400."""
    return ServingError(Code.INVALID_ARGUMENT, message)


def not_found(message: str) -> ServingError:
    """No such model, version or label: NOT_FOUND, 404."""
    return ServingError(Code.NOT_FOUND, message)


def late(message: str = "the deadline passed before the request was served") -> ServingError:
    """Too late: DEADLINE_EXCEEDED, 504."""
    return ServingError(Code.DEADLINE_EXCEEDED, message)


def from_tensorflow(error: tf.errors.OpError, where: str) -> ServingError:
    """What the graph said, without the list of nodes behind it.

    Args:
        error: raised by TensorFlow.
        where: the signature that was run.
    """
    message = (error.message or type(error).__name__).split("\n\t [[")[0]
    message = " ".join(message.removeprefix("Graph execution error:").split())
    code = _BY_NUMBER.get(error.error_code, Code.INTERNAL)
    return ServingError(code, f"{where}: {message}")


def shorten(value: object, length: int = 60) -> str:
    """`repr` for a message: never longer than `length` and a little."""
    text = repr(value)
    return text if len(text) <= length else f"{text[:length]}..."
