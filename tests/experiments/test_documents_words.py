"""What a model of documents was told about words."""

import pytest

from lemn_tf.experiments import documents_words
from lemn_tf.model import StreamReader
from lemn_tf.readers import MemN2N


def test_a_model_of_something_else_is_refused():
    with pytest.raises(ValueError, match="expected a model of documents"):
        documents_words.words_of(StreamReader(MemN2N(9, sentence_length=4), 3, "fifo"))
