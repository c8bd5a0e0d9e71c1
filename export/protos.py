"""`TensorProto` to NumPy and back. Needs protobuf.

Nothing that a request claims is believed before it is checked: a shape of 10^12 elements with one
value is a few bytes on the wire.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from lemn_tf.export import messages
from lemn_tf.export.errors import invalid
from lemn_tf.export.tensors import BOOL, DOUBLE, FLOAT, STRING, TYPES, Spec, from_list, type_name

MOST_REPEATED = 1 << 16
"""Larger tensors must have all their values: one value may stand for at most this many."""
_MOST_KNOWN = 256
_RAW = (FLOAT, DOUBLE, BOOL)
"""Types whose packed values are their bytes."""
_BY_DTYPE = {name: enum for enum, (_, name, _) in TYPES.items()}


def decode(proto: Any, spec: Spec) -> np.ndarray:
    """The tensor in a request.

    Args:
        proto: the `messages.TensorProto` as it came.
        spec: what the signature expects.

    Returns:
        An array of the expected dtype and a shape that fits; strings are objects.
    """
    if proto.dtype != spec.enum:
        raise invalid(f"input {spec.name!r}: expected {spec}; got {type_name(proto.dtype)}")
    shape, count = spec.known.get(proto.tensor_shape) or _shape(proto.tensor_shape, spec)
    content = proto.tensor_content
    if content and spec.enum != STRING:
        return _from_content(content, shape, count, spec)
    field = TYPES[spec.enum][2] if spec.enum in TYPES else ""
    if content or not field:
        raise invalid(f"input {spec.name!r}: {spec} is not supported in this encoding")
    values = list(getattr(proto, field))
    if len(values) != count:
        if len(values) > count or not values:
            raise invalid(
                f"input {spec.name!r}: shape {list(shape)} needs {count} values in {field}; "
                f"got {len(values)}"
            )
        if count > MOST_REPEATED:
            raise invalid(
                f"input {spec.name!r}: {len(values)} values stand for {count}; at most "
                f"{MOST_REPEATED} may be abbreviated"
            )
        values += values[-1:] * (count - len(values))  # the last value stands for the rest
    return from_list(values, shape, spec)


def _from_content(content: bytes, shape: tuple[int, ...], count: int, spec: Spec) -> np.ndarray:
    dtype = spec.dtype
    if len(content) != count * dtype.itemsize:
        raise invalid(
            f"input {spec.name!r}: shape {list(shape)} needs {count * dtype.itemsize} bytes "
            f"of tensor_content; got {len(content)}"
        )
    if spec.enum == BOOL:
        return (np.frombuffer(content, np.uint8) != 0).reshape(shape)
    return np.frombuffer(content, dtype).reshape(shape)


def _shape(raw: bytes, spec: Spec) -> tuple[tuple[int, ...], int]:
    """The shape in a `TensorShapeProto` and its number of elements, checked and remembered."""
    try:
        message = messages.TensorShapeProto.FromString(raw)
    except DecodeError as error:
        raise invalid(f"input {spec.name!r}: expected {spec}; its shape is broken") from error
    if message.unknown_rank:
        raise invalid(f"input {spec.name!r}: expected {spec}; got a tensor of unknown rank")
    shape = tuple(dim.size for dim in message.dim)
    found = shape, spec.check_shape(shape)
    if len(spec.known) < _MOST_KNOWN:
        spec.known[raw] = found
    return found


def encode(array: np.ndarray, proto: Any, enum: int | None = None) -> None:
    """Writes an array into a message, in the fields that TF Serving uses.

    Args:
        array: any numbers, or bytes in an array of objects.
        proto: an empty `messages.PackedTensor`, or a `TensorProto`.
        enum: `DT_...` number; default: what the array's dtype says.
    """
    enum = _BY_DTYPE[array.dtype.name] if enum is None else enum
    proto.dtype = enum
    proto.tensor_shape = _shape_bytes(array.shape)
    field = TYPES[enum][2]
    if not field:
        proto.tensor_content = array.tobytes()
    elif enum in _RAW and isinstance(proto, messages.PackedTensor):
        setattr(proto, field, array.tobytes())
    else:
        getattr(proto, field).extend(array.ravel().tolist())


@functools.lru_cache(maxsize=256)
def _shape_bytes(shape: tuple[int, ...]) -> bytes:
    message = messages.TensorShapeProto()
    for size in shape:
        message.dim.add(size=size)
    return message.SerializeToString()
