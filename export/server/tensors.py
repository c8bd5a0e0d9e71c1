"""What a signature expects of a tensor, and `TensorProto` to NumPy and back under that expectation.

Nothing that a request claims is believed before it is checked: a shape of 10^12 elements with one
value is a few bytes on the wire.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2, types_pb2

from lemn_tf.export.server.errors import invalid, shorten

MOST_ELEMENTS = 1 << 24
"""Larger tensors than this are refused."""
_MOST_KNOWN = 256

_FIELDS = {
    types_pb2.DT_FLOAT: "float_val",
    types_pb2.DT_DOUBLE: "double_val",
    types_pb2.DT_INT32: "int_val",
    types_pb2.DT_INT16: "int_val",
    types_pb2.DT_INT8: "int_val",
    types_pb2.DT_UINT8: "int_val",
    types_pb2.DT_UINT16: "int_val",
    types_pb2.DT_INT64: "int64_val",
    types_pb2.DT_UINT32: "uint32_val",
    types_pb2.DT_UINT64: "uint64_val",
    types_pb2.DT_BOOL: "bool_val",
    types_pb2.DT_STRING: "string_val",
}


@dataclass(frozen=True)
class Spec:
    """One input or output of a signature.

    Attributes:
        name: as callers know it.
        tensor: as the graph knows it, e.g. `observe_item:0`.
        enum: `DT_...` number.
        shape: sizes, None where any size fits; None altogether if the rank is not known.
    """

    name: str
    tensor: str
    enum: int
    shape: tuple[int | None, ...] | None

    @classmethod
    def of(cls, name: str, info) -> Spec:
        """From the `TensorInfo` of a signature."""
        shape = None
        if not info.tensor_shape.unknown_rank:
            sizes = (dim.size for dim in info.tensor_shape.dim)
            shape = tuple(None if size < 0 else size for size in sizes)
        return cls(name, info.name, info.dtype, shape)

    @functools.cached_property
    def dtype(self) -> np.dtype:
        """As NumPy knows it; strings are objects."""
        return np.dtype(tf.as_dtype(self.enum).as_numpy_dtype)

    @functools.cached_property
    def _known(self) -> dict[tuple[int, ...], int]:
        """Shapes that were found good, with their number of elements."""
        return {}

    @property
    def rows(self) -> bool:
        """Whether the first dimension is a batch of any size."""
        return bool(self.shape) and self.shape[0] is None

    def __str__(self) -> str:
        sizes = "any shape" if self.shape is None else list(self.shape)
        return f"{types_pb2.DataType.Name(self.enum)} {sizes}".replace("None", "?")

    def check_shape(self, shape: tuple[int, ...]) -> int:
        """Number of elements; raises INVALID_ARGUMENT unless a tensor of this shape may be fed."""
        if (known := self._known.get(shape)) is not None:
            return known
        fits = self.shape is None or (
            len(shape) == len(self.shape)
            and all(want in (None, got) for want, got in zip(self.shape, shape, strict=True))
        )
        if not fits or min(shape, default=0) < 0:
            raise invalid(f"input {self.name!r}: expected {self}; got shape {list(shape)}")
        count = math.prod(shape)
        if count > MOST_ELEMENTS:
            raise invalid(
                f"input {self.name!r}: at most {MOST_ELEMENTS} elements; got shape {list(shape)}"
            )
        if len(self._known) < _MOST_KNOWN:
            self._known[shape] = count
        return count

    def check(self, value: np.ndarray) -> np.ndarray:
        """Returns `value` as an array; raises INVALID_ARGUMENT unless it may be fed."""
        array = np.asarray(value)
        if self.enum == types_pb2.DT_STRING:
            if array.dtype.kind not in "OSU":
                raise invalid(f"input {self.name!r}: expected {self}; got {array.dtype.name}")
            array = array.astype(object)
        elif array.dtype != self.dtype:
            raise invalid(f"input {self.name!r}: expected {self}; got {array.dtype.name}")
        self.check_shape(array.shape)
        return array


def decode(proto: tensor_pb2.TensorProto, spec: Spec) -> np.ndarray:
    """The tensor in a request.

    Args:
        proto: as it came.
        spec: what the signature expects.

    Returns:
        An array of the expected dtype and a shape that fits; strings are objects.
    """
    if proto.dtype != spec.enum:
        got = types_pb2.DataType.Name(proto.dtype) if proto.dtype in _NAMES else proto.dtype
        raise invalid(f"input {spec.name!r}: expected {spec}; got {got}")
    sizes = proto.tensor_shape
    if sizes.unknown_rank:
        raise invalid(f"input {spec.name!r}: expected {spec}; got a tensor of unknown rank")
    shape = tuple([dim.size for dim in sizes.dim])
    count = spec.check_shape(shape)
    field = _FIELDS.get(spec.enum)
    content = proto.tensor_content
    if content and spec.enum != types_pb2.DT_STRING:
        dtype = spec.dtype
        if len(content) != count * dtype.itemsize:
            raise invalid(
                f"input {spec.name!r}: shape {list(shape)} needs {count * dtype.itemsize} bytes "
                f"of tensor_content; got {len(content)}"
            )
        if spec.enum == types_pb2.DT_BOOL:
            return (np.frombuffer(content, np.uint8) != 0).reshape(shape)
        return np.frombuffer(content, dtype).reshape(shape)
    if content or field is None:
        raise invalid(f"input {spec.name!r}: {spec} is not supported in this encoding")
    values = list(getattr(proto, field))
    if len(values) != count:
        if len(values) > count or not values:
            raise invalid(
                f"input {spec.name!r}: shape {list(shape)} needs {count} values in {field}; "
                f"got {len(values)}"
            )
        values += values[-1:] * (count - len(values))  # the last value stands for the rest
    return from_list(values, shape, spec)


def from_list(values: list, shape: tuple[int, ...], spec: Spec) -> np.ndarray:
    """An array of `shape` from a flat list of Python values of the right kind."""
    if spec.enum == types_pb2.DT_STRING:
        array = np.empty(len(values), object)
        array[:] = values
        return array.reshape(shape)
    try:
        return np.array(values, spec.dtype).reshape(shape)
    except (OverflowError, ValueError, TypeError) as error:
        raise invalid(f"input {spec.name!r}: expected {spec}; {shorten(error, 200)}") from error


def encode(array: np.ndarray, proto: tensor_pb2.TensorProto, enum: int) -> None:
    """Writes an output into a response, in the fields that TF Serving uses.

    Args:
        array: the output.
        proto: empty, inside the response.
        enum: `DT_...` number.
    """
    field = _FIELDS.get(enum)
    if field is None:
        proto.CopyFrom(tf.make_tensor_proto(array))
        return
    proto.CopyFrom(_blank(enum, array.shape))
    getattr(proto, field).extend(array.ravel().tolist())


@functools.lru_cache(maxsize=256)
def _blank(enum: int, shape: tuple[int, ...]) -> tensor_pb2.TensorProto:
    proto = tensor_pb2.TensorProto(dtype=enum)
    for size in shape:
        proto.tensor_shape.dim.add(size=size)
    return proto


_NAMES = set(types_pb2.DataType.values())
