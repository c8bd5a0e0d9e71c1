"""Where SavedModels lie: a model is a folder of numbered versions.

models/babi/1/saved_model.pb          a model `babi` with the versions 1 and 2
models/babi/2/saved_model.pb
"""

from __future__ import annotations

import contextlib
from pathlib import Path

LARGEST = 2**63 - 1
"""The largest version: it travels as an int64."""


def find_models(path: Path, name: str | None = None) -> dict[str, Path]:
    """The models under a folder.

    Args:
        path: a SavedModel, a folder of numbered versions, or a folder of such folders.
        name: of the model, if there is only one; the folder's name if not given.

    Returns:
        Name to folder.
    """
    path = path.resolve()
    if (path / "saved_model.pb").is_file():
        default = path.parent.name if is_version(path.name) else path.name
        return {name or default: path}
    if versions(path):
        return {name or path.name: path}
    children = sorted(path.iterdir()) if path.is_dir() else []
    found = {child.name: child for child in children if child.is_dir() and versions(child)}
    if not found:
        raise FileNotFoundError(
            f"{path}: expected a SavedModel, a folder of numbered versions (1/saved_model.pb), "
            "or a folder of such folders; found none"
        )
    if name and len(found) > 1:
        raise ValueError(f"{path}: a name needs one model; got {list(found)}")
    return {name: next(iter(found.values()))} if name else found


def is_version(name: str) -> bool:
    """Whether a folder may be that of a version: digits, and a number that fits into 64 bits.

    Example:

    >>> is_version("1"), is_version("9223372036854775808"), is_version("one")
    (True, False, False)
    """
    return name.isascii() and name.isdecimal() and len(name) < 20 and int(name) <= LARGEST


def versions(base: Path) -> dict[int, Path]:
    """Version to folder. A SavedModel given by itself is the only version, of its own number."""
    if (base / "saved_model.pb").is_file():
        return {int(base.name) if is_version(base.name) else 1: base}
    if not base.is_dir():
        return {}
    children = [child for child in base.iterdir() if is_version(child.name)]
    return {int(child.name): child for child in children if (child / "saved_model.pb").is_file()}


def fingerprint(path: Path) -> tuple:
    """Changes whenever a file in the folder does."""
    facts = []
    for file in sorted(path.rglob("*")):
        with contextlib.suppress(FileNotFoundError):
            stat = file.stat()
            facts.append((str(file), stat.st_size, stat.st_mtime_ns))
    return tuple(facts)
