"""A game small enough to win within seconds: one item of a stream is a key, and is asked for."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf.model import StreamReader
from lemn_tf.readers.base import Answer, Reader

WORDS, KEY, NOISE = 8, 2, 3


class KeyReader(Reader):
    """Answers with the second word of the entries whose first word is the question's."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.built = True

    def encode(self, entries):
        first, second = (tf.one_hot(entries[..., i], WORDS) for i in (0, -1))
        return tf.concat([first, second], axis=-1)

    def vectors(self, codes):
        return codes[..., :WORDS]

    def entry_spec(self):
        return tf.TensorSpec([2], tf.int32)

    def ask(self, question):
        return tf.one_hot(question[..., 0], WORDS)

    def read(self, query, codes, ids, **options):
        kind, value = tf.split(codes, 2, axis=-1)
        match = tf.einsum("...d,...md->...m", query, kind) * tf.cast(ids >= 0, tf.float32)
        logits = 3.0 * tf.einsum("...m,...md->...d", match, value)
        return Answer(logits, tf.nn.softmax(match))


class Lookup(Reader):
    """Answers with the values of the entries whose keys are like the question, as vectors."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.built = True

    def encode(self, entries):
        return tf.concat([entries["key"], tf.one_hot(entries["value"][..., 0], 4)], axis=-1)

    def ask(self, question):
        return question

    def read(self, query, codes, ids, **options):
        score = tf.einsum("...d,...md->...m", query, codes[..., :3])
        attention = tf.nn.softmax(tf.where(ids >= 0, score, -1e9))
        return Answer(tf.einsum("...m,...md->...d", attention, codes[..., 3:]), attention)


def make_streams(count, steps=6, questions=2, lengths=(6,), seed=0):
    """Streams with one key in the first half; asked for at the end and once before."""
    generator = np.random.default_rng(seed)
    items = np.stack(
        [np.full([count, steps], NOISE), generator.integers(4, WORDS, [count, steps])], axis=-1
    )
    length = np.resize(lengths, count)
    ask_at = np.full([count, questions], -1)
    place = generator.integers(0, 2, count)
    items[np.arange(count), place, 0] = KEY
    ask_at[:, 0] = length
    if questions > 1:
        ask_at[:, 1] = np.where(generator.random(count) < 0.7, length - 1, -1)
    answers = np.where(ask_at >= 0, items[np.arange(count), place, 1][:, None], -1)
    items[np.arange(steps)[None] >= length[:, None]] = 0
    arrays = {
        "items": items,
        "length": length,
        "questions": np.full([count, questions, 1], KEY),
        "ask_at": ask_at,
        "answers": answers,
        "support": np.where(ask_at >= 0, place[:, None], -1)[..., None],
    }
    return {name: array.astype(np.int32) for name, array in arrays.items()}


@pytest.fixture(scope="session")
def streams():
    """The function that makes streams."""
    return make_streams


@pytest.fixture(scope="session")
def make_model():
    """The function that makes a model with two slots over the key reader."""

    def make(policy="st-lemn", slots=2):
        keras.utils.set_random_seed(3)
        return StreamReader(KeyReader(), slots, policy)

    return make


@pytest.fixture(scope="session")
def lookup():
    """A reader of vectors and numbers."""
    return Lookup()
