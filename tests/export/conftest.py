"""One small exported model for all tests of this folder."""

import random
from types import SimpleNamespace

import keras
import pytest
import tensorflow as tf

from lemn_tf.export import export
from lemn_tf.model import StreamReader
from lemn_tf.readers.memn2n import MemN2N
from lemn_tf.text import Vocabulary

PEOPLE = ("Mary", "John", "Sandra", "Daniel")
PLACES = ("kitchen", "garden", "hallway", "office")
THINGS = ("milk", "football", "apple")


def sentences(count: int, seed: int = 0) -> list[str]:
    """Sentences of the bAbI kind, some with words that the vocabulary lacks."""
    draw = random.Random(seed)
    kinds = (
        lambda: f"{draw.choice(PEOPLE)} went to the {draw.choice(PLACES)}.",
        lambda: f"{draw.choice(PEOPLE)} took the {draw.choice(THINGS)}.",
        lambda: f"{draw.choice(PEOPLE)} says {draw.randrange(1000)}, naïvely!",
    )
    return [draw.choice(kinds)() for _ in range(count)]


def questions(count: int, seed: int = 1) -> list[str]:
    draw = random.Random(seed)
    return [f"Where is the {draw.choice(THINGS)}?" for _ in range(count)]


def small_model(policy="st-lemn", slots=5, seed=0) -> StreamReader:
    keras.utils.set_random_seed(seed)
    texts = [f"{p} went to the {q}." for p in PEOPLE for q in PLACES]
    texts += [f"{p} took the {t}. Where is the {t}?" for p in PEOPLE for t in THINGS]
    vocabulary = Vocabulary.from_texts(texts, PLACES)
    reader = MemN2N(vocabulary.size, sentence_length=8)
    return StreamReader(reader, slots=slots, policy=policy, vocabulary=vocabulary)


@pytest.fixture(scope="session")
def make():
    """The functions above, for tests."""
    return SimpleNamespace(sentences=sentences, questions=questions, model=small_model)


@pytest.fixture(scope="session")
def model() -> StreamReader:
    return small_model()


@pytest.fixture(scope="session")
def exported(model, tmp_path_factory):
    """Where `model` has been exported to: .../small/1."""
    path = tmp_path_factory.mktemp("models") / "small" / "1"
    return export(model, path, description="For tests.")


@pytest.fixture(scope="session")
def served(exported):
    """The exported model as loaded: `served.observe(**inputs)` and so on; `served.state_names`."""
    loaded = tf.saved_model.load(str(exported))
    names = tuple(loaded.signatures["initial_state"].structured_outputs)
    return SimpleNamespace(loaded=loaded, state_names=names, **dict(loaded.signatures.items()))
