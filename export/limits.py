"""How much one request may ask for."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lemn_tf.export.errors import invalid


@dataclass(frozen=True)
class Limits:
    """What a server takes on. A request over a limit is refused before any work is done.

    Args:
        rows: of one request: the size of the first dimension, where any size fits.
        steps: the size of any other dimension where any size fits, e.g. sentences of a stream.
        items: rows times steps.
        request_bytes: of one request as it comes.
        answer_bytes: of one answer as it goes.
        seconds: for reading a request and for answering it; a caller's own deadline may be shorter.

    Example:

    >>> Limits(rows=64).check("sentences", (None, None), (1, 100))
    >>> Limits(rows=64).check("sentences", (None, None), (65, 1))
    Traceback (most recent call last):
    lemn_tf.export.errors.ServingError: input 'sentences': at most 64 rows; got shape [65, 1]
    """

    rows: int = 256
    steps: int = 1024
    items: int = 1 << 16
    request_bytes: int = 4 << 20
    answer_bytes: int = 16 << 20
    seconds: float = 30.0

    def __post_init__(self):
        for name, value in vars(self).items():
            if not value > 0:
                raise ValueError(f"expected a limit above 0 for {name}; got {value}")

    def check(self, name: str, free: tuple[int | None, ...], shape: tuple[int, ...]) -> None:
        """Raises INVALID_ARGUMENT if a tensor is too large where its size is free.

        Args:
            name: of the input.
            free: what is expected, None where any size fits.
            shape: what came.
        """
        sizes = [size for size, want in zip(shape, free, strict=True) if want is None]
        first = free[:1] == (None,)
        rows, steps = (sizes[:1], sizes[1:]) if first else ([], sizes)
        for what, most, found in (
            ("rows", self.rows, max(rows, default=0)),
            ("steps", self.steps, max(steps, default=0)),
            ("rows times steps", self.items, math.prod(sizes)),
        ):
            if found > most:
                raise invalid(f"input {name!r}: at most {most} {what}; got shape {list(shape)}")
