"""Encoded documents in a TFRecord file: written once, read many times without their texts.

A record is one document with up to Q questions, in the small types of `spans.encoded`. A batch is
padded while the bytes are decoded, so reading costs next to nothing.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from lemn_tf.files import replacing

from . import tokens
from .documents import Collection
from .embeddings import Words
from .order import Drawing
from .slots import Layout
from .spans import Batch, encoded, finish

_SMALL = {
    "words": tf.int32,
    "chars": tf.uint8,
    "shape": tf.uint8,
    "suffix": tf.int32,
    "punctuation": tf.uint8,
    "stem": tf.int32,
}


def _fields(layout: Layout) -> dict[str, tuple[tf.DType, list[int], int]]:
    """Every array of a record: its type, the shape behind T or Q, and what is added to store it."""
    wide = {"chars": [tokens.CHARS], "punctuation": [2]}
    fields = {
        f"{where}/{name}": (_SMALL[name], [columns, *wide.get(name, [])], 0)
        for where, columns in (("items", layout.slot_words), ("questions", layout.question_words))
        for name in tokens.ARRAYS
    }
    return fields | {
        "starts": (tf.uint8, [layout.slot_words], 0),
        "paragraph": (tf.int32, [layout.slot_words], 0),
        "question_starts": (tf.uint8, [layout.question_words], 0),
        "offsets": (tf.int32, [layout.slot_words, 2], 1),
        "answers": (tf.int32, [layout.spans, 3], 1),
        "reach": (tf.int32, [], 1),
        "question": (tf.int32, [], 1),
        "document": (tf.int32, [], 0),
        "length": (tf.int32, [], 0),
    }


_OF_DOCUMENT = ("document", "length")
_OF_SLOTS = ("starts", "paragraph", "offsets")


def write(
    path: str | os.PathLike,
    collection: Collection,
    words: Words,
    layout: Layout = Layout(),  # noqa: B008 (frozen)
) -> int:
    """Encodes a collection into a TFRecord file, whole or not at all; returns how many records.

    Beside it lies `PATH.json`, which says how it was made; `read` compares.

    Args:
        path: the file to write. Missing folders are made.
        collection, words, layout: as for `spans.dataset`.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with replacing(path) as temporary:
        with tf.io.TFRecordWriter(str(temporary)) as writer:
            for batch in encoded(collection, words, Drawing(32), layout).as_numpy_iterator():
                for row in range(len(batch["length"])):
                    writer.write(_record(batch, row, layout))
                    count += 1
        note = {"records": count, **_made(words, layout)}
        with replacing(_note(path)) as beside:
            beside.write_text(json.dumps(note, indent=1) + "\n", encoding="utf-8")
    return count


def read(
    path: str | os.PathLike,
    words: Words,
    batch_size: int,
    layout: Layout = Layout(),  # noqa: B008 (frozen)
    *,
    idf: np.ndarray | None = None,
    **drawing: Any,
) -> tf.data.Dataset:
    """Batches as `spans.dataset` gives them, from a file that `write` made.

    Args:
        path: the file.
        words, layout, idf: as for `spans.dataset`; the first two as the file was written with.
        batch_size: documents in a batch.
        drawing: as for `spans.dataset`, but `weights`; documents are shuffled within some
            thousands.
    """
    drawn = Drawing(batch_size, **drawing)
    if drawn.weights is not None:
        raise ValueError("expected no weights for a single file")
    data, count = _stored(Path(path), words, layout, drawn)
    data = drawn.batched(data.skip(drawn.begin))
    data = data.map(lambda rows: finish(_parse(rows, layout), words, idf), tf.data.AUTOTUNE)
    return drawn.counted(data, count).prefetch(4)


def cached(
    folder: str | os.PathLike,
    collection: Collection,
    words: Words,
    batch_size: int,
    layout: Layout = Layout(),  # noqa: B008 (frozen)
    *,
    idf: np.ndarray | None = None,
    **drawing: Any,
) -> tf.data.Dataset:
    """As `spans.dataset`, by way of files in `folder` that are written where they are missing.

    There is one for each question file. Its name goes by the documents, their questions, the
    vocabulary and the layout, so that a file is never used for anything else. The order differs
    from that of `spans.dataset`: documents are shuffled within some thousands.

    Args:
        folder: for the files; made if missing.
        collection, words, batch_size, layout, idf, drawing: see `spans.dataset`.
    """
    drawn = Drawing(batch_size, **drawing)
    drawn.check(collection)
    parts, counts, shares, index, before = [], [], [], [], 0
    for source in range(len(collection.qa_files)):
        where = [i for i, entry in enumerate(collection.entries) if entry.source == source]
        if not where:
            continue
        entries = tuple(collection.entries[i] for i in where)
        part = dataclasses.replace(collection, entries=entries)
        path = Path(folder) / f"{_digest(part, words, layout)}.tfrecord"
        if not _note(path).exists():
            write(path, part, words, layout)
        data, count = _stored(path, words, layout, drawn, source)
        parts.append(data.map(lambda record, first=before: (record, first)))
        counts.append(count)
        shares.append(count if drawn.weights is None else drawn.weights[source])
        index += where
        before += len(where)
    mixed = tf.data.Dataset.sample_from_datasets(
        parts, np.array(shares) / sum(shares), seed=drawn.shuffle_seed or 0
    )
    places = tf.constant(index, tf.int32)

    def parsed(rows, first):
        batch = _parse(rows, layout)
        document = tf.gather(places, batch["document"] + first)
        return finish({**batch, "document": document}, words, idf)

    data = drawn.batched(mixed.skip(drawn.begin)).map(parsed, tf.data.AUTOTUNE)
    return drawn.counted(data, sum(counts)).prefetch(4)


def _stored(
    path: Path, words: Words, layout: Layout, drawing: Drawing, source: int = 0
) -> tuple[tf.data.Dataset, int]:
    """The records of a file, and their number; raises unless it was written with these."""
    try:
        note = json.loads(_note(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{path}: expected encoded documents, found none") from error
    for name, value in _made(words, layout).items():
        if note.get(name) != value:
            raise ValueError(f"{path}: expected {name} {value}, got {note.get(name)}: write anew")
    data, count = tf.data.TFRecordDataset(str(path), buffer_size=1 << 22), note["records"]
    if drawing.shuffle_seed is not None:
        data = data.shuffle(min(count, 4096), seed=drawing.shuffle_seed + source)
    return data.repeat() if drawing.repeat else data, count


def _digest(collection: Collection, words: Words, layout: Layout) -> str:
    """Tells what a file is made of; a document counts as the same if name, size and date are."""
    digest = hashlib.sha256(json.dumps(_made(words, layout), sort_keys=True).encode())
    for entry in collection.entries:
        told: list[Any] = [entry.name, entry.size, entry.path.stat().st_mtime_ns]
        for number in entry.questions:  # records hold their numbers
            asked = collection.questions[number]
            told += [number, asked.text, asked.normalized_aliases]
        digest.update(json.dumps(told).encode())
    return digest.hexdigest()[:24]


def _note(path: Path) -> Path:
    return path.with_name(path.name + ".json")


def _made(words: Words, layout: Layout) -> dict[str, Any]:
    digest = hashlib.sha256("\n".join(words.vocabulary).encode()).hexdigest()
    return {
        "vocabulary": digest[:16],
        "buckets": words.buckets,
        "layout": dataclasses.asdict(layout),
        "arrays": sorted(_fields(layout)),
    }


def _record(batch: dict[str, Any], row: int, layout: Layout) -> bytes:
    length = int(batch["length"][row])
    feature = {}
    for name, (kind, _, added) in _fields(layout).items():
        where, _, inner = name.partition("/")
        value = batch[where][inner][row] if inner else batch[name][row]
        if name.startswith("items/") or name in _OF_SLOTS:
            value = value[:length]
        stored = (np.asarray(value) + added).astype(kind.as_numpy_dtype).tobytes()
        feature[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=[stored]))
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


def _parse(rows: tf.Tensor, layout: Layout) -> Batch:
    """Records `[B]` -> what `spans.encoded` gives."""
    fields = _fields(layout)
    stored = tf.io.parse_example(rows, {n: tf.io.FixedLenFeature([], tf.string) for n in fields})
    length = tf.reshape(tf.io.decode_raw(stored["length"], tf.int32), [-1])
    steps = tf.maximum(tf.reduce_max(length), 1) if layout.slots is None else layout.slots
    out: dict[str, Any] = {"items": {}, "questions": {}}
    for name, (kind, shape, added) in fields.items():
        where, _, inner = name.partition("/")
        of_items = where == "items" or name in _OF_SLOTS
        first = steps if of_items else layout.questions
        size = kind.size * int(np.prod(shape, dtype=int))
        lead = [] if name in _OF_DOCUMENT else [first]
        bytes_of_row = size * first if lead else size
        value = tf.io.decode_raw(stored[name], kind, fixed_length=bytes_of_row)
        value = tf.reshape(value, [rows.shape[0] or -1, *lead, *shape]) - tf.constant(added, kind)
        if inner:
            out[where][inner] = value
        else:
            out[name] = value
    out["ask_at"] = tf.where(out["question"] >= 0, length[:, None], -1)
    return out
