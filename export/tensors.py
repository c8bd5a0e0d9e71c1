"""What a signature expects of a tensor, and whether an array fits."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lemn_tf.export.errors import invalid, shorten
from lemn_tf.export.limits import Limits

Arrays = dict[str, np.ndarray]
"""Name to array: the inputs or the outputs of a signature."""
MOST_ELEMENTS = 1 << 22
"""Larger tensors than this are refused."""

FLOAT, DOUBLE, STRING, BOOL = 1, 2, 7, 10
"""Numbers of the types that need care."""
TYPES = {
    FLOAT: ("DT_FLOAT", "float32", "float_val"),
    DOUBLE: ("DT_DOUBLE", "float64", "double_val"),
    3: ("DT_INT32", "int32", "int_val"),
    4: ("DT_UINT8", "uint8", "int_val"),
    5: ("DT_INT16", "int16", "int_val"),
    6: ("DT_INT8", "int8", "int_val"),
    STRING: ("DT_STRING", "object", "string_val"),
    8: ("DT_COMPLEX64", "complex64", ""),
    9: ("DT_INT64", "int64", "int64_val"),
    BOOL: ("DT_BOOL", "bool", "bool_val"),
    14: ("DT_BFLOAT16", "bfloat16", ""),
    17: ("DT_UINT16", "uint16", "int_val"),
    18: ("DT_COMPLEX128", "complex128", ""),
    19: ("DT_HALF", "float16", ""),
    22: ("DT_UINT32", "uint32", "uint32_val"),
    23: ("DT_UINT64", "uint64", "uint64_val"),
}
"""TensorFlow's number of a type: its name, NumPy's, and the field of `TensorProto` for its values.
Types without a field travel in `tensor_content`."""
_BY_NAME = {name: enum for enum, (name, _, _) in TYPES.items()}


def type_name(enum: int) -> str:
    """What TensorFlow calls a type, e.g. `DT_FLOAT`."""
    return TYPES[enum][0] if enum in TYPES else f"type {enum}"


@dataclass(frozen=True)
class Spec:
    """One input or output of a signature.

    Attributes:
        name: as callers know it.
        tensor: as the graph knows it, e.g. `observe_item:0`.
        enum: `DT_...` number.
        shape: sizes, None where any size fits; None altogether if the rank is not known.
        limits: how large it may be where any size fits; None for no limits.
    """

    name: str
    tensor: str
    enum: int
    shape: tuple[int | None, ...] | None
    limits: Limits | None = None

    @classmethod
    def of(cls, name: str, info: Any, limits: Limits | None = None) -> Spec:
        """From the `TensorInfo` of a signature."""
        shape = None
        if not info.tensor_shape.unknown_rank:
            shape = _sizes(dim.size for dim in info.tensor_shape.dim)
        return cls(name, info.name, info.dtype, shape, limits)

    @classmethod
    def from_json(cls, name: str, info: Mapping[str, Any]) -> Spec:
        """From the same as REST's metadata has it."""
        shape = None
        if not info["tensor_shape"].get("unknown_rank"):
            shape = _sizes(int(dim["size"]) for dim in info["tensor_shape"].get("dim", ()))
        return cls(name, info.get("name", ""), _BY_NAME.get(info["dtype"], 0), shape)

    @functools.cached_property
    def dtype(self) -> np.dtype:
        """As NumPy knows it; strings are objects."""
        name = TYPES[self.enum][1] if self.enum in TYPES else ""
        if name == "bfloat16":
            import ml_dtypes  # comes with TensorFlow; NumPy has no such type by itself

            return np.dtype(ml_dtypes.bfloat16)
        if not name:
            raise invalid(f"{self.name!r}: tensors of {type_name(self.enum)} cannot be sent")
        return np.dtype(name)

    @functools.cached_property
    def known(self) -> dict[bytes, tuple[tuple[int, ...], int]]:
        """Shapes that were found good, as they came, with their number of elements."""
        return {}

    @property
    def rows(self) -> bool:
        """Whether the first dimension is a batch of any size."""
        return self.shape is not None and self.shape[:1] == (None,)

    def __str__(self) -> str:
        sizes = "any shape" if self.shape is None else str(list(self.shape))
        return f"{type_name(self.enum)} {sizes}".replace("None", "?")

    def check_shape(self, shape: tuple[int, ...]) -> int:
        """Number of elements; raises INVALID_ARGUMENT unless a tensor of this shape may be fed."""
        fits = self.shape is None or (
            len(shape) == len(self.shape)
            and all(want in (None, got) for want, got in zip(self.shape, shape, strict=True))
        )
        if not fits or min(shape, default=0) < 0:
            raise invalid(f"input {self.name!r}: expected {self}; got shape {list(shape)}")
        if self.limits is not None and self.shape is not None:
            self.limits.check(self.name, self.shape, shape)
        count = math.prod(shape)
        if count > MOST_ELEMENTS:
            raise invalid(
                f"input {self.name!r}: at most {MOST_ELEMENTS} elements; got shape {list(shape)}"
            )
        return count

    def check(self, value: Any) -> np.ndarray:
        """Returns `value` as an array; raises INVALID_ARGUMENT unless it may be fed."""
        array = np.asarray(value)
        if self.enum == STRING:
            if array.dtype.kind not in "OSU":
                raise invalid(f"input {self.name!r}: expected {self}; got {array.dtype.name}")
            array = array.astype(object)
        elif array.dtype != self.dtype:
            raise invalid(f"input {self.name!r}: expected {self}; got {array.dtype.name}")
        self.check_shape(array.shape)
        return array


def _sizes(sizes: Any) -> tuple[int | None, ...]:
    return tuple(None if size < 0 else size for size in sizes)


def from_list(values: list, shape: tuple[int, ...], spec: Spec) -> np.ndarray:
    """An array of `shape` from a flat list of Python values of the right kind."""
    if spec.enum == STRING:
        array = np.empty(len(values), object)
        array[:] = values
        return array.reshape(shape)
    try:
        return np.array(values, spec.dtype).reshape(shape)
    except (OverflowError, ValueError, TypeError) as error:
        raise invalid(f"input {spec.name!r}: expected {spec}; {shorten(error, 200)}") from error
