"""The agent as a whole: its parts, saving and loading."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf import retention, runs
from lemn_tf.navigation.navigator import Navigator

TINY = {"units": 6, "width": 4, "filters": (2, 3)}


@pytest.mark.parametrize(
    ("reader", "policy"),
    [
        ("mqn", "fifo"),
        ("frmqn", "lru"),
        ("mqn", "im-lemn"),
        ("frmqn", "s-lemn"),
        ("mqn", "st-lemn"),
    ],
)
def test_any_reader_with_any_policy_survives_a_file(tmp_path, reader, policy):
    model = Navigator(reader, 3, policy, **TINY)
    path = tmp_path / "agent.keras"
    model.save(path)
    again = runs.load(path)
    assert again.settings == model.settings
    for a, b in zip(model.get_weights(), again.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    frames = np.random.default_rng(0).integers(0, 256, [2, 32, 32, 3], dtype=np.uint8)
    _, state, _ = model.act(frames, model.initial_state(2))
    expected, _ = model.consider(frames, state)
    move, _ = again.consider(frames, state)
    np.testing.assert_array_equal(move.logits, expected.logits)


@retention.register("vivid")
class Vivid(retention.RetentionPolicy):
    """A policy of a user's own, with a layer: evicts what a learned direction says."""

    def __init__(self, sharpness: float = 1.0, **kwargs):
        super().__init__(**kwargs)
        self.sharpness = sharpness
        self.direction = keras.layers.Dense(1)

    def score(self, seen, cells, carry):
        return self.opinion(self.sharpness * self.direction(cells.vectors)[..., 0])

    def get_config(self):
        return {**super().get_config(), "sharpness": self.sharpness}


@pytest.mark.parametrize("name", ["lru", "im-lemn", "st-lemn", "vivid"])
def test_a_policy_by_name_is_that_policy_as_an_object(tmp_path, name):
    agents = []
    for policy in (name, retention.get(name)):
        keras.utils.set_random_seed(3)
        agents.append(Navigator("mqn", 3, policy, **TINY))
    by_name, by_object = agents
    by_object.set_weights(by_name.get_weights())
    by_object.save(tmp_path / "agent.keras")
    twins = [
        by_object,
        by_object.playing_at(0.5),
        runs.load(tmp_path / "agent.keras"),
        Navigator.from_config(by_object.get_config()),
    ]
    twins[-1].set_weights(by_object.get_weights())
    assert twins[2].settings == by_object.settings
    frames = np.random.default_rng(0).integers(0, 256, [2, 9, 32, 32, 3], dtype=np.uint8)
    expected, _ = by_name.memory(tf.constant(frames))
    for twin in twins:
        assert twin.learns == by_name.learns
        assert twin.view.narrow.trainable == by_name.view.narrow.trainable
        assert twin.memory.policy.name == name
        state, _ = twin.memory(tf.constant(frames))
        np.testing.assert_array_equal(state.ids, expected.ids)


def test_options_go_with_names():
    assert Navigator("mqn", policy="st-lemn", hidden=3, **TINY).memory.policy.hidden == 3
    assert Navigator("mqn", policy="vivid", hidden=3, **TINY).memory.policy.sharpness == 1.0
    sharp = Navigator("mqn", policy=retention.get("vivid", sharpness=2.0), **TINY)
    assert Navigator.from_config(sharp.get_config()).memory.policy.sharpness == 2.0
    with pytest.raises(ValueError, match=r"options .'hidden'. go with a policy's name"):
        Navigator("mqn", policy=retention.get("st-lemn"), hidden=3, **TINY)


def test_bad_parts_are_refused():
    with pytest.raises(ValueError, match="expected a reader mqn or frmqn, got 'dqn'"):
        Navigator("dqn")
    for oracle in ("oracle", retention.get("oracle")):
        with pytest.raises(ValueError, match="clairvoyant"):
            Navigator("mqn", policy=oracle)
    with pytest.raises(ValueError, match="unknown policy"):
        Navigator("mqn", policy="best")


def test_sizes_are_those_of_the_original():
    model = Navigator("mqn")
    assert model.reader.eyes.width == 4096
    assert model.reader.key.kernel.shape == (4096, 256)
    assert model.view.narrow.kernel.shape == (256, 32)
    half = 2 * Navigator("frmqn", 5).count_params()
    assert half < 15e6  # what a preset may weigh


def test_views_are_what_the_parts_say():
    model = Navigator("mqn", **TINY)
    frames = np.random.default_rng(0).integers(0, 256, [3, 32, 32, 3], dtype=np.uint8)
    views = model.look(frames)
    np.testing.assert_allclose(views.query, model.reader.ask(frames), atol=1e-6)
    np.testing.assert_allclose(views.codes, model.reader.encode(frames), atol=1e-6)
    np.testing.assert_allclose(views.vectors, model.memory.encode(frames), atol=1e-6)
