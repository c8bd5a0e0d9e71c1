"""Spans as answers: loss, right, probability and credit, held to loops over all spans."""

import numpy as np
import pytest
import tensorflow as tf

from lemn_tf.readers import spans

WORDS, LONGEST = 4, 2


@pytest.fixture
def reader():
    return spans.SpanReader(WORDS, LONGEST)


def an_answer(reader, ids, seed=0):
    random = np.random.default_rng(seed)
    shape = [*np.shape(ids), WORDS]
    live = tf.constant(np.broadcast_to(np.asarray(ids)[..., None] >= 0, shape))
    scores = spans.spans(
        tf.constant(random.normal(size=shape), tf.float32),
        tf.constant(random.normal(size=shape), tf.float32),
        live,
        LONGEST,
    )
    return reader.answer(spans.normalised(scores), tf.constant(ids, tf.int64)), scores


def by_hand(answer, targets):
    """The summed probability of the listed spans."""
    p = np.exp(answer.logits.numpy()).reshape([-1, WORDS, LONGEST])
    return sum(
        p[list(answer.ids.numpy()).index(slot), start, more]
        for slot, start, more in targets
        if slot >= 0 and slot in answer.ids.numpy() and more < LONGEST and start + more < WORDS
    )


def test_probability_loss_and_right(reader):
    answer, _ = an_answer(reader, [5, -1, 9])
    targets = np.array([[9, 1, 1], [5, 0, 0], [7, 0, 0], [5, 3, 1], [9, 0, 2], [-1, -1, -1]])
    expected = by_hand(answer, targets)
    assert 0 < expected < 1
    np.testing.assert_allclose(reader.probability(answer, targets), expected, rtol=1e-5)
    np.testing.assert_allclose(reader.loss(answer, targets), -np.log(expected), rtol=1e-5)
    best = reader.best(answer)
    told = [int(best.slot), int(best.start), int(best.end - best.start)]
    assert reader.right(answer, np.array([told]))
    assert not reader.right(answer, np.array([[7, *told[1:]]]))
    np.testing.assert_allclose(best.confidence, np.exp(answer.logits.numpy().max()), rtol=1e-6)
    assert int(best.slot) in (5, 9)
    assert int(best.end) < WORDS


def test_an_answer_that_has_left_memory_teaches_nothing(reader):
    answer, _ = an_answer(reader, [5, -1, 9])
    gone = np.array([[7, 0, 0], [-1, -1, -1]])
    assert float(reader.loss(answer, gone)) == float(reader.probability(answer, gone)) == 0.0
    empty, _ = an_answer(reader, [-1, -1])
    assert float(reader.probability(empty, gone)) == 0.0
    assert int(reader.best(empty).slot) == -1
    np.testing.assert_array_equal(empty.attention, [0.0, 0.0])


def test_attention_is_the_probability_of_each_slot(reader):
    answer, _ = an_answer(reader, [5, -1, 9])
    p = np.exp(answer.logits.numpy()).reshape([3, -1]).sum(axis=1)
    np.testing.assert_allclose(answer.attention, p, rtol=1e-5, atol=1e-7)
    assert answer.attention[1] == 0.0


def test_flipped_is_what_reading_again_would_give(reader):
    """Every memory with a slot left out or put back, normalised anew."""
    everything = np.arange(5)
    _, scores = an_answer(reader, everything[None, None])
    targets = np.array([[[[1, 0, 0], [4, 2, 1], [3, 1, 0]]]])
    right = spans.evidence(scores, tf.constant(everything[None, None]), targets)
    total = tf.reduce_logsumexp(scores, axis=[-2, -1])
    kept = tf.constant([[[1, 4, -1]]], tf.int64)
    found = spans.flipped(right, [total], kept)[0, 0].numpy()
    for j in range(5):
        slots = sorted({1, 4} ^ {j})
        part = tf.gather(scores[0, 0], slots)
        part -= tf.reduce_logsumexp(part)
        answer = reader.answer(part, tf.constant(slots, tf.int64))
        np.testing.assert_allclose(found[j], by_hand(answer, targets[0, 0]), rtol=1e-4)


def test_a_slot_that_nearly_has_it_all_can_be_left_out_exactly(reader):
    right = tf.constant([[[40.0, -3.0]]])
    total = tf.constant([[[40.5, -2.0]]])
    found = spans.flipped(right, [total], tf.constant([[[0, 1]]], tf.int64))
    np.testing.assert_allclose(found[0, 0, 0], np.exp(-1.0), rtol=1e-5)


def test_a_span_longer_than_a_slot_is_refused():
    with pytest.raises(ValueError, match="1 to 4 words"):
        spans.SpanReader(4, 5)
