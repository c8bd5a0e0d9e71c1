"""Settings of runs over documents, and the files of their readers."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf.experiments import documents
from lemn_tf.experiments.documents import viewing
from lemn_tf.experiments.documents_words import ARRIVAL
from lemn_tf.readers import BiDAF, LiteReader
from tests.readers.conftest import texts

KINDS = {"kinds": (5, 7, 4), "words": 6}


def make(reader: str, seed: int, **options):
    keras.utils.set_random_seed(seed)
    if reader == "lite":
        return LiteReader(9, width=5, longest=3, units=4, **KINDS, **options)
    return BiDAF(9, width=5, units=3, char_units=2, **KINDS, **options)


@pytest.mark.parametrize("reader", documents.READERS)
def test_a_reader_is_saved_with_all_its_weights(reader, tmp_path):
    one, other = make(reader, 0), make(reader, 1)
    documents.save_weights(one, tmp_path / "reader.npz")
    table = other.table.numpy()
    documents.load_weights(other, tmp_path / "reader.npz")
    for ours, theirs in zip(one.trainable_weights, other.trainable_weights, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    np.testing.assert_array_equal(other.table.numpy(), table)  # word vectors are not in the file


def test_another_view_takes_the_weights_too(tmp_path):
    one, other = make("lite", 0), make("lite", 1, view=("hand", "words", "states"))
    documents.save_weights(one, tmp_path / "reader.npz")
    documents.load_weights(other, tmp_path / "reader.npz")
    np.testing.assert_array_equal(one.mix.kernel.numpy(), other.mix.kernel.numpy())
    smaller = LiteReader(9, width=5, longest=3, units=2, **KINDS)
    with pytest.raises(ValueError, match="expected weights"):
        documents.load_weights(smaller, tmp_path / "reader.npz")


def test_the_same_reader_with_another_view():
    one = make("lite", 0, view=("hand", "slot"), slot=ARRIVAL)
    other = documents.viewing(one, ("hand", "words", "slot", "sentence"), products=3)
    for ours, theirs in zip(one.trainable_weights, other.trainable_weights, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    np.testing.assert_array_equal(one.table.numpy(), other.table.numpy())
    assert other.products == 3
    assert set(other.summary_parts) == {"hand", "words", "slot", "sentence"}


def test_a_language_model_has_no_say_before_the_reader_learns_on():
    given = {"items": texts([3, 2], 6), "questions": texts([3, 2], 4, seed=1)}
    one = LiteReader(20, width=5, longest=3, units=4, **KINDS)
    other = viewing(one, ("hand",), context=7)
    assert other.context_width == 7
    random = np.random.default_rng(0)
    known = {
        part: {
            **given[part],
            "context": tf.constant(random.normal(size=[*given[part]["words"].shape, 7])),
        }
        for part in ("items", "questions")
    }
    ids = tf.zeros([3, 2, 1], tf.int64)

    def scores(reader, shown):
        codes, query = reader.encode(shown["items"]), reader.ask(shown["questions"])
        return reader.scores(query, codes[:, None, :1], ids).numpy()

    np.testing.assert_allclose(scores(other, known), scores(one, given), atol=1e-5)
    other.join.kernel.assign_add(tf.ones_like(other.join.kernel))
    before = scores(other, known)
    known["questions"]["context"] *= -1.0
    assert not np.allclose(scores(other, known), before)


def test_settings_say_what_is_wrong():
    given = {"qa": ("a",), "evidence": ("b",), "embeddings": "c"}
    with pytest.raises(ValueError, match="known are lite, bidaf"):
        documents.Settings(**given, reader="bert")
    with pytest.raises(ValueError, match="known are lemn, paper"):
        documents.Settings(**given, recipe="best")
    with pytest.raises(ValueError, match="expected word vectors, or a run or preset"):
        documents.Settings(**{**given, "embeddings": None})
    with pytest.raises(ValueError, match="for the lite reader and policies by our recipe"):
        documents.Settings(**given, recipe="paper", minilm="folder")
    with pytest.raises(ValueError, match="for policy, reader or both; got 'all'"):
        documents.Settings(**given, minilm="folder", minilm_for="all")
    with pytest.raises(ValueError, match="taken from a run or preset learns further"):
        documents.Settings(**given, further=10)
    aware = documents.Settings(**given, question_aware=True).make_policy()
    assert aware.question_aware
    assert aware.skip
