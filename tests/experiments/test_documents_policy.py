"""Policies over evidence: what they learn, and what memories are worth."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf.experiments import documents_policy as policies
from lemn_tf.experiments.documents_evidence import Evidence
from lemn_tf.readers.spans import flipped


def documents(count: int, seed: int = 0) -> list[Evidence]:
    """A slot answers questions if its first feature is large."""
    random = np.random.default_rng(seed)
    made = []
    for number in range(count):
        slots, questions = (int(random.integers(*ends)) for ends in ((12, 20), (2, 5)))
        vectors = random.normal(size=(slots, 4)).astype(np.float32)
        holds = vectors[None, :, 0] + 0.3 * random.normal(size=(questions, slots)) > 1.2
        total = random.normal(size=(questions, slots)).astype(np.float32)
        right = np.where(holds, total - 0.2, -1e9).astype(np.float32)
        spans = np.zeros([questions, slots, 2], np.int32)
        lexical = np.zeros([slots, 6], np.float32)
        asked = np.arange(questions)
        made.append(
            Evidence(f"{number}", vectors, lexical, right, total, total, holds, total, spans, asked)
        )
    return made


def in_memory(kept: list[np.ndarray], read: list[Evidence]) -> float:
    found = [d.holds[:, ids[ids >= 0]].any(axis=1) for ids, d in zip(kept, read, strict=True)]
    return float(np.mean(np.concatenate(found)))


@pytest.mark.parametrize("policy", ["s-lemn", "st-lemn"])
def test_a_policy_learns_what_answers(policy):
    keras.utils.set_random_seed(0)
    read, unseen = documents(32), documents(24, seed=1)
    memory = policies.make(policy, 4, 4, units=8, hidden=8, skip=True)
    fifo = in_memory([np.arange(d.slots)[-4:] for d in unseen], unseen)
    policies.train(memory, read, epochs=6, batch_size=8, rate=2e-2)
    after = in_memory(policies.kept_by(memory, unseen), unseen)
    assert after > fifo + 0.15
    assert in_memory(policies.kept_by(memory, unseen, 0.5), unseen) >= after  # more slots


@pytest.mark.parametrize("policy", ["im-lemn", "s-lemn"])
def test_it_can_begin_with_a_regression(policy):
    read, unseen = documents(32), documents(24, seed=1)
    memory = policies.make(policy, 4, 4, units=8, hidden=8, skip=True)
    policies.begin(memory.policy, read, ridge=1.0)
    weights = memory.policy.alone.kernel.numpy()[:, 0]
    assert np.argmax(np.abs(weights)) == 0
    assert weights[0] < 0  # a large first feature speaks against eviction
    kept = policies.kept_by(memory, unseen)
    for ids, document in zip(kept, unseen, strict=True):
        best = np.argsort(document.vectors @ weights, kind="stable")[:4]
        assert sorted(ids) == sorted(best)


def test_a_weight_of_three_is_a_row_three_times():
    random = np.random.default_rng(0)
    x, y = random.normal(size=(30, 4)), random.normal(size=30)
    often = np.r_[np.arange(30), np.arange(10), np.arange(10)]
    weight = np.where(np.arange(30) < 10, 3.0, 1.0)
    # The mean weight is 5/3, so that the penalty weighs as much as with 30 equal rows.
    expected = policies.ridge_weights(x[often], y[often], ridge=2.0 * 5 / 3)
    np.testing.assert_allclose(policies.ridge_weights(x, y, 2.0, weight), expected)


def test_documents_with_more_weight_say_what_is_learned():
    """In half of the documents a large first feature speaks for a slot, in the others against."""
    ours, others = documents(16), documents(16, seed=1)
    others = [dataclasses.replace(d, vectors=-d.vectors) for d in others]
    for favoured, weights in ((ours, [9.0] * 16 + [1.0] * 16), (others, [1.0] * 16 + [9.0] * 16)):
        memory = policies.make("s-lemn", 4, 4, units=8, hidden=8, skip=True)
        policies.begin(memory.policy, ours + others, ridge=1.0, weights=np.array(weights))
        kept = policies.kept_by(memory, ours + others)
        shares = in_memory(kept[:16], ours), in_memory(kept[16:], others)
        assert (shares[0] > shares[1] + 0.2) == (favoured is ours)
        assert (shares[1] > shares[0] + 0.2) == (favoured is others)


def test_worth_counts_the_answer_and_its_probability():
    read = documents(1)[0]
    kept = np.array([0, 3, 5])
    right, total, holds = (tf.constant(x[None]) for x in (read.right, read.total, read.holds))
    ids = tf.constant(np.broadcast_to(kept, [1, len(read.questions), 3]), tf.int64)
    p, aim, credit = policies.worth(right, total, holds, ids)
    expected = np.exp(read.right[:, kept]).sum(axis=1) / np.exp(read.total[:, kept]).sum(axis=1)
    np.testing.assert_allclose(p[0], expected, atol=1e-5)
    np.testing.assert_array_equal(aim[0] > 0, read.holds[:, kept].any(axis=1))
    for j in range(read.slots):
        slots = sorted({*kept} ^ {j})
        found = read.holds[:, slots].any(axis=1)
        there = flipped(right, [total], ids)[0, :, j]
        np.testing.assert_allclose(credit[0, :, j], there + found, atol=1e-5)


def test_a_question_as_a_stream_of_its_own():
    read = documents(3)
    rows = policies.by_question(read, read)
    assert len(rows) == sum(len(document.questions) for document in read)
    assert rows[0].vectors.shape == (read[0].slots, 8)
    np.testing.assert_array_equal(rows[1].vectors[:, -1], read[0].shared[1])
    np.testing.assert_array_equal(rows[1].vectors[1:, -2], read[0].shared[1][:-1])
    np.testing.assert_array_equal(rows[1].holds, read[0].holds[1:2])


def test_windows_hold_what_is_asked():
    for cut in policies.windows(documents(8), 5, np.random.default_rng(0)):
        assert cut.slots <= 5
        assert cut.holds.any(axis=1).all()
