"""The rules that no policy may break, the policies that learn nothing, and finding one by name."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf import EpisodicMemory, memory, retention
from lemn_tf.memory import NEVER, MemoryState
from lemn_tf.retention import decide
from lemn_tf.retention.chance import gumbel
from lemn_tf.retention.decision import eligible
from lemn_tf.retention.rules import EXACT, in_order


def cells_of(ids, pinned=(), expired=()) -> MemoryState:
    """One row of candidates; `pinned` and `expired` are places."""
    places = range(len(ids))
    clock = max(ids) + 1
    return MemoryState(
        entries=tf.zeros([1, len(ids), 1]),
        ids=tf.constant([ids], tf.int64),
        pinned=tf.constant([[i in pinned for i in places]]),
        expiry=tf.constant([[clock if i in expired else NEVER for i in places]], tf.int64),
        carry=(),
        clock=tf.constant([clock], tf.int64),
    )


def may_leave(cells):
    allowed, free = eligible(cells)
    return [i for i, ok in enumerate(allowed[0].numpy()) if ok], bool(free[0])


@pytest.mark.parametrize(
    ("ids", "pinned", "expired", "expected"),
    [
        ([0, 1, 2, 3], (), (), [0, 1, 2, 3]),
        ([-1, -1, 0, 1], (), (), [0]),
        ([0, -1, 2, 3], (0,), (2,), [1]),
        ([0, 1, 2, 3], (1,), (), [0, 2, 3]),
        ([0, 1, 2, 3], (0, 1, 2), (), [3]),
        ([0, 1, 2, 3], (0, 1, 2, 3), (), [3]),  # a pinned newcomer in a memory full of pins
        ([0, 1, 2, 3], (), (1, 2), [1, 2]),
        ([0, 1, 2, 3], (1,), (1,), [0, 2, 3]),  # pinned counts for more than expired
        ([0, 1, 2, 3], (), (3,), [3]),
        ([0, 1], (), (), [0, 1]),
    ],
)
def test_who_may_leave(ids, pinned, expired, expected):
    found, free = may_leave(cells_of(ids, pinned, expired))
    assert found == expected
    assert free == (len(expected) > 1)


@pytest.mark.parametrize("noise", [None, np.inf, np.nan, 1e30])
@pytest.mark.parametrize("wild", [np.nan, np.inf, -np.inf, 1e30, -1e30])
def test_no_opinion_breaks_the_rules(wild, noise):
    cells = cells_of([0, 1, 2, 3], pinned=(0, 2))
    for places in itertools.product([0.0, wild], repeat=4):
        drawn = None if noise is None else tf.constant([[noise] * 4])
        decision = decide(tf.constant([places]), cells, drawn)
        assert int(decision.slot[0]) in (1, 3)


def test_a_decision_in_numbers():
    logits = tf.constant([[1.0, 2.0, 0.0, 9.0]])
    decision = decide(logits, cells_of([4, 5, 6, 7], pinned=(3,)))
    pi = np.exp([1.0, 2.0, 0.0]) / np.sum(np.exp([1.0, 2.0, 0.0]))
    assert decision.slot.numpy() == [1]
    assert decision.evicted.numpy() == [5]
    np.testing.assert_allclose(decision.keep[0], [*(1 - pi), 1.0], atol=1e-6)
    np.testing.assert_allclose(decision.log_prob, [np.log(pi[1])], atol=1e-6)
    np.testing.assert_allclose(decision.entropy, [-np.sum(pi * np.log(pi))], atol=1e-6)
    np.testing.assert_allclose(decision.margin, [pi[1] - pi[0]], atol=1e-6)


def test_samples_follow_the_softmax():
    rows = 4000
    cells = tf.nest.map_structure(lambda x: tf.repeat(x, rows, 0), cells_of([0, 1, 2, 3], (3,)))
    logits = tf.repeat(tf.constant([[0.0, 1.0, 2.0, 5.0]]), rows, 0)
    slot = decide(logits, cells, gumbel(cells, tf.constant([1, 2]))).slot.numpy()
    expected = np.exp([0.0, 1.0, 2.0]) / np.sum(np.exp([0.0, 1.0, 2.0]))
    np.testing.assert_allclose(np.bincount(slot, minlength=4) / rows, [*expected, 0], atol=0.03)
    other = decide(logits, cells, gumbel(cells, tf.constant([1, 3]))).slot.numpy()
    agreement = np.mean(slot == other)
    np.testing.assert_allclose(agreement, np.sum(expected**2), atol=0.03)


def kept(policy, items, slots=3, **options):
    state, _ = EpisodicMemory(slots, policy)(tf.constant(items, tf.float32), **options)
    return state.ids.numpy().tolist()


def test_fifo_and_lifo():
    items = np.zeros([2, 9, 1])
    assert kept("fifo", items) == [[6, 7, 8]] * 2
    assert kept("lifo", items) == [[0, 1, 2]] * 2


def test_uniform_is_uniform():
    """Each of T items is kept with probability (N / (N + 1)) ** steps since the memory was full."""
    rows, steps, slots = 3000, 6, 3
    ids = np.array(kept("uniform", np.zeros([rows, steps, 1]), slots, seed=[3, 4]))
    share = np.array([np.mean(np.any(ids == t, axis=1)) for t in range(steps)])
    survive = slots / (slots + 1)
    expected = [survive ** (steps - max(t, slots)) for t in range(steps)]
    np.testing.assert_allclose(share, expected, atol=0.03)
    assert kept("uniform", np.zeros([2, 30, 1])) == 2 * kept("uniform", np.zeros([1, 30, 1]))


def test_lru_listens_to_attention():
    layer = EpisodicMemory(3, "lru")
    state = layer.initial_state(1, tf.TensorSpec([1]))
    for _ in range(3):
        state, _ = layer.observe(state, tf.zeros([1, 1]))
    state = layer.attend(state, tf.constant([[0.7, 0.2, 0.1]]))
    for expected in ([0, 2, 3], [0, 3, 4], [3, 4, 5]):
        state, _ = layer.observe(state, tf.zeros([1, 1]))
        assert state.ids.numpy().tolist() == [expected]
    with pytest.raises(ValueError, match="attention must be"):
        layer.attend(state, tf.zeros([1, 4]))


@pytest.mark.parametrize("clock", [2**24, 2**40, 2**61])
def test_clocks_count_exactly_at_any_age(clock):
    """2 ** 24 + 1 is no float32: neither clocks nor ages may be taken for floats."""
    item = tf.zeros([1, 1])
    for name, expected in (("fifo", [3, 4, 5]), ("lru", [0, 4, 5]), ("lifo", [0, 1, 2])):
        layer = EpisodicMemory(3, name)
        state = layer.initial_state(1, tf.TensorSpec([1]))
        state = state._replace(clock=state.clock + clock)
        for t in range(6):
            state, _ = layer.observe(state, item)
            if t == 2:
                state = layer.attend(state, tf.constant([[0.9, 0.1, 0.0]]))
            if t == 3:
                state = layer.attend(state, tf.constant([[0.9, 0.1, 0.0]]))
        assert (state.ids.numpy() - clock).tolist() == [expected]


def aged(name, now, arrivals, used=None, pinned=()):
    """Which of three entries and a newcomer leaves at the clock `now`."""
    layer = EpisodicMemory(3, name)
    state = layer.initial_state(1, tf.TensorSpec([1]))
    state = state._replace(ids=tf.constant([arrivals], tf.int64), clock=tf.constant([now]))
    state = state._replace(pinned=tf.constant([[i in pinned for i in range(3)]]))
    if used is not None:
        state = state._replace(carry=tf.constant([used], tf.int64))
    return int(layer.observe(state, tf.zeros([1, 1]), pinned=True)[1].slot[0])


@pytest.mark.parametrize("now", [2**40, 2**62])
def test_old_entries_are_told_apart_however_old(now):
    assert aged("fifo", now, [5, 6, 7], pinned=[0]) == 1
    assert aged("lifo", now, [5, 6, 7]) == 2  # the newcomer is pinned
    assert aged("lifo", now, [5, 6, 7], pinned=[2]) == 1
    base = now - 2**30
    for used in itertools.permutations([base, base + 1, base + 2]):
        assert aged("lru", now, [5, 6, 7], list(used)) == used.index(base)


@pytest.mark.parametrize("dtype", [tf.int64, tf.float64])
def test_the_oracle_reads_clocks_exactly(dtype):
    start = 2**40
    layer = EpisodicMemory(2, "oracle")
    state = layer.initial_state(1, tf.TensorSpec([2], dtype))
    state = state._replace(clock=state.clock + start)
    needed = [[start + 11, -1], [start + 10, -1], [start + 4, start + 12], [-1, -1]]
    gone = []
    for item in needed:
        state, decision = layer.observe(state, tf.constant([item], dtype))
        gone.append(int(decision.evicted[0]))
    assert gone == [-1, -1, start, start + 3]


def test_large_numbers_keep_their_order():
    numbers = [3, EXACT - 1, EXACT, EXACT + 1, 2**40, 2**40 + 1, 2**62, 2**62 + 1]
    order = np.random.default_rng(0).permutation(len(numbers))
    shuffled = tf.constant([[numbers[i] for i in order]])
    ranked = in_order(shuffled)[0].numpy()
    assert [numbers[i] for i in order[np.argsort(ranked)]] == numbers
    assert len(set(ranked)) == len(numbers)
    few = tf.constant([[5, 0, EXACT - 1]], tf.int64)
    np.testing.assert_array_equal(in_order(few), tf.cast(few, tf.float32))
    both = tf.concat([few, shuffled[:, :3]], axis=0)  # a row alone is that row in a batch
    np.testing.assert_array_equal(in_order(both)[0], few[0])


def test_oracle_is_the_best_there_is():
    """Against every sequence of evictions, on streams small enough to try them all."""
    generator = np.random.default_rng(0)
    steps, slots = 6, 2
    for _ in range(10):
        # needed[t, 0]: the clock at which item t will be asked for, if ever.
        needed = np.where(
            generator.random([steps, 1]) < 0.8, generator.integers(1, steps + 1, [steps, 1]), -1
        )
        needed = np.where(needed > np.arange(steps)[:, None], needed, -1)

        def hits(choices, needed=needed):
            held, found = [None] * slots, 0
            for t, slot in enumerate(choices):
                held = [*held, t]
                del held[slot]
                found += sum(int(np.sum(needed[i] == t + 1)) for i in held if i is not None)
            return found

        later = itertools.product(range(slots + 1), repeat=steps - slots)
        best = max(hits([0] * slots + list(choices)) for choices in later)
        _, decisions = EpisodicMemory(slots, "oracle")(tf.constant(needed[None], tf.float32))
        assert hits(decisions.slot[0].numpy()) == best


def test_by_name_or_object():
    policy = retention.get("s-lemn", hidden=3)
    assert retention.get(policy) is policy
    assert [retention.get(name).name for name in retention.NAMES] == list(retention.NAMES)
    for wrong in ("best", 3, None, ["fifo"], retention.FIFO):
        with pytest.raises(ValueError, match=r"unknown policy .* known are fifo, .*, st-lemn"):
            retention.get(wrong)
    with pytest.raises(ValueError, match=r"policy 'fifo' does not take these options: .*size"):
        retention.get("fifo", size=3)
    with pytest.raises(ValueError, match=r"options \['hidden'\] go with a policy's name"):
        retention.get(policy, hidden=3)


def test_a_policy_of_ones_own():
    @keras.saving.register_keras_serializable("test")
    class Shortest(retention.RetentionPolicy):
        def score(self, seen, cells, carry):
            return self.opinion(-tf.norm(cells.vectors, axis=-1))

    state, _ = EpisodicMemory(2, Shortest())(tf.constant([[[3.0], [1.0], [2.0], [0.5]]]))
    assert state.ids.numpy().tolist() == [[0, 2]]
    with pytest.raises(NotImplementedError, match="RetentionPolicy does not override score"):
        EpisodicMemory(2, retention.RetentionPolicy())(tf.zeros([1, 3, 1]))


def test_forgotten_slots_fill_first():
    layer = EpisodicMemory(3, "lifo")
    state, _ = layer(tf.zeros([1, 5, 1]))
    state = memory.forget(state, 1)
    state, decision = layer.observe(state, tf.zeros([1, 1]))
    assert state.ids.numpy().tolist() == [[0, 2, 5]]
    assert decision.evicted.numpy().tolist() == [memory.EMPTY]
