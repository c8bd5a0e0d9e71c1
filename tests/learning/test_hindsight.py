"""Hindsight credit against loops that rebuild every memory as a plain list."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf.learning import hindsight
from lemn_tf.model import StreamReader
from lemn_tf.readers.base import Answer, Reader, flipped

B, Q, T, N = 2, 3, 6, 2


class Scorer:
    """p(y | memory): any function of the set of items, with interactions between them."""

    def __init__(self, seed=0):
        self.worth = np.random.default_rng(seed).normal(size=[B, Q, T])

    def of(self, b, q, held):
        """The probability for a plain list of ids."""
        values = [self.worth[b, q, i] for i in held]
        return 1.0 / (1.0 + np.exp(-sum(values) - (max(values) if values else 0.0)))

    def __call__(self, ids):
        shape = ids.shape[:3]
        flat = [
            self.of(b, q, [i for i in ids[b, q, k].numpy().tolist() if i >= 0])
            for b, q, k in np.ndindex(*shape)
        ]
        return tf.reshape(tf.constant(flat, tf.float32), shape)


@pytest.fixture
def case():
    """Rollouts of random evictions; one question before memory is full, one of padding."""
    generator = np.random.default_rng(4)
    ids = np.full([B, T, N + 1], -1)
    memories = np.full([B, T + 1, N], -1)
    for b in range(B):
        held = [-1] * N
        for t in range(T):
            held = [*held, t]
            ids[b, t] = held
            del held[generator.integers(0, N + 1) if -1 not in held else held.index(-1)]
            memories[b, t + 1] = held
    ask_at = np.array([[1, 4, 6], [3, 5, -1]])
    kept = np.stack([memories[b][np.maximum(ask_at[b], 0)] for b in range(B)])
    return {
        "ids": tf.constant(ids, tf.int64),
        "kept": tf.constant(kept, tf.int64),
        "ask_at": tf.constant(ask_at, tf.int32),
    }


def deltas(case, scorer):
    """Delta_q(j) by taking each item out of the list, or putting it back."""
    delta = np.zeros([B, Q, T])
    for b, q in np.ndindex(B, Q):
        held = [i for i in case["kept"][b, q].numpy().tolist() if i >= 0]
        for j in range(int(case["ask_at"][b, q])):
            actual = scorer.of(b, q, held)
            if j in held:
                delta[b, q, j] = actual - scorer.of(b, q, [i for i in held if i != j])
            else:
                delta[b, q, j] = scorer.of(b, q, sorted([*held, j])) - actual
    return delta


def values(case, delta, discount):
    """U_t(j) of each candidate by summing over the questions to come."""
    value = np.zeros([B, T, N + 1])
    for b, t, c in np.ndindex(B, T, N + 1):
        j = int(case["ids"][b, t, c])
        for q in range(Q):
            wait = int(case["ask_at"][b, q]) - 1 - t
            if j >= 0 and wait >= 0:
                value[b, t, c] += discount**wait * delta[b, q, j]
    return value


def test_counterfactual(case):
    scorer = Scorer()
    probability = scorer(case["kept"][:, :, None])[..., 0]
    changed = scorer(flipped(case["kept"], T))
    delta = hindsight.counterfactual(probability, changed, case["kept"], case["ask_at"])
    expected = deltas(case, scorer)
    np.testing.assert_allclose(delta, expected, atol=1e-6)
    assert np.abs(expected).max() > 0.05


def test_keeping_value(case):
    delta = deltas(case, Scorer())
    value = hindsight.keeping_value(
        tf.constant(delta, tf.float32), case["ask_at"], case["ids"], 0.9
    )
    np.testing.assert_allclose(value, values(case, delta, 0.9), atol=1e-6)


def test_loss():
    generator = np.random.default_rng(1)
    logits = generator.normal(size=[B, T, N + 1]).astype(np.float32)
    value = generator.normal(size=[B, T, N + 1]).astype(np.float32)
    free = generator.random([B, T]) < 0.6
    expected = np.zeros(B)
    for b, t in np.ndindex(B, T):
        if free[b, t]:
            pi = np.exp(logits[b, t]) / np.exp(logits[b, t]).sum()
            expected[b] += (pi * (value[b, t] - value[b, t].mean())).sum()
    given, worth = tf.constant(logits), tf.constant(value)
    with tf.GradientTape() as tape:
        tape.watch([given, worth])
        lost = hindsight.loss(given, worth, tf.constant(free))
    np.testing.assert_allclose(lost, expected, atol=1e-5)
    for_logits, for_value = tape.gradient(lost, [given, worth])
    assert for_value is None
    assert np.all((np.abs(for_logits).sum(-1) > 0) == free)


class Adder(Reader):
    """No MemN2N: how many of the kept numbers are odd. Has no order, no hops, no attention."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.built = True

    def encode(self, entries):
        return tf.one_hot(entries[..., 0], 6)

    def ask(self, question):
        return tf.cast(question, tf.float32)

    def read(self, query, codes, ids, **options):
        used = tf.cast(ids >= 0, tf.float32)
        odd = tf.reduce_sum(tf.reduce_sum(codes[..., 1::2], -1) * used, -1)
        logits = -2.0 * tf.square(tf.range(4.0) - odd[..., None])
        return Answer(logits, used)


def episodes(count=16, steps=6):
    """Numbers, odd ones rare; at the end: were there two odd ones?"""
    generator = np.random.default_rng(0)
    items = generator.integers(0, 3, [count, steps, 1]) * 2
    for row in items:
        row[generator.choice(4, 2, replace=False), 0] += 1
    ask_at = np.full([count, 1], steps)
    return {
        "items": tf.constant(items, tf.int32),
        "length": tf.fill([count], steps),
        "questions": tf.zeros([count, 1, 1], tf.int32),
        "ask_at": tf.constant(ask_at, tf.int32),
        "answers": tf.fill([count, 1], 2),
        "support": tf.fill([count, 1, 1], -1),
    }


def test_any_reader_will_do():
    """The probabilities that a rollout offers are the reader's own, and its credit teaches."""
    keras.utils.set_random_seed(0)
    model, batch, seen = StreamReader(Adder(), 2, "s-lemn"), episodes(), []

    class Spy(hindsight.Hindsight):
        def __call__(self, rollout):
            held = [rollout.kept[:, :, None], flipped(rollout.kept, 6)]
            given = [rollout.probability[..., None], rollout.flipped()]
            seen.extend(zip(held, given, strict=True))
            return super().__call__(rollout)

    model.compile("sgd", retention=Spy(), on_policy=0.0, on_subsets=0.0, jit_compile=False)
    model.losses_of(batch, tf.constant([1, 2]), tf.constant([0.1]))
    assert len(seen) == 2
    for held, given in seen:
        for b, q, k in np.ndindex(*given.shape):
            odd = sum(int(batch["items"][b, i, 0]) % 2 for i in held[b, q, k].numpy() if i >= 0)
            logits = -2.0 * (np.arange(4) - odd) ** 2
            expected = np.exp(logits[2]) / np.exp(logits).sum()
            np.testing.assert_allclose(given[b, q, k], expected, rtol=1e-5)

    optimizer = keras.optimizers.Adam(3e-2)
    model.compile(optimizer, retention=hindsight.Hindsight(), on_subsets=0.0, jit_compile=False)
    before = int(model.outcome(batch)["right"])
    model.fit(tf.data.Dataset.from_tensors(batch).repeat(), steps_per_epoch=25, verbose=0)
    assert before < 0.7 * 16
    assert int(model.outcome(batch)["right"]) > 0.9 * 16
