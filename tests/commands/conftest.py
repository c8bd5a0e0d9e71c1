"""A small exported memory for the commands that serve one and talk to one."""

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
