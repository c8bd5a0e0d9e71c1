"""Whole-or-nothing writes: a file is either unchanged or complete.

Also reads JSON, and says which file is damaged.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any


def named(paths: Iterable[str | os.PathLike | None]) -> list[Path]:
    """The paths that are not None; raises if one is empty, which would mean the current folder."""
    given = [path for path in paths if path is not None]
    if "" in given:
        raise FileNotFoundError("expected a path to write to; got an empty one")
    return [Path(path) for path in given]


def room_for(*paths: str | os.PathLike | None) -> None:
    """Raises unless a file can be written to each path that is not None: its folder must exist.

    Example:

    >>> room_for("no-such-folder/note.txt")
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] the folder for it is not there: 'no-such-folder/note.txt'
    """
    for path in named(paths):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "expected a file, found a folder", str(path))
        if not path.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "the folder for it is not there", str(path))


def place_for(*paths: str | os.PathLike | None) -> None:
    """Raises unless each path that is not None is a folder, or one can be made there.

    Example:

    >>> place_for("a-new-folder/in-another")
    >>> place_for(__file__)
    Traceback (most recent call last):
    NotADirectoryError: [Errno 20] expected a folder, found a file: ...
    """
    for path in named(paths):
        there = next(one for one in (path, *path.absolute().parents) if one.exists())
        if not there.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "expected a folder, found a file", str(there))
        if not os.access(there, os.W_OK):
            raise PermissionError(errno.EACCES, "nothing can be written there", str(there))


@contextlib.contextmanager
def replacing(path: str | os.PathLike) -> Iterator[Path]:
    """A temporary path to write to, which replaces `path` if all goes well.

    The temporary file is in the same folder, keeps the ending of the name, and is removed if
    something fails. What was written is on the disk before the name changes.

    Example:

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "note.txt"
    >>> with replacing(path) as temporary:
    ...     _ = temporary.write_text("whole")
    >>> path.read_text()
    'whole'
    """
    path = Path(path)
    room_for(path)
    temporary = path.with_name(f".{secrets.token_hex(4)}.{path.name}")
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_atomically(path: str | os.PathLike, data: bytes | str) -> None:
    """Writes a file, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(data.encode() if isinstance(data, str) else data)


def parsed(path: str | os.PathLike, text: bytes | str) -> dict[str, Any]:
    """Parses a JSON object from a file of a run, or a line of one; the error names the file."""
    try:
        found = json.loads(text)
        if not isinstance(found, dict):
            raise ValueError(f"expected an object, got {found!r:.60}")
        return found
    except ValueError as error:
        raise ValueError(
            f"{path} is damaged ({error}): repair it, or choose another folder"
        ) from None
