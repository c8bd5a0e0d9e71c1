"""A training in a world: resumable, with a run's folder, and a score."""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf

from lemn_tf import loop, runs
from lemn_tf.experiments import worlds
from lemn_tf.navigation.recipe import Recipe

SETTINGS = worlds.WorldSettings(
    "CartPole-v1",
    policy="fifo",
    slots=2,
    units=8,
    validation=2,
    longest=12,
    recipe=Recipe(frames=100, episodes=3, validate_every=1),
)


def histories(*folders):
    keys = ("update", "frames", "return", "val_return", "best")
    for folder in folders:
        lines = (folder / "history.jsonl").read_text().splitlines()
        yield [[json.loads(line)[key] for key in keys] for line in lines]


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on_as_if_nothing_had_happened(tmp_path, monkeypatch):
    whole = worlds.train_world(SETTINGS, tmp_path / "whole", jit_compile=False)
    calls, learn = [], worlds.worlds.WorldLearner.learn

    def stops(self, *given):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return learn(self, *given)

    with monkeypatch.context() as patched:
        patched.setattr(worlds.worlds.WorldLearner, "learn", stops)
        with pytest.raises(loop.Interrupted, match="run the same command again"):
            worlds.train_world(SETTINGS, tmp_path / "parts", jit_compile=False)
    worlds.train_world(SETTINGS, tmp_path / "parts", jit_compile=False)
    first, second = histories(tmp_path / "whole", tmp_path / "parts")
    assert first == second
    agent = runs.load(tmp_path / "whole")
    for a, b in zip(whole.get_weights(), agent.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    (board,) = (tmp_path / "whole" / "logs").iterdir()
    events = tf.compat.v1.train.summary_iterator(str(board))
    tags = {value.tag for event in events for value in event.summary.value}
    assert {"life-lines", "memory", "return/fifo", "return/lru", "return/uniform"} <= tags
    bare = worlds.train_world(SETTINGS, jit_compile=False)
    for a, b in zip(whole.get_weights(), bare.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)  # the board changed nothing
    with pytest.raises(ValueError, match=r"other settings .*slots"):
        worlds.train_world(dataclasses.replace(SETTINGS, slots=3), tmp_path / "whole")


def test_scores_are_of_the_world_that_the_agent_was_made_for():
    agent = SETTINGS.build(worlds.worlds.make("CartPole-v1"))
    score = worlds.score_world(agent, "CartPole-v1", episodes=3, longest=5)
    assert (score["policy"], score["slots"], score["episodes"]) == ("fifo", 2, 3)
    assert score["return"] == 5.0
    with pytest.raises(
        ValueError,
        match=r"float32 \[4\] and has 2 .*; got Acrobot-v1, with float32",
    ):
        worlds.score_world(agent, "Acrobot-v1", episodes=1)
