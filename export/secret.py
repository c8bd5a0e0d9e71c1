"""The secret with which a server signs states, read from a file."""

from __future__ import annotations

import os
from pathlib import Path

SHORTEST = 16
"""Bytes that it must have."""


def checked(secret: bytes) -> bytes:
    """The secret; raises if it is too short.

    Example:

    >>> checked(b"short")
    Traceback (most recent call last):
    ValueError: expected a key of at least 16 bytes; got 5
    """
    if len(secret) < SHORTEST:
        raise ValueError(f"expected a key of at least {SHORTEST} bytes; got {len(secret)}")
    return secret


def read(path: str | os.PathLike) -> bytes:
    """The secret in a file, without white space at its ends."""
    try:
        return checked(Path(path).read_bytes().strip())
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
