"""Writes a model as one SavedModel: its memory goes in and comes out of every call.

    export(model, "models/babi/1")
    server = tf.saved_model.load("models/babi/1")     # needs tensorflow alone
    call = server.signatures
    state = call["initial_state"](batch=tf.constant([0]))
    after = call["observe"](**state, item=tf.constant(["Mary took the milk."]))
    state = {name: after[name] for name in state}

or, with the state as one string,

    after = call["observe_packed"](state=tf.constant([""]), item=tf.constant(["Mary left."]))
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import keras

from lemn_tf.export.card import card, describe
from lemn_tf.export.packed import Packing
from lemn_tf.export.servable import Servable, text_servable
from lemn_tf.export.signatures import checked, flat_signatures, packed_signatures
from lemn_tf.export.warmup import examples, write_warmup
from lemn_tf.model import StreamReader

EXTRA = "assets.extra"
"""The folder beside a SavedModel that TensorFlow leaves to others."""


def export(
    model: StreamReader | Servable,
    path: str | os.PathLike,
    *,
    name: str | None = None,
    version: str | int | None = None,
    description: str = "",
    overwrite: bool = False,
    warmup: bool = True,
    **options,
) -> Path:
    """Writes a SavedModel that TF Serving can serve, all or nothing.

    Args:
        model: a `StreamReader` with a `Vocabulary`, or a `Servable` of any other model.
        path: where to; for TF Serving `DIR/NAME/VERSION`, with a number for the version.
        name: the model's name; default as in `path`.
        version: the model's version; default as in `path`.
        description: a sentence for the card.
        overwrite: replace what is at `path`.
        warmup: write requests for TF Serving to warm up with.
        **options: of `text_servable`, such as `length`.

    Returns:
        The path. There: the SavedModel, `CARD.md`, and in `assets.extra` `lemn.json` and
        `tf_serving_warmup_requests`.
    """
    path = Path(path).absolute()
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists: choose another path, or pass overwrite=True")
    if isinstance(model, Servable):
        if options:
            raise TypeError(f"a Servable takes no options; got {sorted(options)}")
        servable = model
    elif isinstance(model, StreamReader):
        servable = text_servable(model, **options)
    else:
        raise TypeError(f"expected a StreamReader or a Servable; got {type(model).__name__}")
    about = {
        "name": path.parent.name if name is None else name,
        "version": path.name if version is None else str(version),
        "description": description,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    workspace = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        fresh = workspace / "new"
        _write(servable, fresh, about, warmup)
        if path.exists():
            path.rename(workspace / "old")
        fresh.rename(path)
    finally:
        shutil.rmtree(workspace)
    return path


def _write(servable: Servable, path: Path, about: dict[str, str], warmup: bool) -> None:
    flat = flat_signatures(servable)
    signatures = flat | packed_signatures(servable, flat, Packing.of(servable))
    archive = keras.export.ExportArchive()
    for owner in (*servable.layers, *servable.tables):
        archive.track(owner)
    outputs = {}
    for name, signature in signatures.items():
        function = archive.add_endpoint(name, *checked(signature))
        outputs[name] = function.get_concrete_function().structured_outputs
    archive.write_out(str(path), verbose=False)
    requests = examples(servable, signatures)
    facts = describe(servable, signatures, outputs, requests, **about)
    (path / EXTRA).mkdir()
    (path / EXTRA / "lemn.json").write_text(
        json.dumps(facts, indent=1, ensure_ascii=False), encoding="utf-8"
    )
    (path / "CARD.md").write_text(card(facts), encoding="utf-8")
    if warmup:
        write_warmup(path / EXTRA / "tf_serving_warmup_requests", about["name"], requests)


def read_facts(path: str | os.PathLike) -> dict[str, Any]:
    """What `lemn.json` says about the model at `path`."""
    return json.loads((Path(path) / EXTRA / "lemn.json").read_text(encoding="utf-8"))
