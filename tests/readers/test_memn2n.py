"""MemN2N against a transcription of its paper in NumPy, one sentence and one slot at a time."""

import numpy as np
import pytest
import tensorflow as tf

from lemn_tf import memory
from lemn_tf.readers import MemN2N
from lemn_tf.readers.base import Reader
from lemn_tf.readers.memn2n import position_encoding

V, J, D, K, SLOTS = 9, 4, 6, 3, 5


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "rectified"])
def reader(request):
    layer = MemN2N(V, J, units=D, hops=K, max_slots=7, rectified=request.param)
    generator = np.random.default_rng(0)
    for weight in layer.weights:
        weight.assign(generator.normal(scale=0.5, size=weight.shape))
    return layer


@pytest.fixture(scope="module")
def case():
    """Two rows of slots, some unused; sentences padded with 0."""
    generator = np.random.default_rng(1)
    entries = generator.integers(1, V, [2, SLOTS, J]).astype(np.int32)
    entries[0, 2, 2:] = 0
    entries[1, 3, 1:] = 0
    question = np.array([[3, 5, 0], [8, 1, 2]], np.int32)
    ids = np.array([[0, 4, 7, 8, 11], [-1, 2, 3, -1, 9]])
    return question, entries, ids


def softmax(x):
    e = np.exp(x - np.max(x))
    return e / e.sum()


def transcription(reader, question, entries, ids, linear=False):
    """One question and its slots, as in Sukhbaatar et al. (2015), sections 2 and 4.1."""
    words, times, bias = (
        np.array(w, np.float64) for w in (reader.words, reader.times, reader.bias)
    )
    # Adjacent tying: K + 1 matrices; A_k = tables[k], C_k = tables[k + 1], B = A_1, W = C_K^T.
    tables = [words[:, k * D : (k + 1) * D] for k in range(K + 1)]
    clocks = [times[:, k * D : (k + 1) * D] for k in range(K + 1)]

    def sentence(tokens, table):
        total = np.zeros(D)
        for j, word in enumerate(tokens, start=1):
            if word == 0:
                continue
            for k in range(1, D + 1):
                # (1 - j/J) - (k/d)(1 - 2j/J) up to scale, centred so that its mean is 1
                weight = 1 + 4 * (k - (D + 1) / 2) * (j - (J + 1) / 2) / (D * J)
                total[k - 1] += weight * table[word, k - 1]
        return total

    newest_first = sorted((i for i in range(len(ids)) if ids[i] >= 0), key=lambda i: -ids[i])
    u, attention = sentence(question, tables[0]), np.zeros(len(ids))
    for k in range(K):
        m = [sentence(entries[i], tables[k]) + clocks[k][r] for r, i in enumerate(newest_first)]
        c = [
            sentence(entries[i], tables[k + 1]) + clocks[k + 1][r]
            for r, i in enumerate(newest_first)
        ]
        scores = np.array([u @ one for one in m])
        p = scores if linear else softmax(scores)
        attention[newest_first] += softmax(scores) / K
        u = u + sum(weight * one for weight, one in zip(p, c, strict=True))
        if reader.rectified:  # section 5: ReLU on half of the units in each layer
            u = np.where(np.arange(D) < D // 2, u, np.maximum(u, 0))
    return tables[K] @ u + bias, attention


def read(reader, question, entries, ids, **options):
    query, codes = reader.ask(tf.constant(question)), reader.encode(tf.constant(entries))
    return reader.read(query, codes, tf.constant(ids, tf.int64), **options)


@pytest.mark.parametrize("linear", [False, True])
def test_against_the_transcription(reader, case, linear):
    answer = read(reader, *case, linear=linear)
    for row in range(2):
        logits, attention = transcription(reader, *(part[row] for part in case), linear=linear)
        np.testing.assert_allclose(answer.logits[row], logits, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(answer.attention[row], attention, rtol=1e-4, atol=1e-5)


def test_unused_slots_are_ignored(reader, case):
    question, entries, ids = case
    plain = read(reader, *case)
    changed = np.where((ids < 0)[..., None], 4, entries).astype(np.int32)
    np.testing.assert_allclose(read(reader, question, changed, ids).logits, plain.logits, atol=1e-5)
    assert np.all(np.asarray(plain.attention)[ids < 0] == 0)
    np.testing.assert_allclose(np.sum(plain.attention, axis=1), 1.0, rtol=1e-5)
    used = ids[1] >= 0
    alone = read(reader, question[1:], entries[1:, used], ids[1:, used])
    np.testing.assert_allclose(alone.logits[0], plain.logits[1], atol=1e-5)


def test_the_order_of_the_slots_does_not_matter(reader, case):
    question, entries, ids = case
    order = [3, 0, 4, 2, 1]
    plain, other = read(reader, *case), read(reader, question, entries[:, order], ids[:, order])
    np.testing.assert_allclose(other.logits, plain.logits, atol=1e-5)
    np.testing.assert_allclose(other.attention, np.asarray(plain.attention)[:, order], atol=1e-5)


def test_the_order_in_time_matters(reader, case):
    question, entries, ids = case
    other = read(reader, question, entries, ids[:, [1, 0, 2, 3, 4]])
    assert np.abs(other.logits[0] - read(reader, *case).logits[0]).max() > 1e-3


def test_empty_memory_answers_from_the_question_alone(reader, case):
    question, entries, ids = case
    answer = read(reader, question, entries, np.full_like(ids, -1))
    query = np.array(reader.ask(tf.constant(question)))
    if reader.rectified:
        query[:, D // 2 :] = np.maximum(query[:, D // 2 :], 0)
    expected = query @ np.array(reader.words)[:, -D:].T + np.array(reader.bias)
    np.testing.assert_allclose(answer.logits, expected, atol=1e-4)
    np.testing.assert_array_equal(answer.attention, 0.0)


def test_whole_stories_share_the_oldest_rank(reader):
    """More entries than `max_slots`: the oldest ones are encoded alike, and nothing breaks."""
    generator = np.random.default_rng(2)
    entries = generator.integers(1, V, [1, 12, J]).astype(np.int32)
    question = np.array([[1, 2]], np.int32)
    ids = np.arange(12)[None]
    plain = read(reader, question, entries, ids)
    assert np.all(np.isfinite(plain.logits))
    swapped = entries[:, [1, 0, *range(2, 12)]]  # ranks 11 and 10, both older than 6
    np.testing.assert_allclose(
        read(reader, question, swapped, ids).logits, plain.logits, rtol=1e-4, atol=1e-4
    )


def test_flipped_memories_are_read_as_if_each_was_built(reader):
    """Sharing codes changes nothing: unused slots, one item, a full memory, all of the stream."""
    generator = np.random.default_rng(5)
    query = tf.constant(generator.normal(size=[2, 4, 6]), tf.float32)
    codes = tf.constant(generator.normal(size=[2, 9, 24]), tf.float32)
    memories = ([-1, -1, -1], [-1, 4, -1], [8, 0, 3], [5, 6, 7])
    kept = tf.constant([memories, memories[::-1]], tf.int64)
    targets = tf.constant(generator.integers(0, reader.vocabulary_size, [2, 4]), tf.int32)
    expected = Reader.flipped(reader, query, codes, kept, targets)
    assert expected.shape == (2, 4, 9)
    np.testing.assert_allclose(reader.flipped(query, codes, kept, targets), expected, atol=1e-5)
    assert np.ptp(expected.numpy(), axis=2).max() > 0.1


def test_call_reads_a_memory(reader, case):
    question, entries, ids = case
    state = memory.empty(2, SLOTS, tf.TensorSpec([J], tf.int32))
    state = state._replace(entries=tf.constant(entries), ids=tf.constant(ids, tf.int64))
    answer = reader(tf.constant(question), state)
    np.testing.assert_allclose(answer.logits, read(reader, *case).logits, atol=1e-5)


def test_padding_words_change_nothing(reader, case):
    question, entries, ids = case
    wider = np.pad(entries, [(0, 0), (0, 0), (0, 3)])
    np.testing.assert_allclose(
        read(reader, np.pad(question, [(0, 0), (0, 2)]), wider, ids).logits,
        read(reader, *case).logits,
        atol=1e-5,
    )


def test_position_encoding():
    table = position_encoding(J, D, J)
    assert table.shape == (J, D)
    np.testing.assert_allclose(table.mean(axis=0), 1.0, atol=1e-6)  # centred on 1 both ways
    np.testing.assert_allclose(table[::-1, ::-1], table, atol=1e-6)


def test_config(reader, case):
    twin = MemN2N.from_config(reader.get_config())
    twin.set_weights(reader.get_weights())
    np.testing.assert_allclose(read(twin, *case).logits, read(reader, *case).logits, atol=1e-6)
