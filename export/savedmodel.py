"""Writes a model as one SavedModel: its memory goes in and comes out of every call.

export(model, "models/babi/1")
server = tf.saved_model.load("models/babi/1")     # needs tensorflow and tensorflow_text alone
state = server.signatures["initial_state"](batch=tf.constant([0]))
state = server.signatures["observe"](**state, item=tf.constant(["Mary took the milk."]))
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import keras

from lemn_tf.export.packed import Packing
from lemn_tf.export.servable import Servable, text_servable
from lemn_tf.export.signatures import checked, flat_signatures, packed_signatures
from lemn_tf.model import StreamReader


def export(
    model: StreamReader | Servable,
    path: str | os.PathLike,
    *,
    overwrite: bool = False,
    **options,
) -> Path:
    """Writes a SavedModel that TF Serving can serve, all or nothing.

    Args:
        model: a `StreamReader` with a `Vocabulary`, or a `Servable` of any other model.
        path: where to; for TF Serving `DIR/NAME/VERSION`.
        overwrite: replace what is at `path`.
        **options: of `text_servable`, such as `length`.

    Returns:
        The path.
    """
    path = Path(path)
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists: choose another path, or pass overwrite=True")
    servable = model if isinstance(model, Servable) else text_servable(model, **options)
    path.parent.mkdir(parents=True, exist_ok=True)
    workspace = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        fresh = workspace / "new"
        _write(servable, fresh)
        if path.exists():
            path.rename(workspace / "old")
        fresh.rename(path)
    finally:
        shutil.rmtree(workspace)
    return path


def _write(servable: Servable, path: Path) -> None:
    archive = keras.export.ExportArchive()
    for layer in servable.layers:
        archive.track(layer)
    flat = flat_signatures(servable)
    signatures = flat | packed_signatures(servable, flat, Packing.of(servable))
    for name, signature in signatures.items():
        function, specs = checked(signature)
        archive.add_endpoint(name, function, specs)
    archive.write_out(str(path), verbose=False)
