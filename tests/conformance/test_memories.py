"""Laws 1 to 5, 8 and 12, which every memory obeys whatever its policy."""

import numpy as np
import pytest
import tensorflow as tf

from lemn_tf import memory

ROWS, SLOTS, WIDTH, STEPS = 3, 3, 6, 14


@pytest.fixture
def stream(remember) -> np.ndarray:
    items = np.random.default_rng(7).normal(size=[STEPS, ROWS, WIDTH]).astype(np.float32)
    return np.floor(np.abs(items) * STEPS) if remember.policy.clairvoyant else items


@pytest.fixture
def lived(remember, stream):
    """A life, step by step: (state before, decision, state after), with pins, expiry, forgetting.

    Item 1 of row 0 and items 0 and 2 of row 1 are pinned; items 4 to 6 live for two steps; item 1
    of row 2 is forgotten when 9 were seen.
    """
    if remember not in _LIVES:
        _LIVES[remember] = list(live(remember, stream))
    return _LIVES[remember]


_LIVES = {}


def live(remember, stream):
    state = remember.initial_state(ROWS, tf.TensorSpec([WIDTH]))
    for t in range(STEPS):
        pinned = tf.constant([t == 1, t in (0, 2), False])
        ttl = tf.constant(2 if t in (4, 5, 6) else 1000)
        before = state
        state, decision = remember.observe(state, stream[t], pinned, ttl)
        yield before, decision, state
        if t == 9:
            state = memory.forget(state, tf.constant([-7, -7, int(np.max(state.ids[2]))]))


def test_law_1_never_more_than_n(lived):
    for _, _, after in lived:
        assert after.ids.shape == (ROWS, SLOTS)
        memory.check_state(after)


def test_law_2_ids_are_unique_and_the_clock_counts(lived, stream):
    for t, (_, decision, after) in enumerate(lived):
        assert np.all(after.clock == t + 1)
        assert np.all(decision.ids[:, -1] == t)
        for row in range(ROWS):
            ids = [i for i in after.ids[row].numpy() if i >= 0]
            assert ids == sorted(set(ids))
            for slot, i in enumerate(after.ids[row].numpy()):
                expected = stream[i, row] if i >= 0 else 0
                np.testing.assert_array_equal(after.entries[row, slot], expected)


def test_law_3_unused_slots_fill_first(lived):
    for before, decision, after in lived:
        room = np.any(before.ids == memory.EMPTY, axis=1)
        assert np.all(decision.evicted.numpy()[room] == memory.EMPTY)
        assert np.all((decision.evicted.numpy() == memory.EMPTY) == room)
        assert not np.any(decision.free.numpy()[room])
        grown = np.sum(after.filled, axis=1) - np.sum(before.filled, axis=1)
        np.testing.assert_array_equal(grown, room)


def test_law_4_pinned_entries_stay(lived):
    for before, decision, after in lived:
        for row in range(ROWS):
            pinned = before.ids[row].numpy()[before.pinned[row].numpy()]
            assert set(pinned) <= set(after.ids[row].numpy())
            assert decision.evicted[row] not in pinned
    final = lived[-1][2]
    assert 1 in final.ids[0].numpy()
    assert {0, 2} <= set(final.ids[1].numpy())


def test_expired_entries_leave_first(lived):
    for before, decision, _ in lived:
        for row in range(ROWS):
            if memory.EMPTY in before.ids[row].numpy():
                continue
            gone = (before.expiry[row] <= before.clock[row] + 1) & ~before.pinned[row]
            expired = set(before.ids[row].numpy()[gone.numpy()])
            assert not expired or int(decision.evicted[row]) in expired


def seed_of(remember):
    return tf.constant([8, 9]) if getattr(remember.policy, "shuffle", False) else None


def test_law_5_step_by_step_is_the_whole_stream(remember, stream):
    items = tf.transpose(stream, [1, 0, 2])
    held = remember.initial_state(ROWS, tf.TensorSpec([WIDTH]))
    seed = seed_of(remember)
    state, decisions = remember(items, seed=seed)
    for t in range(STEPS):
        held, decision = remember.observe(held, items[:, t], seed=seed)
        for name in decision._fields:
            one, all_at_once = getattr(decision, name), getattr(decisions, name)[:, t]
            np.testing.assert_allclose(one, all_at_once, atol=1e-5, err_msg=name)
    same(held, state)


def test_law_5_a_stream_can_be_cut_anywhere(remember, stream):
    items = tf.transpose(stream, [1, 0, 2])
    seed = seed_of(remember)
    state, _ = remember(items[:, :9], seed=seed)
    half, _ = remember(items[:, :5], seed=seed)
    half = memory.from_flat(memory.to_flat(half))
    again, _ = remember(items[:, 5:9], initial_state=half, seed=seed)
    same(again, state)


def same(ours, theirs):
    tf.nest.assert_same_structure(ours, theirs)
    for one, other in zip(tf.nest.flatten(ours), tf.nest.flatten(theirs), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_law_8_flat_and_back(lived, tmp_path):
    state = lived[-1][2]
    flat = memory.to_flat(state)
    assert all(isinstance(name, str) for name in flat)
    memory.save(state, tmp_path / "memory.lemn")
    for twin in (memory.from_flat(flat), memory.load(tmp_path / "memory.lemn", like=state)):
        tf.nest.assert_same_structure(twin, state)
        for one, other in zip(tf.nest.flatten(twin), tf.nest.flatten(state), strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


BAD = (np.nan, np.inf, -np.inf, 3e38)
"""Each in rows of its own: a bad item spoils nothing in its row, let alone in others."""


def test_law_12_one_bad_item_spoils_nothing(remember, stream):
    """It is seen as zeros would be, kept as it was given, and leaves no trace in the carry."""
    items = np.tile(np.transpose(stream, [1, 0, 2]), [len(BAD), 1, 1])
    spoilt = items.copy()
    for number, bad in enumerate(BAD):
        for given, value in ((items, 0), (spoilt, bad)):
            first, second = given[ROWS * number : ROWS * number + 2]
            first[5, :], second[2, 3] = value, value
    seed = seed_of(remember)
    expected, wanted = remember(tf.constant(items), seed=seed)
    state, decisions = remember(tf.constant(spoilt), seed=seed)
    for name in decisions._fields:
        one, other = getattr(decisions, name), getattr(wanted, name)
        np.testing.assert_array_equal(one, other, err_msg=name)
    for one, other in zip(
        tf.nest.flatten(state.carry), tf.nest.flatten(expected.carry), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    for row, ids in enumerate(state.ids.numpy()):
        np.testing.assert_array_equal(state.entries[row], spoilt[row, ids])
    logits = remember.replay(remember.encode(tf.constant(spoilt)), decisions, seed=seed).logits
    assert np.all(np.isfinite(logits))


def test_law_12_step_by_step(remember, stream):
    held = remember.initial_state(ROWS, tf.TensorSpec([WIDTH]))
    healthy, seed = held, seed_of(remember)
    for t in range(9):
        item, clean = stream[t].copy(), stream[t].copy()
        if t in (3, 4):
            item[1], clean[1] = np.nan, 0
        held, decision = remember.observe(held, item, seed=seed)
        healthy, wanted = remember.observe(healthy, clean, seed=seed)
        np.testing.assert_array_equal(decision.slot, wanted.slot)
        np.testing.assert_array_equal(decision.keep, wanted.keep)
