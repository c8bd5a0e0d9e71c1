"""LiteReader: hindsight for free, views, and learning in a StreamReader."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf.model import StreamReader
from lemn_tf.readers import LiteReader, Reader
from lemn_tf.readers.standards import Standards

KINDS = {"kinds": (5, 7, 4), "words": 6}


def make(**options) -> LiteReader:
    keras.utils.set_random_seed(0)
    return LiteReader(20, width=5, longest=3, units=4, **{**KINDS, **options})


def test_flipped_is_what_reading_every_memory_gives(documents):
    reader = make()
    codes, query = reader.encode(documents["items"]), reader.ask(documents["questions"])
    kept = tf.constant([[[0, 2, 5], [1, 3, 6]], [[-1, 0, 4], [1, 2, 3]], [[0, 1, 2], [3, 4, 5]]])
    given = (query, codes, tf.cast(kept, tf.int64), documents["answers"])
    found = reader.flipped(*given)
    assert found.shape == [3, 2, 7]
    assert np.any(found.numpy() > 0)
    np.testing.assert_allclose(found, Reader.flipped(reader, *given), atol=1e-6)


def test_a_word_that_the_question_shares_is_seen(documents):
    reader = make()
    query, items = reader.ask(documents["questions"]), dict(documents["items"])
    ids = tf.zeros([3, 1], tf.int64)

    def read():
        codes = reader.encode({name: leaf[:, :1] for name, leaf in items.items()})
        return reader.scores(query[:, 0], codes, ids).numpy()

    apart = read()
    items["stem"] = tf.where(items["stem"] > 0, items["stem"] + 100, 0)
    none_shared = read()
    assert not np.allclose(apart, none_shared)
    items["stem"] = tf.where(items["stem"] > 0, items["stem"] + 100, 0)
    np.testing.assert_array_equal(read(), none_shared)


def test_views(documents):
    items = {**documents["items"], "slot": tf.random.normal([3, 7, 2])}
    plain = make(view=("hand", "words", "slot"), slot=2)
    codes = plain.encode(items)
    assert plain.vectors(codes).shape == [3, 7, plain.summary_width]
    summaries = plain.summary(items).numpy().reshape([-1, plain.summary_width])
    plain.standardise(Standards.of(summaries))
    seen = plain.vectors(plain.encode(items)).numpy().reshape(summaries.shape)
    np.testing.assert_allclose(seen.mean(axis=0), 0.0, atol=1e-4)
    spread = summaries.std(axis=0) > 0.01
    np.testing.assert_allclose(seen.std(axis=0)[spread], 1.0, atol=1e-3)
    more = make(view=("hand", "sentence"), sentence=2, products=2)
    items = {**documents["items"], "sentence": items["slot"]}
    summaries = more.summary(items).numpy().reshape([-1, more.summary_width])
    standards = Standards.of(summaries, 2)
    more.standardise(standards)
    e = more.vectors(more.encode(items)).numpy()
    np.testing.assert_allclose(e.reshape([len(summaries), -1]), standards(summaries), atol=1e-4)
    wide = make(view=("states",), view_units=3)
    assert wide.vectors(wide.encode(items)).shape == [3, 7, 6]
    with pytest.raises(ValueError, match="made of hand, words"):
        make(view=("feelings",))
    with pytest.raises(ValueError, match="a view with 'sentence' needs the width"):
        make(view=("sentence",))


@pytest.mark.slow
def test_it_learns_in_a_stream_reader(documents):
    """What it answers, it learns; what it may forget is trained by hindsight."""
    model = StreamReader(make(view=("hand", "states")), slots=3, policy="st-lemn")
    model.compile(keras.optimizers.Adam(2e-2), jit_compile=False, slots=3)
    data = tf.data.Dataset.from_tensors(documents).repeat(30)
    history = model.fit(data, epochs=1, verbose=0)
    after = model.evaluate(tf.data.Dataset.from_tensors(documents), verbose=0, return_dict=True)
    assert after["loss"] < 1.0
    assert "hindsight" in history.history


def test_dropout_is_for_training_only(documents):
    reader = make(dropout=0.5)
    given = documents["questions"]
    np.testing.assert_array_equal(reader.ask(given), reader.ask(given))
    assert not np.allclose(reader.ask(given, training=True), reader.ask(given))
