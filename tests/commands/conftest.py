"""What several commands are tried on: a small exported memory, and an agent."""

import keras
import pytest

WORDS = [
    "mary",
    "john",
    "went",
    "took",
    "the",
    "to",
    "milk",
    "apple",
    "kitchen",
    "garden",
    "office",
    "where",
    "is",
]


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """Where it has been exported to: .../small/1."""
    from lemn_tf import StreamReader, Vocabulary
    from lemn_tf.export import export
    from lemn_tf.readers.memn2n import MemN2N

    keras.utils.set_random_seed(0)
    reader = MemN2N(len(WORDS) + 2, sentence_length=8)
    model = StreamReader(reader, slots=5, policy="st-lemn", vocabulary=Vocabulary(WORDS))
    return export(model, tmp_path_factory.mktemp("models") / "small" / "1")


@pytest.fixture(scope="session")
def agent(tmp_path_factory):
    """The folder of an untrained maze agent."""
    from lemn_tf.navigation.navigator import Navigator

    folder = tmp_path_factory.mktemp("agent")
    keras.utils.set_random_seed(0)
    Navigator("mqn", 3, "st-lemn", units=6, width=4, filters=(2, 3)).save(folder / "model.keras")
    return str(folder)
