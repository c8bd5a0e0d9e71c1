"""What every transport can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from lemn_tf.export.tensors import Arrays, Spec


class Interface(NamedTuple):
    """What a signature takes and gives: name to `Spec`."""

    inputs: dict[str, Spec]
    outputs: dict[str, Spec]


class Transport(Protocol):
    """A way to one model."""

    def describe(self, version: int | None = None) -> tuple[int, dict[str, Interface]]:
        """The version that answers, and its signatures; later calls go to that version.

        Args:
            version: the one to ask; None for the newest.
        """

    def run(self, signature: str, arrays: Mapping[str, np.ndarray]) -> Arrays:
        """Runs a signature; raises `ServingError`."""

    def close(self) -> None:
        """Closes connections or models."""


def only(names: Sequence[str], form: str) -> str:
    """The only name; an error that asks for `form` if there are none or several."""
    if len(names) != 1:
        raise ValueError(f"which model? Say {form}, or name=...; the server names {list(names)}")
    return names[0]
