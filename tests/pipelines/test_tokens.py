"""What is known of a word."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from lemn_tf.pipelines import slots, tokens
from lemn_tf.pipelines.embeddings import Words

WORDS = Words(["the", "cat", "sat", "well-known", "obama"])


def encoded(*raw):
    return {name: x.numpy()[0] for name, x in tokens.encode(tf.constant([raw]), WORDS).items()}


@pytest.mark.parametrize(
    ("raw", "parts"),
    [
        ("Obama's", ("", "Obama", "'s")),
        ("(“O’Brien’s”),", ("(“", "O’Brien", "’s”),")),
        ("U.S.A.", ("", "U.S.A", ".")),
        ("$12.50", ("$", "12.50", "")),
        ("£5", ("", "£5", "")),
        ("—", ("", "—", "")),
        ("...", ("", "...", "")),
        ("'s", ("'", "s", "")),
        ("", ("", "", "")),
        ("Élan!", ("", "Élan", "!")),
    ],
)
def test_punctuation_is_taken_off(raw, parts):
    got = [part.numpy()[0].decode() for part in tokens.strip(tf.constant([raw]))]
    assert tuple(got) == parts


@pytest.mark.parametrize(
    ("word", "shape"),
    [
        ("cat", "lower case"),
        ("Cat", "Capital"),
        ("A", "Capital"),
        ("Élan", "Capital"),
        ("CAT", "CAPITALS"),
        ("ÉLAN", "CAPITALS"),
        ("iPhone", "mIxed"),
        ("McDonald", "mIxed"),
        ("1996", "year"),
        ("2019", "year"),
        ("2119", "number"),
        ("90,000", "number"),
        ("19th", "letters and digits"),
        ("--", "neither"),
        ("", "padding"),
    ],
)
def test_shapes(word, shape):
    assert tokens.SHAPES[encoded(word, "x")["shape"][0]] == shape


def test_what_a_reader_gets():
    out = encoded("The", "cat", "sat.", "In", "1996,", "Obama's", "")
    assert out["words"][[0, 1, 2, 5, 6]].tolist() == [1, 2, 3, 5, 0]
    assert bytes(out["chars"][0][:4].astype(np.uint8)) == b"The\0"
    names = [name for name, _ in tokens.PUNCTUATION]
    assert [names[k] for k in out["punctuation"][:, 1]] == (
        ["none", "none", "full stop", "none", "comma", "possessive", "none"]
    )
    features = dict(zip(tokens.FEATURES, out["features"].T, strict=True))
    assert features["sentence_start"].tolist() == [1, 0, 0, 1, 0, 0, 0]
    assert features["capital"].tolist() == [1, 0, 0, 1, 0, 1, 0]
    assert features["year"].tolist() == [0, 0, 0, 0, 1, 0, 0]
    assert features["known"].tolist() == [1, 1, 1, 0, 0, 1, 0]
    for name in ("words", "shape", "suffix", "stem", "idf"):
        assert out[name][-1] == 0
        assert np.all(out[name][:-1] >= 0)
    assert np.all(out["stem"][:-1] > 0)
    assert not out["features"][-1].any()


def test_stems_match_across_endings():
    stem = encoded("walk", "walks", "walked", "Walking", "walker", "talk", "is", "I")["stem"]
    assert len(set(stem[:5])) == 1
    assert len(set(stem[4:])) == 4


def test_idf_is_that_of_the_stem():
    idf = np.zeros(tokens.IDF, np.float32)
    stem = encoded("walks")["stem"][0]
    idf[stem % tokens.IDF] = 7
    out = tokens.encode(tf.constant([["walking", "cat"]]), WORDS, idf)
    assert out["idf"].numpy().tolist() == [[7, 0]]


def test_any_leading_shape_and_a_saved_function_agree(tmp_path):
    raw = tf.constant([[["The", "cat"], ["sat.", ""]], [["Obama's", "1996"], ["", ""]]])
    whole = tokens.encode(raw, WORDS)

    class Module(tf.Module):
        def __init__(self):
            self.table = WORDS.table

        @tf.function(input_signature=[tf.TensorSpec([None, None], tf.string)])
        def run(self, rows):
            return tokens.encode(rows, WORDS)

    tf.saved_model.save(Module(), str(tmp_path / "saved"))
    loaded = tf.saved_model.load(str(tmp_path / "saved")).run(tf.reshape(raw, [4, 2]))
    for name, value in whole.items():
        value = tf.reshape(value, loaded[name].shape)
        np.testing.assert_allclose(value, loaded[name], rtol=1e-6)


def test_words_before_wide_spaces_are_whole():
    text = "It is 150\u00a0km\u3000away.\nBy car\u2003only\u0085now. \n\n So"
    raw, starts, _ = tokens.split(tf.constant([text, "", " \n"]))
    assert raw.to_list() == [[word.encode() for word in text.split()], [], []]
    begins = [word for word, start in zip(raw[0].numpy(), starts[0].numpy(), strict=True) if start]
    assert begins == [b"It", b"By", b"So"]


@settings(max_examples=40, deadline=None)
@given(st.text(alphabet="aB. \n\t\u00a0\u2003é?", max_size=60))
def test_words_are_split_as_in_the_pipeline(text):
    texts = tf.constant([text, "He left. Why?"])
    raw, row, place, begin, _ = slots._words(texts, None)
    stops = tokens.ends_sentence(*tokens.strip(raw)[1:])
    words, starts, before = tokens.split(texts)
    assert words.values.numpy().tolist() == raw.numpy().tolist()
    line = slots._line(texts, row, begin)
    fresh = (place == 0) | (line != tf.roll(line, 1, 0))
    assert starts.values.numpy().tolist() == (fresh | tf.roll(stops, 1, 0)).numpy().tolist()
    blank = (place == 0) | (line - tf.roll(line, 1, 0) > 1)
    assert before.values.numpy().tolist() == slots._since(blank).numpy().tolist()


def test_paragraphs_end_with_an_empty_line():
    texts = ["One two\nthree.\n \t\n\nFour five", "", "\n\nSix\n\n\n", "Seven eight"]
    _, _, before = tokens.split(tf.constant(texts))
    assert before.to_list() == [[0, 1, 2, 0, 1], [], [0], [0, 1]]
