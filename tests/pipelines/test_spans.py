"""Documents as episodes: the arrays, the labels, and the order of batches."""

import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf

from lemn_tf.pipelines import documents, spans
from lemn_tf.pipelines.answers import normalize
from lemn_tf.pipelines.embeddings import Words
from lemn_tf.pipelines.order import Drawing
from lemn_tf.pipelines.spans import Layout

WORDS = Words(["the", "pisa", "italy", "beatles", "tower"])
LAYOUT = Layout(questions=4, spans=6, longest=3)


@functools.cache
def _batches(collection, layout, size):
    return list(spans.dataset(collection, WORDS, size, layout).as_numpy_iterator())


def batches(collection, layout, size=2):
    """All batches; those of the same arguments are made once for all tests."""
    return _batches(collection, layout, size)


def answer_texts(collection, batch, row, place):
    """The texts of the labelled spans of a question."""
    document, offsets = collection[batch["document"][row]], batch["offsets"][row]
    return [
        document.between(offsets[slot, first, 0], offsets[slot, first + more, 1])
        for slot, first, more in batch["answers"][row, place]
        if slot >= 0
    ]


def test_shapes_and_padding(collection):
    (batch,) = batches(collection, LAYOUT)
    steps = batch["items"]["words"].shape[1]
    assert batch["items"]["chars"].shape == (2, steps, 20, 16)
    assert batch["items"]["features"].shape == (2, steps, 20, 6)
    assert batch["questions"]["words"].shape == (2, 4, 30)
    assert batch["answers"].shape == (2, 4, 6, 3)
    assert batch["offsets"].shape == (2, steps, 20, 2)
    np.testing.assert_array_equal(batch["ask_at"] >= 0, batch["question"] >= 0)
    for row, length in enumerate(batch["length"]):
        words = batch["items"]["words"][row]
        assert words[:length].any(axis=1).all()
        assert not words[length:].any()
        padding = words == 0
        assert (batch["offsets"][row][padding] == -1).all()
        assert not batch["items"]["features"][row][padding].any()
        asked = batch["ask_at"][row]
        assert set(asked[asked >= 0]) == {length}


@pytest.mark.parametrize("sentences", [False, True])
def test_offsets_give_back_every_word(collection, sentences):
    (batch,) = batches(collection, Layout(slot_words=6, longest=3, sentences=sentences))
    for row, number in enumerate(batch["document"]):
        document = collection[number]
        offsets = batch["offsets"][row].reshape(-1, 2)
        got = [document.between(*pair) for pair in offsets if pair[0] >= 0]
        assert len(got) == len(document.text.split())
        for word, raw in zip(got, document.text.split(), strict=True):
            assert word
            assert word in raw


@pytest.mark.parametrize("sentences", [False, True])
def test_words_know_how_far_their_paragraph_has_gone(made, sentences):
    text = "Pisa is a town.\nIt leans.\n\nIt has a tower. \n  \n\n" + "very " * 9
    (made.evidence / "wikipedia" / "Pisa.txt").write_text(text)
    collection = documents.read(
        made.write([made.record(1, "?", ["town"], "Pisa.txt")]), made.evidence
    )
    (batch,) = batches(collection, Layout(slot_words=5, longest=3, sentences=sentences))
    live = batch["items"]["words"][0] > 0
    expected = [*range(6), *range(4), *range(9)]
    assert batch["paragraph"][0][live].tolist() == expected
    assert not batch["paragraph"][0][~live].any()


def test_labels_are_the_right_answers_and_all_of_them(collection):
    (batch,) = batches(collection, LAYOUT)
    found = {}
    for row in range(2):
        for place, number in enumerate(batch["question"][row]):
            if number >= 0:
                question = collection.questions[number]
                texts = answer_texts(collection, batch, row, place)
                assert {normalize(text) for text in texts} <= set(question.normalized_aliases)
                found[question.id] = texts
    assert found == {
        "tc_1": ["Italy", "Italy"],
        "tc_2": ["AC/DC"],
        "tc_3": ["The Beatles", "Beatles"],
        "tc_4": ["1996"],
        "tc_5": [],
    }


def test_the_first_occurrence_alone(collection):
    (batch,) = batches(collection, Layout(first_only=True, longest=2))
    assert (np.sum(batch["answers"][..., 0] >= 0, axis=-1) <= 1).all()
    row, place = np.argwhere(batch["question"] == 2)[0]
    assert answer_texts(collection, batch, row, place) == ["Beatles"]


def test_answers_across_the_end_of_a_slot_are_told(made):
    qa = made.write([made.record(1, "?", ["tower of pisa"], "Pisa.txt")])
    collection = documents.read(qa, made.evidence)
    (whole,) = batches(collection, Layout(slot_words=4))
    (cut,) = batches(collection, Layout(slot_words=3))
    (none,) = batches(collection, Layout(slot_words=4, longest=2))
    assert whole["answers"][0, 0, 0].tolist() == [0, 0, 3]  # with its article
    assert [batch["reach"][0, 0] for batch in (whole, cut, none)] == [2, 1, 0]
    assert (cut["answers"] == -1).all()
    assert spans.select(collection, WORDS, Layout(slot_words=3))[1]["crossing"] == 1


def test_sentences_begin_slots(collection):
    (batch,) = batches(collection, Layout(slot_words=6, longest=3, sentences=True))
    row = int(np.flatnonzero(batch["document"] == 0)[0])
    document, offsets = collection[0], batch["offsets"][row]
    firsts = [document.between(*pair) for pair in offsets[: batch["length"][row], 0]]
    assert firsts == ["The", "It", "in", "Pisa", "AC/DC", "Italy"]
    start = batch["items"]["features"][row, ..., 3]
    assert start[: batch["length"][row], 0].tolist() == [1, 1, 0, 1, 0, 1]
    assert not start[:, 1:].any()


def test_max_words_and_fixed_slots(collection):
    (cut,) = batches(collection, Layout(slot_words=5, max_words=12, longest=1))
    assert cut["length"].tolist() == [3, 3]
    assert np.sum(cut["items"]["words"] > 0) == 24
    (fixed,) = batches(collection, Layout(slot_words=5, slots=2, longest=1))
    assert fixed["items"]["words"].shape[1] == 2
    assert fixed["length"].tolist() == [2, 2]
    np.testing.assert_array_equal(fixed["items"]["stem"], cut["items"]["stem"][:, :2])
    assert fixed["answers"][..., 0].max() < 2
    (long,) = batches(collection, Layout(slot_words=5, slots=50, longest=1))
    assert long["items"]["words"].shape[1] == 50


def test_a_document_alone_is_as_in_a_batch(collection):
    (both,) = batches(collection, LAYOUT)
    for one in batches(collection, LAYOUT, size=1):
        row = int(np.flatnonzero(both["document"] == one["document"][0])[0])
        steps = one["length"][0]
        for name in ("words", "chars", "stem", "features", "idf"):
            np.testing.assert_array_equal(
                one["items"][name][0], both["items"][name][row, :steps], err_msg=name
            )
        for name in ("answers", "reach", "question", "ask_at"):
            np.testing.assert_array_equal(one[name][0], both[name][row], err_msg=name)


def test_more_questions_than_places(collection):
    out = batches(collection, Layout(questions=2, longest=1), size=1)
    asked = [(b["document"][0], int(q)) for b in out for q in b["question"][0] if q >= 0]
    assert sorted(asked) == [(0, 0), (0, 1), (0, 3), (1, 2), (1, 4)]


def test_resuming_gives_the_same_batches(collection):
    options = {"shuffle_seed": 4, "repeat": True}
    layout = Layout(questions=1, longest=1)

    def order(start, count):
        data = spans.dataset(collection, WORDS, 2, layout, start=start, **options)
        return [batch["question"].tolist() for batch in data.take(count).as_numpy_iterator()]

    whole = order(0, 8)
    assert order(3, 5) == whole[3:]
    assert spans.dataset(collection, WORDS, 2, layout).cardinality() == 3
    assert spans.dataset(collection, WORDS, 2, layout, drop_remainder=True).cardinality() == 2


def test_the_training_rule_of_the_paper(collection):
    kept, counts = spans.select(collection, WORDS, LAYOUT, within=10)
    assert counts == {"kept": 1, "later": 3, "crossing": 0, "absent": 1}
    assert [kept.questions[i].id for entry in kept.entries for i in entry.questions] == ["tc_3"]
    kept, counts = spans.select(collection, WORDS, LAYOUT)
    assert counts == {"kept": 4, "later": 0, "crossing": 0, "absent": 1}
    assert len(kept) == 2


def test_idf_counts_documents(collection):
    idf = spans.count_idf(collection, WORDS, LAYOUT)
    encoded = next(iter(spans.encoded(collection, WORDS, Drawing(2), LAYOUT)))
    batch = spans.finish(encoded, WORDS, idf)
    words, values = batch["items"]["words"].numpy(), batch["items"]["idf"].numpy()
    assert np.allclose(values[words == 1], np.log(3 / 3))  # "the" is in both
    assert np.allclose(values[words == 2], np.log(3 / 2))  # "Pisa" in one
    assert (values[words == 0] == 0).all()


def test_empty_and_odd_documents(made):
    folder = made.evidence / "wikipedia"
    (folder / "Empty.txt").write_bytes(b"")
    (folder / "Odd.txt").write_bytes(b"\xef\xbb\xbfcaf\xe9 \xff\xfe x\n\n\t Italy\xe2\x80\x99s ")
    records = [made.record(1, "Where?", ["Italy"], "Empty.txt", "Odd.txt")]
    collection = documents.read(made.write(records), made.evidence)
    (batch,) = batches(collection, LAYOUT)
    lengths = dict(zip(batch["document"].tolist(), batch["length"].tolist(), strict=True))
    assert lengths == {0: 0, 1: 1}
    row = int(np.flatnonzero(batch["document"] == 1)[0])
    assert answer_texts(collection, batch, row, 0) == ["Italy"]
    alone = batches(collection, LAYOUT, size=1)[0]
    assert alone["items"]["words"].shape == (1, 1, 20)
    assert alone["ask_at"][0, 0] == 0


@pytest.mark.parametrize("data", [b"text then\n \0 binary", b"\xff\xfe\0\x80"])
def test_binary_documents_are_named(made, data):
    (made.evidence / "wikipedia" / "Pisa.txt").write_bytes(data)
    collection = documents.read(made.qa, made.evidence)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)binary data in.*Pisa\.txt"):
        batches(collection, LAYOUT)


def test_bad_arguments_are_refused(collection):
    with pytest.raises(ValueError, match="slot_words >= 1, got 0"):
        Layout(slot_words=0)
    with pytest.raises(ValueError, match="at least one document with a question"):
        spans.dataset(dataclasses.replace(collection, entries=()), WORDS, 1)
    with pytest.raises(ValueError, match="batch_size >= 1"):
        spans.dataset(collection, WORDS, 0)
    with pytest.raises(ValueError, match="a weight for each of 1 question files, got 2"):
        spans.dataset(collection, WORDS, 1, weights=[1, 2], shuffle_seed=1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'wieghts'"):
        spans.dataset(collection, WORDS, 1, wieghts=[1])
