"""Trained models by name: a preset that ships with the package, a run's folder, a `.keras` file.

>>> presets()["imaze-mqn-st-lemn-4"].task
'I-Maze'
"""

from __future__ import annotations

import dataclasses
import importlib
import io
import json
import os
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lemn_tf.files import parsed, replacing

if TYPE_CHECKING:
    from lemn_tf.model import StreamReader

PRESETS = Path(__file__).parent / "presets"


@dataclasses.dataclass(frozen=True)
class Preset:
    """Facts about a trained model that ships with the package.

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
        """A summary in sentences, for the card of an exported model."""
        task = self.task[:1].upper() + self.task[1:]
        return f"{task}. {self.score}. Trained by {self.trained}."

    @property
    def path(self) -> Path:
        """Its file."""
        return PRESETS / f"{self.name}.keras"


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
        A `LiveReader` to talk to, with the Keras model as its `model`. A model that does not
        answer questions, such as an agent with `act`, is returned as it is.
    """
    if name not in presets() and not Path(name).exists():
        raise ValueError(
            f"unknown preset {name!r}, and no such folder; presets are {', '.join(presets())}"
        )
    from lemn_tf.live import LiveReader
    from lemn_tf.model import StreamReader
    from lemn_tf.wordlist import WordList

    model = load(name)
    if not isinstance(model, StreamReader):
        return model
    if not isinstance(model.vocabulary, WordList):
        return LiveReader(model)
    from lemn_tf.experiments.documents_text import Passages

    return LiveReader(model, Passages(model))


def config(name: str | os.PathLike) -> dict:
    """How a run was made, given its folder or a model in it; empty if there is no run."""
    path = Path(name)
    path = (path.parent if path.is_file() else path) / "config.json"
    return parsed(path, path.read_bytes()) if path.is_file() else {}


def import_modules(name: str | os.PathLike, given: Sequence[str] | None = None) -> None:
    """Imports what a run was made with, or is given instead: it may register worlds and policies.

    Args:
        name: the folder of a run, or a model in it.
        given: names of modules.
    """
    for module in given or config(name).get("modules", ()):
        importlib.import_module(module)


def load(name: str | os.PathLike, compiled: bool = False) -> Any:
    """A trained Keras model by the name of a preset, the folder of a run, or a `.keras` file.

    Args:
        name: one of these.
        compiled: whether to compile it as it was compiled when it was saved.
    """
    path = find(name)
    try:
        return _load_file(path, compiled)
    except ModuleNotFoundError:  # of an extra that is not installed: nothing is wrong with the file
        raise
    except Exception as error:
        raise ValueError(f"{path} is not a model that can be loaded: {error}") from error


def load_reader(name: str | os.PathLike) -> StreamReader:
    """Like `load`, but raises unless the model answers questions."""
    from lemn_tf.model import StreamReader

    model = load(name)
    if not isinstance(model, StreamReader):
        kind = type(model).__name__
        raise ValueError(f"{name} is a {kind}: expected a model that answers questions")
    return model


def find(name: str | os.PathLike) -> Path:
    """The file of a trained model; raises with a clear message if there is none."""
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
        return presets()[str(name)].path
    raise ValueError(
        f"no run, .keras file or preset called {str(name)!r}; presets are {', '.join(presets())}"
    )


class Saved(NamedTuple):
    """What the file of a trained model says about it.

    Attributes:
        cls: the name of its class: "StreamReader", "Navigator", "MemoryAgent" or one of your own.
        policy: the name of its memory's policy; empty for a model of your own.
        documents: whether it reads documents.
        world: of a maze agent, the kind of maze it was trained in; else empty.
    """

    cls: str
    policy: str = ""
    documents: bool = False
    world: str = ""


def about(name: str | os.PathLike) -> Saved:
    """What the file of a trained model says about it; the model is not loaded.

    Example:

    >>> about("babi-noisy-st-lemn-5")
    Saved(cls='StreamReader', policy='st-lemn', documents=False, world='')
    """
    path = find(name)
    saved = parsed(path, _parts(path))
    cls, made = saved.get("class_name", ""), saved.get("config", {})
    policy = made.get("policy", "")
    if isinstance(policy, dict):
        policy = policy["config"]["name"]
    words = (made.get("vocabulary") or {}).get("class_name")
    return Saved(cls, policy, words == "WordList", made.get("world", ""))


def check_reader(name: str | os.PathLike) -> Saved:
    """As `about`; raises unless the model answers questions."""
    found = about(name)
    if found.cls in ("Navigator", "MemoryAgent"):
        raise ValueError(f"{name} is a {found.cls}: expected a model that answers questions")
    return found


def _parts(path: Path) -> str:
    """The configuration in a `.keras` file."""
    try:
        with zipfile.ZipFile(path) as file:
            return file.read("config.json").decode()
    except (KeyError, zipfile.BadZipFile, ValueError) as error:
        raise ValueError(f"{path} is not a .keras file, or is damaged: {error}") from error


def _load_file(path: Path, compiled: bool) -> Any:
    import keras

    # Keras knows a class once its module is imported, and a saved model names the modules of all
    # its parts. Only our own are imported here.
    for module in dict.fromkeys(_modules(json.loads(_parts(path)))):
        if module.split(".")[0] == __package__:
            try:
                importlib.import_module(module)
            except ModuleNotFoundError as error:
                if error.name != module:  # a class may have moved since, but an extra is missed
                    raise
    return keras.saving.load_model(path, compile=compiled)


def save_small(model: Any, path: str | os.PathLike) -> None:
    """Saves a Keras model with its weights in half precision, for half the size.

    Args:
        model: the model; it is not changed.
        path: the file, `.keras`; `load` reads it like any other.
    """
    import h5py

    weights = "model.weights.h5"
    with replacing(path) as temporary:
        model.save(temporary)
        with zipfile.ZipFile(temporary) as file:
            parts = {name: file.read(name) for name in file.namelist()}
        small = io.BytesIO()
        with h5py.File(io.BytesIO(parts[weights])) as full, h5py.File(small, "w") as half:
            half.attrs.update(full.attrs)

            def copy(name: str, part: Any) -> None:
                if isinstance(part, h5py.Dataset):
                    single = part.dtype == "float32"
                    half[name] = part[()].astype("float16") if single else part[()]
                else:
                    half.create_group(name).attrs.update(part.attrs)

            full.visititems(copy)
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as file:
            for name, content in (parts | {weights: small.getvalue()}).items():
                file.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)


def _modules(config: Any) -> Iterator[str]:
    """The modules that the classes in a saved configuration are from."""
    if isinstance(config, dict):
        if isinstance(config.get("module"), str):
            yield config["module"]
        config = list(config.values())
    if isinstance(config, list):
        for part in config:
            yield from _modules(part)
