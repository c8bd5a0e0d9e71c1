"""A memory as a file: a zip of serialised tensors, without pickle and with a limit on its size."""

from __future__ import annotations

import io
import math
import os
import zipfile

import tensorflow as tf
from tensorflow.core.framework import tensor_pb2

from lemn_tf.files import write_atomically
from lemn_tf.memory.flat import from_flat, to_flat
from lemn_tf.memory.state import MemoryState

FORMAT = "lemn_tf memory, version 1"
"""Identifies a saved memory; a file that begins differently is refused."""
LIMIT = 1 << 28
"""How many bytes a saved memory may take up once unpacked, unless `load` is given a limit."""


def save(state: MemoryState, path: str | os.PathLike) -> None:
    """Writes the memory to one file, whole or not at all; `load` reads it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:

        def add(name, content):  # a fixed date: the same memory gives the same file
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)

        add("format", FORMAT)
        for name, tensor in to_flat(state).items():
            add(f"{tensor.dtype.name}/{name}", tf.io.serialize_tensor(tensor).numpy())
    write_atomically(path, buffer.getvalue())


def load(
    path: str | os.PathLike, like: MemoryState | None = None, limit: int = LIMIT
) -> MemoryState:
    """Reads a memory that `save` wrote.

    Args:
        path: the file.
        like: a state of the model that will use it; if given, the file must hold the same
            entries, carry, dtypes and number of slots (any batch).
        limit: how many bytes the memory may take up; a file that would unpack to more is refused
            before it is unpacked.

    Raises:
        ValueError: not such a file, another version, damaged, too large, or not like `like`.
    """
    try:
        flat = _read(path, like, limit)
        return from_flat({name: tf.io.parse_tensor(*given) for name, given in flat.items()})
    except (FileNotFoundError, PermissionError, IsADirectoryError, _Refused):
        raise
    except Exception as error:  # a damaged zip file can fail in many ways
        raise ValueError(f"{path}: not a saved memory, or damaged ({error})") from error


class _Refused(ValueError):
    """The file is intact, but must not be read."""


def _read(path, like: MemoryState | None, limit: int) -> dict[str, tuple[bytes, tf.DType]]:
    """The serialised tensors of a file by name, with their types; all are safe to parse."""
    with zipfile.ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
        if size > limit:
            raise _Refused(f"{path}: expected at most {limit:,} bytes; unpacks to {size:,}")
        version = archive.read("format").decode(errors="replace")
        if version != FORMAT:
            raise _Refused(f"{path}: expected {FORMAT!r}; got {version[:80]!r}")
        found, kinds, total = {}, {}, 0
        for member in archive.namelist():
            if member != "format":
                dtype, name = member.split("/", 1)
                content, kind = archive.read(member), tf.as_dtype(dtype)
                shape, size = _measured(path, name, content, kind)
                total += size
                found[name], kinds[name] = (content, kind), f"{kind.name}{shape[1:]}"
        if total > limit:
            raise _Refused(f"{path}: expected at most {limit:,} bytes; its tensors take {total:,}")
    if like is not None and kinds != _kinds(like):
        raise _Refused(
            f"{path}: holds another kind of memory: expected {_kinds(like)}; got "
            f"{dict(sorted(kinds.items()))}"
        )
    return found


def _measured(path, name: str, content: bytes, kind: tf.DType) -> tuple[tf.TensorShape, int]:
    """The shape and size in bytes of a serialised tensor, all of which must be in the file."""
    tensor = tensor_pb2.TensorProto.FromString(content)
    shape = tf.TensorShape(tensor.tensor_shape)
    if kind in (tf.variant, tf.resource) or tensor.dtype != kind.as_datatype_enum:
        raise _Refused(f"{path}: expected a tensor of plain {kind.name} as {name}")
    count = math.prod(shape.as_list())
    if kind == tf.string:
        if len(tensor.string_val) != count:
            raise _Refused(
                f"{path}: expected {count} strings in {name}; got {len(tensor.string_val)}"
            )
        return shape, sum(len(text) for text in tensor.string_val)
    if len(tensor.tensor_content) != count * kind.size:
        raise _Refused(
            f"{path}: expected {count * kind.size} bytes in {name}; got "
            f"{len(tensor.tensor_content)}"
        )
    return shape, count * kind.size


def _kinds(state: MemoryState) -> dict[str, str]:
    flat = to_flat(state)
    return {name: f"{flat[name].dtype.name}{flat[name].shape[1:]}" for name in sorted(flat)}
