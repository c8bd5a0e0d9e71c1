"""`lemn train` goes through the agent of TF-Agents, or its drivers, or does without it."""

import dataclasses
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf import agents
from lemn_tf.experiments import babi
from lemn_tf.learning import ActorCritic, Hindsight
from lemn_tf.model import StreamReader
from lemn_tf.pipelines import babi as pipeline
from lemn_tf.pipelines import babi_generator
from lemn_tf.readers import MemN2N

ITEM = tf.TensorSpec([3], tf.int32)


def make_model():
    keras.utils.set_random_seed(2)
    return StreamReader(MemN2N(9, 3, units=4, hops=1, max_slots=8), 2, "s-lemn")


def batch(rows=4, steps=5):
    generator = np.random.default_rng(0)
    arrays = {
        "items": generator.integers(1, 9, [rows, steps, 3]),
        "length": np.array([steps, steps - 1, steps, steps])[:rows],
        "questions": generator.integers(1, 9, [rows, 1, 3]),
        "ask_at": np.full([rows, 1], steps - 1),
        "answers": generator.integers(1, 9, [rows, 1]),
    }
    return {name: tf.constant(array, tf.int32) for name, array in arrays.items()}


def test_the_agent_drives():
    agent = babi.agent_for(make_model(), (Hindsight(),), ITEM, None, driver=False)
    assert isinstance(agent, agents.ActorCriticAgent)


def test_a_driver_reads_the_streams_of_every_batch():
    """The batch's own streams, whatever the order of their lengths; updates as ever."""
    model, chosen = make_model(), (ActorCritic(),)
    driven = babi.agent_for(model, chosen, ITEM, None, driver=True)
    assert isinstance(driven, agents.Driven)
    model.compile(
        keras.optimizers.SGD(0.1), retention=chosen, agent=driven, jit_compile=False, seed=1
    )
    before = model.get_weights()
    data = tf.data.Dataset.from_tensors(batch()).repeat(2)
    history = model.fit(data, verbose=0, shuffle=False).history
    assert np.isfinite(history["total_loss"][0])
    assert {"return", "accuracy", "subset_accuracy"} <= set(history)
    assert any(np.any(a != b) for a, b in zip(before, model.get_weights(), strict=True))
    assert int(driven.agent.train_step_counter) == 2
    assert len(driven._games) == 1


def test_without_tf_agents_the_model_trains_itself_and_says_so(monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "lemn_tf.agents.actor_critic", raising=False)
    for name in [name for name in sys.modules if name.split(".")[0] == "tf_agents"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tf_agents", None)
    assert babi.agent_for(make_model(), (Hindsight(),), ITEM, None, driver=False) is None
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "TF-Agents is not installed" in said
    with pytest.raises(ValueError, match="--driver needs TF-Agents"):
        babi.agent_for(make_model(), (Hindsight(),), ITEM, None, driver=True)


@pytest.mark.slow
def test_a_driver_teaches_what_the_fast_path_teaches(tmp_path):
    """On generated stories, reader and all: the two ways end near each other, far from FIFO."""
    files = []
    for number, count in enumerate((600, 100)):
        files.append(tmp_path / f"{number}.txt")
        pipeline.write_stories(babi_generator.generate("noisy", count, seed=number), files[-1])
    lengths = {"linear start": 24_000, "reader": 24_000, "policy": 8_000, "polish": 8_000}
    settings = babi.Settings(*map(str, files), slots=5, room=False, episodes=lengths)
    errors = {}
    for driver in (False, True):
        run = tmp_path / f"run-{driver}"
        model = babi.train(dataclasses.replace(settings, driver=driver), run, shards=1)
        errors[driver] = babi.score(model, files[1])["error_rate"]
    fifo = babi.score(model.with_policy("fifo"), files[1])["error_rate"]
    assert errors[True] < 0.5 * fifo
    assert abs(errors[True] - errors[False]) < 8
