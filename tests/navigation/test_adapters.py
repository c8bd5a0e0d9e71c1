"""Worlds of other packages, where they are installed."""

import numpy as np
import pytest

from lemn_tf.navigation import worlds


@pytest.mark.parametrize(
    ("package", "env", "actions", "steps"),
    [
        ("popgym", "popgym-RepeatFirstEasy-v0", 4, 51),
        ("minigrid", "MiniGrid-MemoryS7-v0", 3, 245),
        ("bsuite", "bsuite/memory_len/2", 2, 4),
    ],
)
def test_an_agent_lives_there(package, env, actions, steps):
    pytest.importorskip(package, reason=f"{package} is not installed; see docs/worlds.md")
    envs = worlds.make(env, rows=2)
    agent = worlds.agent_for(envs, slots=2, policy="fifo", units=8)
    assert agent.reader.actions == actions
    life = worlds.Life(agent, envs, longest=6)
    one, again = life(seed=3), life(seed=3)
    assert one.valid.numpy().sum(axis=1).max() == min(steps, 6)
    for name in ("action", "reward", "slot"):
        np.testing.assert_array_equal(getattr(one, name), getattr(again, name))


def test_what_bsuite_does_not_have():
    pytest.importorskip("bsuite", reason="bsuite is not installed; see docs/worlds.md")
    with pytest.raises(ValueError, match="bsuite has no 'memory_len/99'; expected an id such as"):
        worlds.make("bsuite/memory_len/99")
