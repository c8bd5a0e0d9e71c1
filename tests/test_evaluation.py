"""Support recall and the oracle's vectors, against loops over plain lists."""

import numpy as np
import pytest

from lemn_tf import evaluation
from lemn_tf.learning.rollout import kept_at


def random_case(generator, streams=3, steps=12, questions=4, supports=2, slots=3):
    ask_at = np.sort(generator.integers(1, steps + 1, [streams, questions]))
    ask_at[0, -1] = -1  # padding
    support = generator.integers(
        -1, np.maximum(ask_at, 1)[..., None], [streams, questions, supports]
    )
    slot = generator.integers(0, slots + 1, [streams, steps])
    ids = np.full([streams, steps, slots + 1], -1)
    for s in range(streams):
        held = [-1] * slots
        for t in range(steps):
            held = [*held, t]
            ids[s, t] = held
            del held[slot[s, t]]
    return ask_at, support, ids, slot


def test_against_loops():
    generator = np.random.default_rng(0)
    for _ in range(20):
        ask_at, support, ids, slot = random_case(generator)
        kept = kept_at(ids, slot, ask_at).numpy()
        needed = evaluation.needed_at(support, ask_at, steps=12).numpy()
        supported = evaluation.supported(kept, support).numpy()
        for s in range(3):
            for q in range(4):
                clock = ask_at[s, q]
                if clock < 0:
                    assert (kept[s, q] == -1).all()
                    continue
                held = ids[s, clock - 1].tolist()
                del held[slot[s, clock - 1]]
                assert kept[s, q].tolist() == held
                wanted = [i for i in support[s, q].tolist() if i >= 0]
                assert all(clock in needed[s, i] for i in wanted)
                assert supported[s, q] == all(i in held for i in wanted)
            for t in range(12):
                for clock in needed[s, t][needed[s, t] >= 0]:
                    assert any(t in support[s, q] for q in range(4) if ask_at[s, q] == clock)


def test_bad_input():
    support, ask_at = np.zeros([2, 3, 1], int), np.ones([2, 3], int)
    with pytest.raises(
        ValueError, match=r"expected support \[B, Q, K\].*got \(2, 3, 1\) and \(2,\)"
    ):
        evaluation.needed_at(support, ask_at[:, 0], 4)
    with pytest.raises(ValueError, match=r"expected kept \[B, Q, N\]"):
        evaluation.supported(np.zeros([2, 3]), support)
    with pytest.raises(ValueError, match=r"expected ids \[B, T, N \+ 1\]"):
        kept_at(np.zeros([2, 5]), np.zeros([2, 5]), ask_at)
