"""Encoded documents in a file."""

import json

import numpy as np
import pytest
import tensorflow as tf

from lemn_tf.pipelines import documents, records, spans
from lemn_tf.pipelines.embeddings import Words
from lemn_tf.pipelines.spans import Layout

WORDS = Words(["the", "pisa", "italy", "beatles", "tower"])
LAYOUT = Layout(slot_words=6, questions=2, spans=4, longest=2)


def by_question(data):
    """The rows of a dataset, by their first question."""
    return {
        int(batch["question"][row, 0]): tf.nest.map_structure(lambda x, r=row: x[r], batch)
        for batch in data.as_numpy_iterator()
        for row in range(len(batch["length"]))
    }


@pytest.mark.parametrize("slots", [None, pytest.param(8, marks=pytest.mark.slow)])
def test_what_comes_back_is_what_was_written(collection, tmp_path, slots):
    layout = Layout(slot_words=6, questions=2, spans=4, slots=slots, longest=2)
    path = tmp_path / "new" / "train.tfrecord"
    assert records.write(path, collection, WORDS, layout) == 3
    fresh = by_question(spans.dataset(collection, WORDS, 3, layout))
    stored = by_question(records.read(path, WORDS, 3, layout))
    assert fresh.keys() == stored.keys()
    for number, row in fresh.items():
        tf.nest.map_structure(np.testing.assert_array_equal, row, stored[number])
        kinds = [[x.dtype for x in tf.nest.flatten(each)] for each in (row, stored[number])]
        assert kinds[0] == kinds[1]


@pytest.fixture(scope="module")
def path(collection, tmp_path_factory):
    """A file written once for the tests below."""
    path = tmp_path_factory.mktemp("records") / "train.tfrecord"
    records.write(path, collection, WORDS, LAYOUT)
    return path


def test_shuffling_repeating_and_dropping(path):
    data = records.read(path, WORDS, 2, LAYOUT, drop_remainder=True)
    assert data.cardinality() == 1
    endless = records.read(path, WORDS, 2, LAYOUT, shuffle_seed=1, repeat=True)
    seen = [int(b["document"][0]) for b in endless.take(20).as_numpy_iterator()]
    assert set(seen) == {0, 1}
    later = records.read(path, WORDS, 1, LAYOUT, start=2)
    assert later.cardinality() == len(list(later)) == 1
    with pytest.raises(ValueError, match="expected no weights for a single file"):
        records.read(path, WORDS, 1, LAYOUT, weights=[1])


def test_another_vocabulary_or_layout_is_refused(path, tmp_path):
    with pytest.raises(ValueError, match=r"train\.tfrecord: expected vocabulary"):
        records.read(path, Words(["x"]), 2, LAYOUT)
    with pytest.raises(ValueError, match=r"train\.tfrecord: expected layout"):
        records.read(path, WORDS, 2, Layout())
    with pytest.raises(FileNotFoundError, match=r"other: expected encoded documents, found none"):
        records.read(tmp_path / "other", WORDS, 2, LAYOUT)


def test_a_failed_write_leaves_nothing(made, tmp_path):
    (made.evidence / "wikipedia" / "Zürich.txt").write_bytes(b"\0")
    collection = documents.read(made.qa, made.evidence)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Z.*rich\.txt"):
        records.write(tmp_path / "out" / "x.tfrecord", collection, WORDS, LAYOUT)
    assert list((tmp_path / "out").iterdir()) == []


def test_the_note_says_how_it_was_made(path):
    note = json.loads(path.with_name("train.tfrecord.json").read_text())
    assert note["records"] == 3
    assert note["layout"]["slot_words"] == 6


@pytest.fixture
def two(made, tmp_path):
    """Two question files over the same documents."""
    other = tmp_path / "other.json"
    other.write_text(made.qa.read_text())
    return documents.read([made.qa, other], made.evidence)


@pytest.mark.slow
def test_a_cache_is_written_once(two, tmp_path):
    folder = tmp_path / "cache"
    fresh = by_question(spans.dataset(two, WORDS, 3, LAYOUT))
    stored = by_question(records.cached(folder, two, WORDS, 3, LAYOUT))
    assert fresh.keys() == stored.keys()
    for number, row in fresh.items():
        tf.nest.map_structure(np.testing.assert_array_equal, row, stored[number])
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert len(before) == 4  # two files with their notes
    records.cached(folder, two, WORDS, 2, LAYOUT, shuffle_seed=1)
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    records.cached(folder, two, WORDS, 2, Layout(slot_words=7))
    assert len(list(folder.iterdir())) == 8


def test_a_cache_mixes_by_weights_and_resumes(two, tmp_path):
    options = {"weights": [1, 9], "shuffle_seed": 3, "repeat": True}
    data = records.cached(tmp_path, two, WORDS, 2, LAYOUT, **options)
    seen = [b["document"].tolist() for b in data.take(100).as_numpy_iterator()]
    sources = np.array([two.entries[i].source for pair in seen for i in pair])
    assert 0.8 < sources.mean() < 0.98
    later = records.cached(tmp_path, two, WORDS, 2, LAYOUT, start=60, **options)
    assert [b["document"].tolist() for b in later.take(40).as_numpy_iterator()] == seen[60:]
    with pytest.raises(ValueError, match="expected a weight for each of 2 question files, got 1"):
        records.cached(tmp_path, two, WORDS, 2, LAYOUT, weights=[1])
    with pytest.raises(ValueError, match="expected weights above 0"):
        records.cached(tmp_path, two, WORDS, 2, LAYOUT, weights=[1, -1])
