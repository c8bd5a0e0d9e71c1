"""The vocabulary: tokenizing, lookup, errors, and the ways it is saved."""

import random
import subprocess
import sys
import textwrap

import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf import text
from lemn_tf.text import Vocabulary

WORDS = ["mary", "went", "to", "the", "garden", "milk,football"]


@pytest.fixture
def vocabulary() -> Vocabulary:
    return Vocabulary(WORDS)


def test_ids_start_after_padding_and_unknown(vocabulary):
    ids = vocabulary(["Mary went to the GARDEN.", "went?! Bill", ""])
    assert ids.dtype == tf.int32
    np.testing.assert_array_equal(ids, [[2, 3, 4, 5, 6], [3, 1, 0, 0, 0], [0, 0, 0, 0, 0]])
    assert vocabulary.size == 8
    assert vocabulary.words == tuple(WORDS)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("went,to;the.garden", "went to the garden"),
        ("  went\tto\n the  ", "went to the"),
        ("'went' -to- (the)", "went to the"),
        ("mary's well-known", "[unk] [unk]"),
        ("the … garden…", "the garden"),
        ("!!!", ""),
        ("ÉTÉ", "[unk]"),
    ],
)
def test_punctuation_is_dropped(vocabulary, text, words):
    assert vocabulary.text(vocabulary(text)).numpy().decode() == words


def test_lower_case_is_that_of_unicode():
    assert Vocabulary(["été"])("ÉTÉ").numpy().tolist() == [2]


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0), (2, 3), (2, 1, 3)])
@pytest.mark.parametrize("length", [None, 2, 4])
def test_any_rank_and_length(vocabulary, shape, length):
    texts = tf.fill(shape, "went to the")
    eager = vocabulary(texts, length=length)
    graph = tf.function(lambda t: vocabulary(t, length=length))(texts)
    width = length or (3 if tf.size(texts) else 0)
    expected = np.broadcast_to([3, 4, 5, 0][:width], (*shape, width))
    np.testing.assert_array_equal(eager, expected)
    np.testing.assert_array_equal(graph, expected)
    assert vocabulary.lookup(texts).shape == shape


def test_length_is_static_in_the_graph(vocabulary):
    signature = tf.TensorSpec([None, 7], tf.string)
    traced = tf.function(lambda t: vocabulary(t, length=5)).get_concrete_function(signature)
    assert traced.output_shapes.as_list() == [None, 7, 5]


def test_answers_are_single_words(vocabulary):
    ids = vocabulary.lookup([["Garden", "milk,football"], [" mary ", "football"]])
    np.testing.assert_array_equal(ids, [[6, 7], [2, 1]])


def test_text_leaves_out_padding_and_survives_any_id(vocabulary):
    words = vocabulary.text([[2, 0, 3], [0, 0, 0], [99, -5, 1]])
    assert words.numpy().tolist() == [b"mary went", b"", b"[unk] [unk] [unk]"]


def test_bytes_that_are_not_utf8_are_no_words(vocabulary):
    np.testing.assert_array_equal(vocabulary([b"mary \xff\xfe went", b"\xc3"]), [[2, 3], [0, 0]])
    assert vocabulary.lookup([b"\xff\x00\x80"]).numpy().tolist() == [1]


def test_build_is_deterministic_and_covers_its_texts():
    texts = ["Mary went home.", "Where is John's well-known cat?", "42 is Mary"]
    built = Vocabulary.from_texts(texts, answers=["Milk,Apple", "home"])
    assert built.words == Vocabulary.from_texts(texts[::-1], ["home", "milk,apple"]).words
    assert 1 not in built(texts).numpy()
    assert 1 not in built.lookup(["milk,apple", "home"]).numpy()
    assert Vocabulary.from_texts([]).size == 2


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (["a", "b", "A"], ValueError, "'A' at positions 0 and 2"),
        (["a", " "], ValueError, "not empty"),
        (["a", 3], TypeError, "got 3 at position 1"),
        (["a", b"b"], TypeError, "got b'b'"),
        ("abc", TypeError, "one string 'abc'"),
    ],
)
def test_words_that_are_none(words, error, message):
    with pytest.raises(error, match=message):
        Vocabulary(words)


def test_numbers_are_refused(vocabulary):
    with pytest.raises(TypeError, match="string tensor, got dtype int32"):
        vocabulary(tf.constant([1]))
    with pytest.raises(TypeError, match="type str, got 3"):
        Vocabulary.from_texts([3])


def test_inside_tf_data(vocabulary):
    texts = tf.data.Dataset.from_tensor_slices(["Mary went", "to the garden"])
    ids = list(texts.map(lambda t: vocabulary(t, length=3)).batch(2))
    np.testing.assert_array_equal(ids[0], [[2, 3, 0], [4, 5, 6]])


def test_config_and_keras_file(vocabulary, tmp_path):
    assert Vocabulary.from_config(vocabulary.get_config()).words == vocabulary.words
    inputs = keras.Input((), dtype="string")
    model = keras.Model(inputs, keras.layers.Embedding(8, 3)(vocabulary(inputs)))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    texts = tf.constant(["Mary went", "the garden"])
    np.testing.assert_allclose(loaded(texts), model(texts))


def test_saved_model_needs_only_tensorflow_and_its_text_operations(vocabulary, tmp_path):
    archive = keras.export.ExportArchive()
    archive.track(vocabulary)
    signature = [tf.TensorSpec([None, None], tf.string)]
    archive.add_endpoint("ids", lambda texts: vocabulary(texts, length=3), signature)
    archive.add_endpoint("text", lambda texts: vocabulary.text(vocabulary(texts)), signature)
    archive.write_out(str(tmp_path / "archive"), verbose=False)

    module = tf.Module()
    module.vocabulary = vocabulary
    module.ids = tf.function(lambda texts: vocabulary(texts, length=3), input_signature=signature)
    tf.saved_model.save(module, str(tmp_path / "module"))

    script = """
        import sys
        import tensorflow as tf
        for name in ("archive", "module"):
            loaded = tf.saved_model.load(f"{sys.argv[1]}/{name}")
            assert loaded.ids(tf.constant([["Mary went"]])).numpy().tolist() == [[[2, 3, 0]]]
        loaded = tf.saved_model.load(f"{sys.argv[1]}/archive")
        assert loaded.text(tf.constant([["To the, garden"]])).numpy() == [[b"to the garden"]]
        assert "lemn_tf" not in sys.modules
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


SPACES = " \t\n\v\f\r\x1c\x1f\x85\xa0\u1680\u2003\u2028\u2029\u202f\u205f\u3000\u200b\ufeff"
LETTERS = "aZéßİ漢한\u0301\u0e33٣Ⅷ²'-’.,?\x00\U0001f95b"


def any_text(draw: random.Random) -> str:
    kinds = (
        lambda: draw.choice(SPACES),
        lambda: draw.choice(LETTERS),
        lambda: chr(draw.choice([draw.randrange(0xD800), draw.randrange(0xE000, 0x110000)])),
    )
    return "".join(draw.choice(kinds)() for _ in range(draw.randrange(25)))


def test_the_same_words_as_by_tensorflow_text(monkeypatch):
    """Core operations give the words that tensorflow_text's tokenizer for whitespace gives."""
    tf_text = pytest.importorskip("tensorflow_text")
    draw = random.Random(0)
    texts = [any_text(draw).encode() for _ in range(5000)]
    texts += [draw.randbytes(draw.randrange(12)) for _ in range(1000)]  # hardly ever UTF-8
    ours = text.tokenize(tf.constant(texts))
    monkeypatch.setattr(tf.strings, "split", tf_text.WhitespaceTokenizer().tokenize)
    theirs = text.tokenize(tf.constant(texts))
    assert ours.to_list() == theirs.to_list()
    assert ours.flat_values.shape[0] > 10_000
