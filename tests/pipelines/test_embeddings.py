"""Word vectors of files, and words as ids."""

import numpy as np
import pytest
import tensorflow as tf

from lemn_tf.pipelines.embeddings import Embeddings, Words, read_vectors


def test_ids_of_known_unknown_and_hyphenated_words():
    words = Words(["the", "known", "old"], buckets=50)
    ids = words(tf.constant([["", "the", "well-known"], ["12-year–old", "qwerty", "x-qwerty"]]))
    ids = ids.numpy()
    assert ids[:1].tolist() == [[0, 1, 2]]
    assert ids[1, 0] == 3
    assert all(4 <= number < words.size for number in ids[1, 1:])
    assert words.size == 1 + 3 + 50


def test_a_word_listed_twice_has_the_first_id():
    assert Words(["a", "b", "a"])(tf.constant(["a"])).numpy().tolist() == [1]


def test_rarity_grows_with_the_rank():
    rarity = Words(["the", "cat", "zebra"]).rarity(tf.constant([0, 1, 2, 3, 4])).numpy()
    assert rarity[1] == 0
    assert 0 < rarity[2] < rarity[3] == rarity[4] == 1


def test_the_table_has_a_row_for_every_id():
    vectors = np.arange(6, dtype=np.float16).reshape(3, 2)
    embeddings = Embeddings(("x", "y", "z"), vectors)
    words = Words(embeddings.vocabulary, buckets=4)
    table = embeddings.table(words)
    assert table.shape == (8, 2)
    assert table.dtype == np.float32
    np.testing.assert_array_equal(table[:4], [[0, 0], [0, 1], [2, 3], [4, 5]])
    assert np.all(np.any(table[4:] != 0, axis=1))
    with pytest.raises(ValueError, match="another one of 1"):
        embeddings.table(Words(["x"]))


@pytest.mark.parametrize("final", ["", "\n"])
def test_an_array_beside_its_words(tmp_path, final):
    np.save(tmp_path / "vectors.npy", np.ones((3, 2), np.float16))
    (tmp_path / "vocab_3.txt").write_text("the\n,\ncafé" + final, encoding="utf-8")
    embeddings = read_vectors(tmp_path / "vectors.npy", limit=2)
    assert embeddings.vocabulary == ("the", ",")
    assert embeddings.vectors.shape == (2, 2)
    assert read_vectors(tmp_path / "vectors.npy").vocabulary[2] == "café"


def test_text_as_glove_has_it(tmp_path):
    (tmp_path / "g.txt").write_text("the 1 2.5\n. -1e-3 0\n", encoding="utf-8")
    embeddings = read_vectors(tmp_path / "g.txt")
    assert embeddings.vocabulary == ("the", ".")
    np.testing.assert_allclose(embeddings.vectors, [[1, 2.5], [-1e-3, 0]])


def test_bad_files_are_named(tmp_path):
    array, text = tmp_path / "v.npy", tmp_path / "g.txt"
    np.save(array, np.ones((3, 2), np.float16))
    with pytest.raises(FileNotFoundError, match=r"one vocab\*.txt beside v.npy, found 0"):
        read_vectors(array)
    (tmp_path / "vocab.txt").write_text("a\nb\n")
    with pytest.raises(ValueError, match=r"each of 3 vectors of v\.npy, got 2"):
        read_vectors(array)
    (tmp_path / "vocab.txt").write_text("a\nb\nc\n")
    text.write_text("the 1 2\ncat 1\n")
    with pytest.raises(ValueError, match=r"g\.txt, line 2: expected 2 numbers as before, got 1"):
        read_vectors(text)
    text.write_text("the 1 x\n")
    with pytest.raises(ValueError, match=r"g\.txt, line 1: expected a word and numbers"):
        read_vectors(text)
    text.write_text("")
    with pytest.raises(ValueError, match="got no line"):
        read_vectors(text)
    array.write_bytes(b"not numpy")
    with pytest.raises(ValueError, match=r"v\.npy: expected an array"):
        read_vectors(array)
    np.save(array, np.ones(3))
    with pytest.raises(ValueError, match=r"floats of \[words, dimensions\], got float64 of \[3\]"):
        read_vectors(array)
