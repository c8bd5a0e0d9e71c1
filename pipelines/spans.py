"""Documents as episodes: words with offsets, slots of 20 words, answers as spans within slots.

`dataset(collection, words, batch_size, ...)` makes batches. B documents of up to T slots of L = 20
words, Q questions a document of up to 30 words, K spans a question:

    items       dict over [B, T, L], see below
    length      [B] int32              slots of the document
    questions   the same dict over [B, Q, 30]
    ask_at      [B, Q] int32           = length (asked at the end), -1 for padding
    answers     [B, Q, K, 3] int32     (slot, first word, words - 1) of the right spans that lie
                                       within one slot, -1 for padding
    reach       [B, Q] int32           2 an answer lies within a slot, 1 all of them cross the end
                                       of one, 0 the document holds none, -1 padding
    offsets     [B, T, L, 2] int32     of each word in the document's bytes, without the punctuation
                                       around it; -1 for padding
    paragraph   [B, T, L] int32        how many words of its paragraph come before each word; a
                                       paragraph ends with an empty line
    document    [B] int32              index into the collection: `collection[i]` is the document
    question    [B, Q] int32           index into `collection.questions`, -1 for padding

The dict of items and questions, 0 for padding everywhere:

    words       [...] int32            ids of `pipelines.embeddings.Words`
    chars       [..., 16] int32        bytes of the word in UTF-8 (1 to 255)
    shape       [...] int32            `tokens.SHAPES`: lower case, Capital, CAPITALS, year, ...
    suffix      [...] int32            hash of the last three letters, below `tokens.SUFFIXES`
    punctuation [..., 2] int32         what stands before and after the word, `tokens.PUNCTUATION`
    stem        [...] int32            hash of the stem, below `tokens.STEMS`: equal ids match
    idf         [...] float32          of the stem, see `count_idf`
    features    [..., 6] float32       `tokens.FEATURES`: capital, digit, year, sentence start, ...

A document of more than Q questions comes several times, each time with other questions.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from . import tokens
from .documents import Collection
from .embeddings import Words
from .occurrences import Aliases, fingerprint
from .order import Drawing, Order, chunks
from .slots import Layout, encode

__all__ = ["Layout", "count_idf", "dataset", "finish", "select"]
Batch = dict[str, tf.Tensor]


def dataset(
    collection: Collection,
    words: Words,
    batch_size: int,
    layout: Layout = Layout(),  # noqa: B008 (frozen)
    *,
    idf: np.ndarray | None = None,
    **drawing: Any,
) -> tf.data.Dataset:
    """Batches of documents with their questions; documents are read as they are needed.

    Documents of like length come together. Batch n depends on the arguments and n alone, so
    `start=n` resumes a run.

    Args:
        collection: what `documents.read` found.
        words: the vocabulary.
        batch_size: documents in a batch.
        layout: how documents become slots, and answers spans.
        idf: what `count_idf` counted; None guesses from how frequent the vocabulary's words are.
        drawing: `weights`, `shuffle_seed`, `repeat`, `drop_remainder` and `start` of a `Drawing`.

    Returns:
        A `tf.data.Dataset` of the dicts described above.

    Example:

    >>> import tempfile, json, pathlib
    >>> from lemn_tf.pipelines import documents
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "Pisa.txt").write_text("Its tower leans. Pisa is a town in Italy.")
    >>> record = {"Question": "Where is Pisa?", "QuestionId": "q1",
    ...           "Answer": {"Aliases": ["Italy"]}, "EntityPages": [{"Filename": "Pisa.txt"}]}
    >>> _ = (folder / "qa.json").write_text(json.dumps({"Data": [record]}))
    >>> collection = documents.read(folder / "qa.json", folder)
    >>> batch = next(iter(dataset(collection, Words(["pisa", "italy"]), 1, Layout(slot_words=5))))
    >>> batch["answers"][0, 0, 0].numpy().tolist(), batch["length"].numpy().tolist()
    ([1, 3, 0], [2])
    >>> collection[0].between(*batch["offsets"][0, 1, 3].numpy())
    'Italy'
    """
    data = encoded(collection, words, Drawing(batch_size, **drawing), layout)
    return data.map(lambda batch: finish(batch, words, idf), tf.data.AUTOTUNE).prefetch(4)


def encoded(
    collection: Collection, words: Words, drawing: Drawing, layout: Layout
) -> tf.data.Dataset:
    """What `dataset` gives before `finish`: the same in small types, to be stored or counted."""
    drawing.check(collection)
    rows = chunks(collection, layout.questions)
    if not len(rows):
        raise ValueError("expected at least one document with a question, got none")
    sizes = np.array([entry.size for entry in collection.entries])[rows[:, 0]]
    sizes = np.minimum(sizes, 6 * (layout.max_words or sizes.max()))
    sources = np.array([entry.source for entry in collection.entries])[rows[:, 0]]
    order = Order(sizes, sources, drawing.batch_size, drawing.shuffle_seed, drawing.weights)
    begin = drawing.begin

    def indices() -> Iterator[np.ndarray]:
        for epoch in itertools.count(begin // len(rows)) if drawing.repeat else range(1):
            yield rows[order.epoch(epoch)][max(begin - epoch * len(rows), 0) :]

    spec = tf.TensorSpec([None, 1 + layout.questions], tf.int32)
    data = tf.data.Dataset.from_generator(indices, output_signature=spec).unbatch()
    paths = tf.constant([str(entry.path) for entry in collection.entries])
    data = data.map(lambda row: (row, tf.io.read_file(paths[row[0]])), tf.data.AUTOTUNE)
    data = drawing.batched(data)
    encoder = _Encoder(collection, paths, words, layout)
    data = data.map(tf.autograph.experimental.do_not_convert(encoder), tf.data.AUTOTUNE)
    return drawing.counted(data, len(rows))


class _Encoder:
    """Rows of `order.chunks` and their documents -> what `slots.encode` gives."""

    def __init__(
        self, collection: Collection, paths: tf.Tensor, words: Words, layout: Layout
    ) -> None:
        self.words, self.layout, self.paths = words, layout, paths
        asked = collection.questions
        self.questions = tf.constant([question.text for question in asked])
        aliases = [question.normalized_aliases for question in asked]
        self.splits = tf.constant(np.cumsum([0, *map(len, aliases)]), tf.int32)
        flat = [alias for several in aliases for alias in several]
        prints = [fingerprint(tf.constant(several, tf.string)) for several in _parts(flat, 1 << 16)]
        self.first = tf.concat([each.first for each in prints], 0)
        self.value = tf.concat([each.value for each in prints], 0)

    def __call__(self, rows: tf.Tensor, texts: tf.Tensor) -> Batch:
        document, asked = rows[:, 0], rows[:, 1:]
        binary = tf.strings.regex_full_match(texts, r"\C*\x00\C*")  # of bytes, UTF-8 or not
        which = tf.gather(tf.gather(self.paths, document), tf.where(binary)[:, 0])
        text = "expected documents of text, got binary data in"
        with tf.control_dependencies([tf.Assert(tf.size(which) == 0, [text, which])]):
            questions = tf.gather(self.questions, tf.maximum(asked, 0))
        questions = tf.where(asked < 0, "", questions)
        flat = tf.reshape(asked, [-1])
        low = tf.gather(self.splits, tf.maximum(flat, 0))
        high = tf.where(flat < 0, low, tf.gather(self.splits, tf.maximum(flat, 0) + 1))
        index = tf.ragged.range(low, high)
        where = tf.cast(index.value_rowids(), tf.int32)
        value = tf.gather(self.value, index.values)
        some = tf.where(value != 0)[:, 0]  # 0: an alias of nothing but articles and punctuation
        where, first = tf.gather(where, some), tf.gather(tf.gather(self.first, index.values), some)
        aliases = Aliases(first, tf.gather(value, some), where // self.layout.questions, where)
        batch = encode(texts, questions, aliases, self.words, self.layout)
        return {**batch, "document": document, "question": asked}


def _parts(strings: list[str], size: int) -> Iterator[list[str]]:
    """The strings in lists of `size`; an empty one if there are none."""
    return (strings[begin : begin + size] for begin in range(0, len(strings) or 1, size))


def finish(batch: Batch, words: Words, idf: np.ndarray | None = None) -> Batch:
    """Turns what `encoded` gives into what readers get."""
    out = dict(batch)
    table = None if idf is None else tf.constant(idf, tf.float32)
    out["items"] = tokens.finish(batch["items"], out.pop("starts"), words, table)
    out["questions"] = tokens.finish(batch["questions"], out.pop("question_starts"), words, table)
    return out


def count_idf(
    collection: Collection,
    words: Words,
    layout: Layout = Layout(),  # noqa: B008 (frozen)
) -> np.ndarray:
    """Counts in how many documents each stem occurs.

    Args:
        collection: the training documents.
        words: the vocabulary.
        layout: how much of each to read.

    Returns:
        `log((1 + documents) / (1 + documents with the stem))`, float32 `[tokens.IDF]`.
    """
    seen = np.zeros(tokens.IDF, np.int64)
    once = dataclasses.replace(layout, questions=max(len(e.questions) for e in collection.entries))
    for batch in encoded(collection, words, Drawing(16), once):
        for row in (batch["items"]["stem"] % tokens.IDF).numpy():
            seen[np.unique(row)] += 1
    return np.log((1 + len(collection)) / (1 + seen)).astype(np.float32)


def select(
    collection: Collection,
    words: Words,
    layout: Layout = Layout(),  # noqa: B008 (frozen)
    *,
    within: int | None = None,
) -> tuple[Collection, dict[str, int]]:
    """Keeps the questions that can be trained on: an answer lies within a slot.

    Args:
        collection: what `documents.read` found.
        words: the vocabulary.
        layout: how documents become slots, and answers spans.
        within: the answer must begin within this many words; in the paper 400.

    Returns:
        (the collection of those, counts of questions by what becomes of them: `kept`,
        `later` than `within`, `crossing` the end of a slot, `absent` from the document).
    """
    kept: dict[int, list[int]] = {}
    counts = dict.fromkeys(("kept", "later", "crossing", "absent"), 0)
    for batch in encoded(collection, words, Drawing(16), layout).as_numpy_iterator():
        first = batch["answers"][:, :, 0, :2] @ np.array([layout.slot_words, 1])
        for row, place in zip(*np.nonzero(batch["question"] >= 0), strict=True):
            reach = batch["reach"][row, place]
            late = reach == 2 and within is not None and first[row, place] >= within
            counts["later" if late else ("absent", "crossing", "kept")[reach]] += 1
            if reach == 2 and not late:
                kept.setdefault(batch["document"][row], []).append(batch["question"][row, place])
    entries = tuple(
        dataclasses.replace(entry, questions=tuple(int(i) for i in sorted(kept[number])))
        for number, entry in enumerate(collection.entries)
        if number in kept
    )
    return dataclasses.replace(collection, entries=entries), counts
