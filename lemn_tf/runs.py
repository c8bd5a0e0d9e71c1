"""Trained models by name: a preset that ships with the package, a run's folder, a `.keras` file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lemn_tf.model import StreamReader

PRESETS = Path(__file__).parent / "presets"


def presets() -> list[str]:
    """The names of the models that ship with the package."""
    return sorted(path.stem for path in PRESETS.glob("*.keras"))


def from_preset(name: str) -> StreamReader:
    """A trained model that ships with the package.

    Args:
        name: one of `presets()`, such as "babi-noisy-st-lemn-5".
    """
    path = PRESETS / f"{name}.keras"
    if not path.is_file():
        raise ValueError(f"unknown preset {name!r}; known are {', '.join(presets()) or 'none'}")
    return _load_file(path)


def config(name: str | os.PathLike) -> dict:
    """How the run in a folder, or of a model in it, was made; empty if there is no run."""
    path = Path(name)
    path = (path.parent if path.is_file() else path) / "config.json"
    return json.loads(path.read_text()) if path.is_file() else {}


def load(name: str | os.PathLike) -> StreamReader:
    """A trained model by the name of a preset, the folder of a run, or a `.keras` file."""
    path = Path(name)
    if (path / "model.keras").is_file():
        path = path / "model.keras"
    if path.is_file():
        try:
            return _load_file(path)
        except Exception as error:
            raise ValueError(f"{path} is not a model that can be loaded: {error}") from error
    if path.is_dir():
        raise ValueError(f"{path} is not a finished run: expected a model.keras in it")
    if str(name) in presets():
        return from_preset(str(name))
    agents = agent_presets()
    if str(name) in agents:
        raise ValueError(f"{name} is a maze agent: expected a model that answers questions")
    raise ValueError(
        f"no run, .keras file or preset called {str(name)!r}; presets are "
        f"{', '.join(presets()) or 'none'}, and for mazes {', '.join(agents) or 'none'}"
    )


def agent_presets() -> list[str]:
    """The names of the maze agents that ship with the package."""
    return sorted(path.stem for path in PRESETS.glob("*.npz"))


def find_agent(name: str | os.PathLike) -> Path:
    """The file of a trained maze agent by the folder of its run, its own name, or a preset's."""
    found = _agent_files(name)
    if not found:
        known = ", ".join(agent_presets()) or "none"
        raise ValueError(
            f"expected a trained maze agent, found none at {str(name)!r}; presets: {known}"
        )
    return found[0]


def is_agent(name: str | os.PathLike) -> bool:
    """Whether a name is that of a maze agent, so that `find_agent` finds it."""
    return bool(_agent_files(name))


def _agent_files(name: str | os.PathLike) -> list[Path]:
    places = (Path(name) / "model.npz", Path(name), PRESETS / f"{name}.npz")
    return [place for place in places if place.is_file() and place.suffix == ".npz"]


def _load_file(path: Path) -> StreamReader:
    import keras

    # Loading needs every class that a saved model may hold to be registered.
    from lemn_tf import model, readers, text  # noqa: F401

    return keras.saving.load_model(path, compile=False)
