"""One error type for servers and clients: a status code of gRPC's and a message."""

from __future__ import annotations

import enum

_LONGEST = 1000  # a gRPC message travels in the trailers, which are limited to a few kilobytes


class Code(enum.Enum):
    """The status codes of gRPC: their numbers, and `http`, what TF Serving's REST gives for each.

    Example:

    >>> Code.NOT_FOUND.value, Code.NOT_FOUND.http
    (5, 404)
    """

    http: int

    def __new__(cls, number: int, http: int) -> Code:
        member = object.__new__(cls)
        member._value_, member.http = number, http
        return member

    OK = 0, 200
    CANCELLED = 1, 499
    UNKNOWN = 2, 500
    INVALID_ARGUMENT = 3, 400
    DEADLINE_EXCEEDED = 4, 504
    NOT_FOUND = 5, 404
    ALREADY_EXISTS = 6, 409
    PERMISSION_DENIED = 7, 403
    RESOURCE_EXHAUSTED = 8, 429
    FAILED_PRECONDITION = 9, 400
    ABORTED = 10, 409
    OUT_OF_RANGE = 11, 400
    UNIMPLEMENTED = 12, 501
    INTERNAL = 13, 500
    UNAVAILABLE = 14, 503
    DATA_LOSS = 15, 500
    UNAUTHENTICATED = 16, 401


class ServingError(Exception):
    """A request that was refused or failed.

    Args:
        code: what kind of failure it is.
        message: what was expected and what came; cut if it is very long.
    """

    def __init__(self, code: Code, message: str):
        if len(message) > _LONGEST:
            message = f"{message[:_LONGEST]} ... ({len(message)} characters)"
        super().__init__(message)
        self.code, self.message = code, message


def invalid(message: str) -> ServingError:
    """The request is wrong and will be wrong again: INVALID_ARGUMENT, 400."""
    return ServingError(Code.INVALID_ARGUMENT, message)


def not_found(message: str) -> ServingError:
    """No such model, version or label: NOT_FOUND, 404."""
    return ServingError(Code.NOT_FOUND, message)


def late(message: str = "the deadline passed before the request was served") -> ServingError:
    """Too late: DEADLINE_EXCEEDED, 504."""
    return ServingError(Code.DEADLINE_EXCEEDED, message)


def shorten(value: object, length: int = 60) -> str:
    """`repr` for a message: never longer than `length` and a little."""
    text = repr(value)
    return text if len(text) <= length else f"{text[:length]}..."
