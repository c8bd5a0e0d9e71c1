"""Reinforcement learning with TF-Agents: the only place that imports it, and only when asked to."""

import contextlib
import importlib
from typing import Any

_PLACES = {
    "ActorCriticAgent": "actor_critic",
    "Driven": "driving",
    "EvictionPolicy": "policy",
    "MazeEnvironment": "maze_environment",
    "StreamEnvironment": "environment",
}
__all__ = list(_PLACES)


def __getattr__(name: str) -> Any:
    """Imports the module that defines a name, only when asked: TF-Agents takes seconds to load."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with contextlib.suppress(ImportError):  # TF-Agents needs gym, which asks to be replaced
        importlib.import_module("gym_notices.notices").notices.clear()
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
