"""MiniLM through KerasHub: the vectors its authors publish, and files of them."""

import json

import numpy as np
import pytest

from lemn_tf.experiments import minilm, minilm_vectors
from lemn_tf.pipelines import documents, spans
from lemn_tf.pipelines.embeddings import Words
from lemn_tf.pipelines.spans import Layout

pytest.importorskip("keras_hub")
WORDS, LAYOUT = Words(["the"]), Layout(slot_words=5, questions=2, longest=2)


@pytest.fixture(scope="module")
def model():
    return minilm.MiniLM()


@pytest.fixture
def collection(tmp_path):
    (tmp_path / "A.txt").write_text("The cat sat on the mat. It was not at all sorry for that.")
    (tmp_path / "B.txt").write_text("Gold is a metal.")
    records = [
        {
            "Question": f"What is {name}?",
            "QuestionId": name,
            "Answer": {"Aliases": ["mat"]},
            "EntityPages": [{"Filename": f"{name}.txt"}],
        }
        for name in "AB"
    ]
    (tmp_path / "qa.json").write_text(json.dumps({"Data": records}))
    return documents.read(tmp_path / "qa.json", tmp_path)


def test_the_published_vector(model):
    """The first numbers of the example on the model's page (exact GELU; KerasHub's is close)."""
    vectors, words = model([["This", "is", "an", "example", "sentence"], []])
    published = [0.0676569, 0.0634959, 0.0487131, 0.0793049, 0.0374480, 0.0026527, 0.0393749]
    np.testing.assert_allclose(vectors[0, :7], published, atol=5e-4)
    assert not vectors[1].any()
    assert words is None


def test_like_texts_are_near_and_accents_no_matter(model):
    rows = ["a man is eating food", "a man eats a meal", "the sky is blue", "café", "cafe"]
    vectors = model([row.split() for row in rows])[0]
    assert vectors[0] @ vectors[1] > 0.8
    assert vectors[0] @ vectors[2] < 0.3
    np.testing.assert_allclose(vectors[3], vectors[4], atol=1e-5)


def test_a_text_alone_is_as_in_a_batch(model):
    texts = [
        ["gold"],
        ["a", "much", "longer", "text", "with", "many", "more", "words", "in", "it"],
        ["x"] * 300,
    ]
    together, words = model(texts, each_word=3)
    for text, vector, of_words in zip(texts, together, words, strict=True):
        alone, alone_words = model([text], each_word=3)
        np.testing.assert_allclose(alone[0], vector, atol=1e-5)
        np.testing.assert_allclose(alone_words[0], of_words, atol=1e-4)
    assert not words[0, 1:].any()
    assert words[1].any(axis=-1).all()


@pytest.mark.parametrize("each_word", [False, True])
def test_slots_and_questions_get_their_vectors(model, collection, tmp_path, each_word):
    path = tmp_path / "new" / "vectors.npz"
    options = {"each_word": each_word, "model": model}
    made = minilm_vectors.Vectors.make(path, collection, WORDS, LAYOUT, **options)
    stored = minilm_vectors.Vectors.make(path, collection, WORDS, LAYOUT, each_word=each_word)
    np.testing.assert_array_equal(made.slots, stored.slots)
    assert made.splits.tolist() == [0, 3, 4]
    (batch,) = stored.attach(spans.dataset(collection, WORDS, 2, LAYOUT)).as_numpy_iterator()
    row = int(np.flatnonzero(batch["document"] == 1)[0])
    gold, words = model([["Gold", "is", "a", "metal"]], each_word=5)
    np.testing.assert_allclose(batch["items"]["vectors"][row, 0], gold[0], atol=1e-3)
    assert not batch["items"]["vectors"][row, 1:].any()
    asked = model([["What", "is", "B?"]])[0][0]
    np.testing.assert_allclose(batch["questions"]["vectors"][row, 0], asked, atol=1e-3)
    assert not batch["questions"]["vectors"][row, 1].any()
    assert ("word_vectors" in batch["items"]) == each_word
    if each_word:
        np.testing.assert_allclose(batch["items"]["word_vectors"][row, 0], words[0], atol=5e-3)


def test_a_file_of_other_documents_is_refused(model, collection, tmp_path):
    path = tmp_path / "vectors.npz"
    minilm_vectors.Vectors.make(path, collection, WORDS, LAYOUT, model=model)
    with pytest.raises(ValueError, match=r"vectors\.npz: made for other documents or slots"):
        minilm_vectors.Vectors.make(path, collection, WORDS, Layout(slot_words=4))
