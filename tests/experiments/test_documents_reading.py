"""Documents that are read once and answered from by several policies."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from lemn_tf.episode import by_question
from lemn_tf.experiments import documents_evidence as evidence
from lemn_tf.experiments import documents_reading
from lemn_tf.experiments.documents_reading import Reading
from lemn_tf.experiments.documents_words import words_of
from lemn_tf.experiments.minilm import DIMENSIONS, Store
from lemn_tf.pipelines import documents as files
from lemn_tf.pipelines import spans
from tests.experiments.conftest import span_model
from tests.experiments.test_minilm import counted


@pytest.fixture(scope="module")
def model(towns):
    return span_model(towns)


@pytest.fixture(scope="module")
def reading(towns, model):
    return Reading(model, files.read(towns.qa, towns.evidence), batch_size=3)


def told(answers):
    """Answers without what depends on rounding, and that rounded."""
    return [(dataclasses.replace(a, confidence=0.0), round(a.confidence, 5)) for a in answers]


def test_what_was_held_for_another_policy_is_answered_from_as_if_read_anew(
    reading, model, monkeypatch
):
    few = reading.answer(model.with_policy("fifo"), slots=1)
    assert len(reading._held) == 2
    held = told(reading.answer(model))
    monkeypatch.setattr(documents_reading, "HELD", 1)
    anew = Reading(model, reading.collection, batch_size=3)
    assert held == told(anew.answer(model))
    assert not anew._held
    assert len(held) == len(reading.collection.questions)
    assert {answered.slot for answered in few} != {answered[0].slot for answered in held}


def test_a_policy_that_knows_the_question_reads_for_each(reading, model):
    aware = model.with_policy("overlap")
    batch, _ = next(iter(reading._batches()))
    episode = by_question(batch)
    _, kept = aware.act(episode, slots=2, seed=tf.constant([0, 0]))
    best = model.reader.best(aware.answer(episode, kept))
    asked = np.flatnonzero(batch["question"].numpy().reshape(-1) >= 0)
    got = reading.answer(aware, slots=2)[: len(asked)]
    assert [one.slot for one in got] == best.slot.numpy().reshape(-1)[asked].tolist()
    np.testing.assert_allclose(
        [one.confidence for one in got], best.confidence.numpy().reshape(-1)[asked], rtol=1e-4
    )


def test_vectors_of_slots_are_seen_by_the_policy_and_not_by_the_reader(towns, tmp_path):
    model = span_model(towns, sentence=DIMENSIONS)
    collection = files.read(towns.qa, towns.evidence)
    words, idf = words_of(model)
    layout = spans.Layout(slot_words=6, longest=6)
    batches = list(spans.dataset(collection, words, 3, layout, idf=idf).map(evidence.with_arrival))
    kept, codes = [], []
    for number, encode in enumerate((counted, lambda texts: -counted(texts))):
        store = Store(tmp_path / str(number), encode)
        reading = Reading(model, collection, 3, store)
        answered = reading.answer(model)
        assert len(answered) == len(collection.questions)
        codes.append([each.numpy() for _, each in reading._batches()])
        batch = batches[0]
        items = {**batch["items"], "sentence": store.of_batch(batch, collection)}
        np.testing.assert_allclose(codes[-1][0], model.reader.encode(items), atol=1e-5)
        kept.append([one.slot for one in answered])
        seen = evidence.gather(model.reader, collection, words, idf, layout, False, store)
        part = model.reader.summary_parts["sentence"]
        row = int(np.flatnonzero(batch["document"] == 0)[0])
        np.testing.assert_allclose(
            seen[0].vectors[:, part], items["sentence"][row, : seen[0].slots], atol=1e-5
        )
    wide = model.reader.summary_width
    for one, other in zip(*codes, strict=True):
        np.testing.assert_array_equal(one[..., :-wide], other[..., :-wide])
        assert not np.allclose(one[..., -wide:], other[..., -wide:])
    assert kept[0] != kept[1]


def test_a_folder_for_vectors_of_slots_is_asked_for(towns):
    model = span_model(towns, sentence=DIMENSIONS)
    reading = Reading(model, files.read(towns.qa, towns.evidence))
    with pytest.raises(ValueError, match="expected a folder for them"):
        reading.answer(model)


@pytest.mark.parametrize("slots", [1, 2])
def test_memories_drawn_at_random_hold_the_answer(reading, model, slots):
    answered = reading.answer_holding(slots)
    assert len(answered) == len(reading.collection.questions)
    everything = [one.in_memory for one in reading.answer(model, slots=99)]
    assert any(everything)
    assert [one.in_memory for one in answered] == everything
    assert [one.held for one in answered] == everything
    again = reading.answer_holding(slots)
    assert [one.place for one in again] == [one.place for one in answered]
    other = reading.answer_holding(slots, seed=1)
    assert [one.place for one in other] != [one.place for one in answered]


def test_another_reader_is_refused(reading, towns):
    with pytest.raises(ValueError, match="expected a model with the reader that read"):
        reading.answer(span_model(towns))
