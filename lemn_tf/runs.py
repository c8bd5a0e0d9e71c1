"""Trained models by name: a preset that ships with the package, a run's folder, a `.keras` file.

>>> presets()["imaze-mqn-st-lemn-4"].task
'I-Maze'
"""

from __future__ import annotations

import dataclasses
import json
import os
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lemn_tf.model import StreamReader

PRESETS = Path(__file__).parent / "presets"


@dataclasses.dataclass(frozen=True)
class Preset:
    """What is known of a trained model that ships with the package.

    Attributes:
        name: to load it by.
        task: what it does.
        policy, slots: of its memory.
        score: what it reached, and on what.
        trained: on what, and how.
        size: of its file, in bytes.
    """

    name: str
    task: str
    policy: str
    slots: int
    score: str
    trained: str
    size: int = 0

    @property
    def about(self) -> str:
        """All of that in sentences, for the card of an exported model."""
        task = self.task[:1].upper() + self.task[1:]
        return f"{task}. {self.score}. Trained by {self.trained}."

    @property
    def path(self) -> Path:
        """Its file."""
        files = (PRESETS / f"{self.name}{ending}" for ending in (".keras", ".npz"))
        return next(path for path in files if path.is_file())


def presets() -> dict[str, Preset]:
    """The trained models that ship with the package, by name."""
    known = json.loads((PRESETS / "presets.json").read_text())
    made = (Preset(name=name, **facts) for name, facts in known.items())
    return {one.name: dataclasses.replace(one, size=one.path.stat().st_size) for one in made}


def from_preset(name: str) -> Any:
    """A trained model that ships with the package, ready to be used; or one of your own.

    Args:
        name: one of `presets()`, such as "babi-noisy-st-lemn-5", or the folder of a run.

    Returns:
        A `LiveReader` to talk to, with the Keras model as its `model`; for mazes a `Navigator`.
    """
    if name not in presets() and not Path(name).exists():
        raise ValueError(
            f"unknown preset {name!r}, and no such folder; presets are {', '.join(presets())}"
        )
    if is_agent(name):
        from lemn_tf.navigation.navigator import load_agent

        return load_agent(find_agent(name))
    from lemn_tf.live import LiveReader
    from lemn_tf.wordlist import WordList

    model = load(name)
    if not isinstance(model.vocabulary, WordList):
        return LiveReader(model)
    from lemn_tf.experiments.documents_text import Passages

    return LiveReader(model, Passages(model))


def config(name: str | os.PathLike) -> dict:
    """How the run in a folder, or of a model in it, was made; empty if there is no run."""
    path = Path(name)
    path = (path.parent if path.is_file() else path) / "config.json"
    return json.loads(path.read_text()) if path.is_file() else {}


def load(name: str | os.PathLike) -> StreamReader:
    """A trained model by the name of a preset, the folder of a run, or a `.keras` file."""
    path = find(name)
    try:
        return _load_file(path)
    except Exception as error:
        raise ValueError(f"{path} is not a model that can be loaded: {error}") from error


def find(name: str | os.PathLike) -> Path:
    """The file of a trained model that answers questions; says what is there if it is none."""
    path = Path(name)
    if (path / "model.keras").is_file():
        path = path / "model.keras"
    if path.is_file():
        if not zipfile.is_zipfile(path):
            raise ValueError(f"{path} is not a .keras file, or is damaged: expected a zip archive")
        return path
    if path.is_dir():
        raise ValueError(f"{path} is not a finished run: expected a model.keras in it")
    if str(name) in presets():
        if is_agent(name):
            raise ValueError(f"{name} is a maze agent: expected a model that answers questions")
        return presets()[str(name)].path
    raise ValueError(
        f"no run, .keras file or preset called {str(name)!r}; presets are {', '.join(presets())}"
    )


def find_agent(name: str | os.PathLike) -> Path:
    """The file of a trained maze agent by the folder of its run, its own name, or a preset's."""
    found = _agent_files(name)
    if not found:
        known = ", ".join(one for one in presets() if is_agent(one))
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
    from lemn_tf import model, readers, text, wordlist  # noqa: F401

    return keras.saving.load_model(path, compile=False)
