"""TF Serving's JSON for tensors, in both directions, for the server and for the client.

A request has `instances` (a list of rows) or `inputs` (whole columns); the response has
`predictions` or `outputs`. Strings are JSON strings, or `{"b64": "..."}` for bytes that are not
UTF-8 text.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Mapping
from itertools import chain
from typing import Any, Protocol

import numpy as np

from lemn_tf.export.errors import invalid, shorten
from lemn_tf.export.tensors import BOOL, DOUBLE, FLOAT, STRING, Arrays, Spec, from_list

_DEEPEST = 16
_FLOATS = (FLOAT, DOUBLE)
_LARGEST = float(np.finfo(np.float32).max)
_KINDS = {"str": "a string", "dict": "an object", "list": "a list", "NoneType": "null"}


class Callee(Protocol):
    """What has to be known about the signature that a request is for."""

    name: str
    inputs: dict[str, Spec]

    def check_names(self, names: Mapping) -> None:
        """Raises INVALID_ARGUMENT unless `names` are exactly the inputs."""


def parse(body: bytes) -> dict:
    """The JSON object in a request's body; raises INVALID_ARGUMENT if there is none."""
    if not body:
        raise invalid("JSON parse error: the body is empty")
    try:
        document = json.loads(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise invalid(f"JSON parse error: the body is not UTF-8 at byte {error.start}") from error
    except (ValueError, RecursionError) as error:
        raise invalid(f"JSON parse error: {shorten(str(error), 200)}") from error
    if not isinstance(document, dict):
        raise invalid(f"expected a JSON object with 'instances' or 'inputs'; got {_kind(document)}")
    return document


def signature_name(document: dict) -> str:
    """The signature that a request names, or an empty string."""
    name = document.get("signature_name", "")
    if not isinstance(name, str):
        raise invalid(f"'signature_name' must be a string; got {_kind(name)}")
    return name


def arrays(document: dict, signature: Callee) -> tuple[Arrays, bool]:
    """The inputs in a request.

    Args:
        document: what `parse` returned.
        signature: what is to be run.

    Returns:
        Name to array, and whether the request came in rows.
    """
    rows = "instances" in document
    if rows == ("inputs" in document):
        raise invalid("expected either 'instances' or 'inputs' in the JSON object")
    columns = _columns_of(document["instances"], signature) if rows else document["inputs"]
    if not rows and (not isinstance(columns, dict) or _is_bytes(columns)):
        columns = {_only(signature, "inputs"): columns}
    signature.check_names(columns)
    return {name: array(columns[name], spec) for name, spec in signature.inputs.items()}, rows


def _columns_of(instances: Any, signature: Callee) -> dict[str, list]:
    if not isinstance(instances, list) or not instances:
        raise invalid(f"'instances' must be a list of at least one row; got {_kind(instances)}")
    named = isinstance(instances[0], dict) and not _is_bytes(instances[0])
    if not named:
        return {_only(signature, "instances"): instances}
    for number, row in enumerate(instances):
        if not isinstance(row, dict):
            raise invalid(f"row {number} of 'instances' must be an object; got {_kind(row)}")
        signature.check_names(row)
    return {name: [row[name] for row in instances] for name in signature.inputs}


def _only(signature: Callee, key: str) -> str:
    if len(signature.inputs) != 1:
        raise invalid(
            f"{key!r} must name the inputs of signature {signature.name!r}: "
            f"{sorted(signature.inputs)}"
        )
    return next(iter(signature.inputs))


def array(value: Any, spec: Spec) -> np.ndarray:
    """Nested lists as an array of what `spec` expects; raises INVALID_ARGUMENT if they are not."""
    shape, level = [], [value]
    while level and type(level[0]) is list:
        if set(map(type, level)) != {list} or len(set(map(len, level))) != 1:
            raise invalid(f"input {spec.name!r}: expected {spec}; got lists of unequal length")
        shape.append(len(level[0]))
        if len(shape) > _DEEPEST:
            raise invalid(f"input {spec.name!r}: expected {spec}; got lists within lists")
        level = list(chain.from_iterable(level))
    if spec.shape is not None and 0 in shape and len(shape) < len(spec.shape):
        # An empty list says nothing about what would be in it.
        shape += [0 if size is None else size for size in spec.shape[len(shape) :]]
    spec.check_shape(tuple(shape))
    return from_list(_values(level, spec), tuple(shape), spec)


def _values(level: list, spec: Spec) -> list:
    kinds = set(map(type, level))
    if spec.enum == STRING:
        return [_bytes(value, spec) for value in level]
    wanted: set[type]
    if spec.enum == BOOL:
        wanted = {bool}
    elif spec.enum in _FLOATS:
        wanted = {int, float}
    else:
        wanted = {int}
    if kinds - wanted:
        other = next(value for value in level if type(value) not in wanted)
        raise invalid(f"input {spec.name!r}: expected {spec}; got {_kind(other)}")
    if spec.enum == FLOAT:
        for value in level:
            if abs(value) > _LARGEST and not (isinstance(value, float) and math.isinf(value)):
                raise invalid(f"input {spec.name!r}: {shorten(value)} does not fit a float")
    return level


def _is_bytes(value: Any) -> bool:
    return isinstance(value, dict) and len(value) == 1 and isinstance(value.get("b64"), str)


def _bytes(value: Any, spec: Spec) -> bytes:
    if type(value) is str:
        try:
            return value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise invalid(
                f"input {spec.name!r}: a string holds half of a surrogate pair, which is not text"
            ) from error
    if _is_bytes(value):
        try:
            return base64.b64decode(value["b64"], validate=True)
        except (binascii.Error, ValueError) as error:
            raise invalid(f"input {spec.name!r}: broken base64 ({error})") from error
    raise invalid(f"input {spec.name!r}: expected {spec}; got {_kind(value)}")


def _kind(value: Any) -> str:
    if isinstance(value, list) and not value:
        return "an empty list"
    return _KINDS.get(type(value).__name__, shorten(value))


# -- out ------------------------------------------------------------------------------------------


def response(outputs: Mapping[str, np.ndarray], rows: bool) -> bytes:
    """The body of an answer.

    Args:
        outputs: name to array.
        rows: whether to answer with `predictions` (rows) or `outputs` (columns).
    """
    columns = {name: plain(value, name.endswith("_bytes")) for name, value in outputs.items()}
    if not rows:
        content = columns if len(columns) > 1 else next(iter(columns.values()), {})
        return _dump({"outputs": content})
    sizes = {name: value.shape[0] if value.ndim else None for name, value in outputs.items()}
    if len(set(sizes.values())) != 1 or None in sizes.values():
        raise invalid(f"the outputs have no rows in common ({sizes}): ask with 'inputs' instead")
    if len(columns) == 1:
        return _dump({"predictions": next(iter(columns.values()))})
    names = list(columns)
    predictions = [
        dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)
    ]
    return _dump({"predictions": predictions})


def request(inputs: Mapping[str, np.ndarray], signature: str) -> bytes:
    """The body of a columnar request."""
    columns = {name: plain(value) for name, value in inputs.items()}
    return _dump({"signature_name": signature, "inputs": columns})


def error(message: str) -> bytes:
    """The body of a refusal."""
    return _dump({"error": message})


def plain(value: np.ndarray, as_bytes: bool = False) -> Any:
    """An array as nested lists of JSON values."""
    value = np.asarray(value)
    if value.dtype.kind not in "OS":
        return value.tolist()
    flat = np.empty(value.size, object)
    flat[:] = [_text(item, as_bytes) for item in value.ravel().tolist()]
    return flat.reshape(value.shape).tolist()


def _text(item: bytes | str, as_bytes: bool) -> str | dict[str, str]:
    if isinstance(item, str):
        return item
    if not as_bytes:
        try:
            return item.decode("utf-8")
        except UnicodeDecodeError:
            pass
    return {"b64": base64.b64encode(item).decode("ascii")}


def _dump(document: dict) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "replace"
    )
