"""Hindsight in a world: other memories are read as the reader reads them, and credited as said."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf.memory import EMPTY
from lemn_tf.navigation import hindsight
from lemn_tf.navigation.agent import MemoryAgent
from lemn_tf.navigation.observations import ObservationEncoder
from lemn_tf.navigation.worlds import Episodes

B, T, N, ACTIONS = 2, 6, 2, 3
IDS = np.array(
    [
        [[-1, -1], [0, -1], [0, 1], [0, 2], [0, 3], [3, 4]],
        [[-1, -1], [0, -1], [0, 1], [1, 2], [1, 3], [1, 4]],
    ]
)


@pytest.fixture(scope="module")
def agent():
    keras.utils.set_random_seed(2)
    eyes = ObservationEncoder({"kind": "vector", "shape": [3]}, units=8)
    made = MemoryAgent(eyes, ACTIONS, slots=N, units=8, width=4)
    for weight in made.when.weights:
        weight.assign(tf.random.normal(weight.shape))
    return made


@pytest.fixture(scope="module")
def lived():
    rng = np.random.default_rng(3)
    newcomers = np.broadcast_to(np.arange(T)[:, None], [B, T, 1])
    return Episodes(
        seen=tf.constant(rng.normal(size=[B, T, 3]), tf.float32),
        action=tf.constant(rng.integers(ACTIONS, size=[B, T]), tf.int32),
        reward=tf.zeros([B, T]),
        valid=tf.constant([[True] * T, [True] * (T - 1) + [False]]),
        ids=tf.constant(np.concatenate([IDS, newcomers], -1), tf.int64),
        slot=tf.zeros([B, T], tf.int32),
    )


def asked(agent, lived, b, t, ids):
    """What the reader makes of step t with these entries in memory."""
    views = agent.look(lived.seen)
    held = tf.constant([list(ids) or [EMPTY]], tf.int64)
    codes = tf.gather(views.codes[b], tf.maximum(held, 0))
    codes = agent.recalled(codes, held, tf.constant([t], tf.int64))
    return agent.reader.glance(views.query[b, t][None], codes, held)


def likely(agent, lived, b, t, ids):
    logits = agent.reader.actor(asked(agent, lived, b, t, ids).output)
    return float(tf.nn.softmax(logits)[0, lived.action[b, t]])


def test_scores_are_those_of_the_attention(agent, lived):
    scores = hindsight.reading(agent, agent.look(lived.seen)).scores
    for t in range(1, T):
        seen = asked(agent, lived, 0, t, range(t))
        np.testing.assert_allclose(tf.nn.softmax(scores[0, t, :t]), seen.attention[0], atol=1e-5)


def test_one_more_and_one_less_are_read_by_the_reader(agent, lived):
    seen = hindsight.reading(agent, agent.look(lived.seen))
    now, other = hindsight.flipped(agent, seen, lived.ids[..., :-1], lived.action)
    for b in range(B):
        for t in range(T):
            kept = {int(i) for i in IDS[b, t] if i >= 0}
            assert float(now[b, t]) == pytest.approx(likely(agent, lived, b, t, kept), abs=1e-5)
            for j in range(t):
                expected = likely(agent, lived, b, t, sorted(kept ^ {j}))
                assert float(other[b, t, j]) == pytest.approx(expected, abs=1e-5)


def test_the_value_of_keeping_against_loops(agent, lived):
    advantage = np.random.default_rng(4).normal(size=[B, T]).astype("float32")
    seen = hindsight.reading(agent, agent.look(lived.seen))
    value = hindsight.keeping_value(agent, seen, lived, tf.constant(advantage), 0.9)
    expected = np.zeros([B, T, N + 1])
    for b in range(B):
        for t in range(T):
            for place, j in enumerate(lived.ids[b, t].numpy()):
                for later in range(t + 1, T if j >= 0 else 0):
                    if not lived.valid[b, later]:
                        continue
                    kept = {int(i) for i in IDS[b, later] if i >= 0}
                    pi = likely(agent, lived, b, later, sorted(kept))
                    with_it, without = (
                        likely(agent, lived, b, later, sorted(ids))
                        for ids in (kept | {j}, kept - {j})
                    )
                    credit = advantage[b, later] * (with_it - without) / max(pi, hindsight.RAREST)
                    expected[b, t, place] += 0.9 ** (later - 1 - t) * credit
    np.testing.assert_allclose(value, expected, atol=1e-4)


def test_practice_sees_only_what_came_before_and_differs_by_seed(agent, lived):
    def output(observations, seed):
        seen = hindsight.reading(agent, agent.look(observations))
        return hindsight.practised(agent, seen, tf.constant(seed)).numpy()

    first = output(lived.seen, [1, 2])
    changed = tf.concat([lived.seen[:, :3], lived.seen[:, 3:] + 1.0], axis=1)
    np.testing.assert_allclose(first[:, :3], output(changed, [1, 2])[:, :3], atol=1e-6)
    assert np.any(np.abs(first[:, 3:] - output(changed, [1, 2])[:, 3:]) > 1e-3)
    assert np.any(np.abs(first - output(lived.seen, [1, 3])) > 1e-3)


def test_practice_memories_are_some_of_what_came_before(agent, lived):
    """Over many draws a step is read from none, some and all of what came before it."""
    seen = hindsight.reading(agent, agent.look(lived.seen))
    possible = {
        ids: asked(agent, lived, 0, 2, ids).output[0].numpy() for ids in ((), (0,), (1,), (0, 1))
    }
    met = set()
    for number in range(40):
        output = hindsight.practised(agent, seen, tf.constant([number, 0]))[0, 2].numpy()
        met |= {ids for ids, one in possible.items() if np.allclose(one, output, atol=1e-5)}
    assert met == set(possible)


def test_only_readers_without_a_past_can_be_asked_again(agent):
    eyes = ObservationEncoder({"kind": "discrete", "size": 2}, units=4)
    other = MemoryAgent(eyes, 2, reader="frmqn", units=4)
    assert hindsight.reads(agent)
    assert not hindsight.reads(other)
