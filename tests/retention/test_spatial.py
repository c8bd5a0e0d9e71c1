"""S-LEMN and ST-LEMN: a fair sample of the stream to begin with."""

import numpy as np
import pytest
import tensorflow as tf

from lemn_tf import EpisodicMemory, retention

ROWS, STEPS, SLOTS = 2000, 30, 4


def undecided(policy: str, **options) -> EpisodicMemory:
    """A memory whose policy finds all entries alike."""
    remember = EpisodicMemory(SLOTS, retention.get(policy, **options))
    remember.build((None, None, 2))
    for weight in remember.policy.importance.weights:
        weight.assign(tf.zeros_like(weight))
    return remember


@pytest.mark.parametrize("policy", ["s-lemn", "st-lemn"])
def test_a_reservoir_begins_with_a_fair_sample_of_the_stream(policy):
    remember = undecided(policy, reservoir=True)
    state, decisions = remember(tf.zeros([ROWS, STEPS, 2]), seed=tf.constant([1, 2]))
    t = np.arange(SLOTS + 1, STEPS + 1)
    stored = decisions.keep[0, SLOTS:, -1]  # the chance that the newcomer stays
    np.testing.assert_allclose(stored, SLOTS / t, rtol=1e-5)
    kept = np.bincount(state.ids.numpy().reshape(-1), minlength=STEPS) / ROWS
    np.testing.assert_allclose(kept, SLOTS / STEPS, atol=4 * (0.12 / ROWS) ** 0.5)


def test_without_one_old_entries_are_gone():
    state, _ = undecided("st-lemn")(tf.zeros([200, STEPS, 2]), seed=tf.constant([1, 2]))
    assert np.mean(state.ids.numpy().min(axis=1) < STEPS // 5) < 0.05
