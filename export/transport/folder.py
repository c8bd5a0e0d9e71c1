"""A SavedModel in this process. Needs TensorFlow."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from lemn_tf.export.errors import Code, ServingError
from lemn_tf.export.folders import find_models, versions
from lemn_tf.export.loaded import LoadedModel
from lemn_tf.export.tensors import Arrays
from lemn_tf.export.transport.base import Interface


class Folder:
    """A SavedModel loaded here.

    Args:
        path: its folder, or one with numbered versions, of which the newest is taken.
    """

    def __init__(self, path: str | os.PathLike):
        found = find_models(Path(path))
        if len(found) != 1:
            raise ValueError(f"{path}: expected one model; got {list(found)}")
        ((name, base),) = found.items()
        newest, folder = max(versions(base).items())
        self.model = LoadedModel(folder, name, newest)

    def describe(self, version: int | None = None) -> tuple[int, dict[str, Interface]]:
        if version not in (None, self.model.version):
            loaded = f"version {self.model.version} is loaded here, not {version}"
            raise ServingError(Code.NOT_FOUND, loaded)
        signatures = self.model.signatures.items()
        return self.model.version, {k: Interface(s.inputs, s.outputs) for k, s in signatures}

    def run(self, signature: str, arrays: Mapping[str, np.ndarray]) -> Arrays:
        return self.model.run(signature, arrays)

    def close(self) -> None:
        self.model.close()
