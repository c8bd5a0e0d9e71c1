"""WordList: words and idf that travel with a model."""

import keras
import numpy as np
import pytest

from lemn_tf.wordlist import WordList


def test_it_can_be_made_again():
    known = WordList(["the", "cat", "naïve"], buckets=2, stems=4)
    known.set_idf(np.array([0.0, 0.5, 1.0, 2.0]))
    config = keras.saving.serialize_keras_object(known)
    again = keras.saving.deserialize_keras_object(config)
    again.set_weights(known.get_weights())
    assert again.words == ("the", "cat", "naïve")
    assert again.size == 6
    np.testing.assert_array_equal(again.idf.numpy(), [0.0, 0.5, 1.0, 2.0])


def test_an_idf_of_another_size_is_refused():
    with pytest.raises(ValueError, match=r"\(4,\), got \(3,\)"):
        WordList(["the"], stems=4).set_idf(np.zeros(3))
