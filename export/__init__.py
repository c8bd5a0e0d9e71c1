"""Serving: SavedModels whose memory travels with the caller, a server and a client for them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lemn_tf.export.client import MemoryClient
    from lemn_tf.export.errors import ServingError
    from lemn_tf.export.savedmodel import export
    from lemn_tf.export.servable import Servable, text_servable
    from lemn_tf.export.server import Server

__all__ = ["MemoryClient", "Servable", "Server", "ServingError", "export", "text_servable"]

_WHERE = {
    "MemoryClient": "client",
    "Servable": "servable",
    "Server": "server",
    "ServingError": "errors",
    "export": "savedmodel",
    "text_servable": "servable",
}
"""Name to module. Each is imported when it is first used: a client needs no TensorFlow."""


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
