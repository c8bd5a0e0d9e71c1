"""What is worked out once about every slot is what reading any memory would give."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf.episode import by_question
from lemn_tf.experiments import documents_evidence as evidence
from lemn_tf.experiments import documents_policy as policies
from lemn_tf.experiments import documents_reader as reading
from lemn_tf.experiments.documents import viewing
from lemn_tf.pipelines import documents as files
from lemn_tf.pipelines import spans
from lemn_tf.pipelines.embeddings import Words, read_vectors
from lemn_tf.readers import LiteReader
from lemn_tf.readers.base import take_items


@pytest.fixture(scope="module")
def world(towns):
    vectors = read_vectors(towns.vectors)
    known = Words(vectors.vocabulary)
    collection = files.read(towns.qa, towns.evidence)
    idf = spans.count_idf(collection, known)
    keras.utils.set_random_seed(0)
    reader = LiteReader(known.size, 8, units=4, view=("hand", "slot"), slot=evidence.ARRIVAL)
    reader.set_table(vectors.table(known))
    batches = spans.dataset(collection, known, 4, idf=idf).map(evidence.with_arrival)
    return collection, known, idf, reader, list(batches)


@pytest.mark.slow
def test_any_memory_follows_from_its_slots(world):
    collection, known, idf, reader, batches = world
    found = evidence.gather(reader, collection, known, idf)
    assert len(found) == len(collection)
    assert sum(len(document.questions) for document in found) == len(collection.questions)
    batch = batches[0]
    document = found[int(batch["document"][1])]
    kept = tf.constant([[[0, 2, -1]] * batch["ask_at"].shape[1]] * batch["ask_at"].shape[0])
    kept = tf.cast(kept, tf.int64)
    codes, query = reader.encode(batch["items"]), reader.ask(batch["questions"])
    answer = reader.read(query, take_items(codes, kept), kept)
    expected = reader.probability(answer, batch["answers"]).numpy()[1]
    best = reader.best(answer)
    for q, number in enumerate(batch["question"][1].numpy()):
        if number < 0:
            continue
        at = list(document.questions).index(number)
        right = np.exp(document.right[at][[0, 2]]).sum()
        total = np.exp(document.total[at][[0, 2]]).sum()
        np.testing.assert_allclose(right / total, expected[q], atol=1e-5)
        slot = (0, 2)[int(np.argmax(document.best[at][[0, 2]]))]
        assert slot == int(best.slot[1, q])
        offsets = batch["offsets"][1, slot].numpy()
        told = [offsets[int(best.start[1, q]), 0], offsets[int(best.end[1, q]), 1]]
        np.testing.assert_array_equal(document.spans[at, slot], told)
    holds = (batch["answers"][1, :, :, 0, None].numpy() == np.arange(document.slots)).any(axis=1)
    np.testing.assert_array_equal(document.holds[: len(holds)].any(), holds.any())


def test_what_is_known_on_arrival_does_not_depend_on_what_comes_later(world):
    batch = world[-1][0]
    whole = evidence.arrival(batch["items"], batch["paragraph"])
    items = {name: leaf[:, :3] for name, leaf in batch["items"].items()}
    cut = evidence.arrival(items, batch["paragraph"][:, :3])
    assert whole.shape[-1] == evidence.ARRIVAL
    np.testing.assert_allclose(whole[:, :3], cut)
    assert np.all(whole[:, 0, 3] > whole[:, -1, 3])  # the filler has been seen before


@pytest.mark.slow
def test_a_policy_that_knows_the_question_sees_the_same_in_a_model(world):
    collection, known, idf, reader, _ = world
    reader = viewing(reader, ("hand", "slot"), before=True)
    found = evidence.gather(reader, collection, known, idf)
    rows = policies.by_question(found, found)
    seen = reader.aware()
    said = [np.stack([d.best, d.total], axis=-1).reshape([-1, 2]) for d in found]
    seen.standardise(np.concatenate(said))
    data = spans.dataset(collection, known, 1, idf=idf)
    checked = 0
    for batch in data.map(functools.partial(evidence.with_arrival, before=True)):
        vectors = seen(by_question(batch)["items"]).numpy()
        here = [
            row for row in rows if row.name == collection.entries[int(batch["document"][0])].name
        ]
        for row in here:
            at = list(batch["question"][0].numpy()).index(row.questions[0])
            np.testing.assert_allclose(vectors[at], row.vectors, atol=1e-4)
            checked += 1
    assert checked == len(collection.questions)


def test_memories_to_learn_from_hold_the_answer(world):
    batch = world[-1][0]
    asked = batch["ask_at"].numpy() >= 0
    shared = {}
    for hard in (0.0, 1.0):
        pooled = reading.memories(batch, 3, hard, tf.constant([1, 2]))
        kept = pooled["kept"].numpy()
        holds = kept[..., None] == pooled["answers"][..., 0].numpy()[..., None, :]
        holds &= kept[..., None] >= 0
        assert np.all(holds.any(axis=(-2, -1))[asked])
        assert np.all((np.diff(kept, axis=-1) > 0)[asked])
        assert pooled["items"]["stem"].shape[1] == reading.POOL
        stems = tf.gather(pooled["items"]["stem"], np.maximum(kept, 0), batch_dims=1).numpy()
        words = batch["questions"]["stem"].numpy()[:, :, None, None, :]
        same = (stems[..., None] == words) & (words > 0)
        shared[hard] = same.any(axis=-2).sum(axis=-1).mean(axis=-1)[asked].mean()
    assert shared[1.0] > shared[0.0]


def test_a_pool_has_the_right_spans_of_a_longer_document(world, monkeypatch):
    batch = world[-1][0]
    monkeypatch.setattr(reading, "POOL", 4)
    pooled = reading.memories(batch, 3, 0.0, tf.constant([1, 2]))
    assert batch["items"]["stem"].shape[1] > pooled["items"]["stem"].shape[1] == 4
    for row, q in np.argwhere(batch["ask_at"].numpy() >= 0):
        said = {
            tuple(source["items"]["words"][row, slot, first : first + more + 1].numpy())
            for source in (batch, pooled)
            for slot, first, more in source["answers"][row, q].numpy()
            if slot >= 0
        }
        found = pooled["answers"][row, q].numpy()
        assert (found[:, 0] >= 0).any()
        assert len(said) == 1  # the answer of a question is the same words everywhere
