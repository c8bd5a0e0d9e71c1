"""Runs: the same numbers whether stopped or not, the best agent kept, maps as asked for."""

import dataclasses
import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf import loop, retention
from lemn_tf.mazes import Rules, imaze_world, save_jsonl, single_indicator_world
from lemn_tf.navigation import navigator as maze
from lemn_tf.navigation import training as maze_training
from lemn_tf.navigation.learning import Learner, Recipe
from lemn_tf.navigation.training import Settings, Supply, settings_of, train

RECIPE = Recipe(frames=90, episodes=4, validate_every=1)


@pytest.fixture
def settings(monkeypatch):
    """A run of three updates of a small agent, in short episodes, without tracing."""

    def short(lengths):
        return imaze_world(lengths, rules=Rules(-0.04, 8))

    tf.config.run_functions_eagerly(True)
    monkeypatch.setattr(maze_training, "VALIDATION_LENGTHS", (4,))
    monkeypatch.setattr(maze_training, "imaze_world", short)
    small = {"units": 6, "width": 4, "filters": (2, 3)}
    monkeypatch.setattr(
        maze_training,
        "Navigator",
        lambda reader, slots, policy, *_, **play: maze.Navigator(
            reader, slots, policy, **small, **play
        ),
    )
    yield Settings(lengths=(4,), policy="fifo", slots=2, recipe=RECIPE)
    tf.config.run_functions_eagerly(False)


def test_maps_that_cannot_be_read_leave_no_folder(tmp_path):
    settings = Settings(env="single-indicator", maps=str(tmp_path / "typo"), recipe=RECIPE)
    with pytest.raises(OSError, match="typo"):
        train(settings, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_begins_with_the_agent_it_is_given(settings, tmp_path):
    first = train(settings, tmp_path / "first", jit_compile=False, stop_after=1)
    follows = dataclasses.replace(settings, start_from=str(tmp_path / "first"), seed=1)
    for a, b in zip(first.get_weights(), follows.build().get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    other = dataclasses.replace(follows, slots=3)
    with pytest.raises(ValueError, match="first: expected an agent with slots 3, got 2"):
        other.build()


def test_a_run_that_was_stopped_goes_on_as_if_nothing_had_happened(settings, tmp_path):
    lines = []
    whole = train(settings, tmp_path / "whole", lines.append, jit_compile=False)
    assert len(lines) >= 3
    train(settings, tmp_path / "parts", jit_compile=False, stop_after=1)
    resumed = train(settings, tmp_path / "parts", jit_compile=False)
    for a, b in zip(whole.get_weights(), resumed.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
    histories = [
        [json.loads(line) for line in (tmp_path / name / "history.jsonl").read_text().splitlines()]
        for name in ("whole", "parts")
    ]
    keys = ("update", "frames", "success", "return", "val_success_rate", "best")
    assert [[line[key] for key in keys] for line in histories[0]] == [
        [line[key] for key in keys] for line in histories[1]
    ]
    assert histories[0][-1]["frames"] >= RECIPE.frames
    best = max(line["val_success_rate"] for line in histories[0])
    assert histories[0][-1]["best"] == best
    for a, b in zip(whole.get_weights(), maze.load(tmp_path / "whole").get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert list((tmp_path / "whole" / "logs").iterdir())
    assert settings_of(tmp_path / "whole") == settings
    with pytest.raises(ValueError, match=r"other settings .*seed"):
        train(dataclasses.replace(settings, seed=1), tmp_path / "whole", jit_compile=False)


def test_a_policy_of_ones_own_is_trained_too(settings, tmp_path):
    """Registered by name in a file of its own, and nothing else changed."""

    @retention.register("own-maze-policy")
    class Own(retention.RetentionPolicy):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.direction = keras.layers.Dense(1)

        def score(self, seen, cells, carry):
            return self.opinion(self.direction(cells.vectors)[..., 0])

    settings = dataclasses.replace(settings, policy="own-maze-policy")
    before, lines = settings.build(), []
    assert before.learns
    after = train(settings, tmp_path, lines.append, jit_compile=False)
    assert all("eviction_entropy" in line for line in lines)
    first, last = (model.memory.policy.get_weights()[0] for model in (before, after))
    assert np.abs(first - last).max() > 0
    assert maze.load(tmp_path).memory.policy.name == "own-maze-policy"


def test_ctrl_c_leaves_the_last_validation(settings, tmp_path, monkeypatch):
    updates = []

    def update(self, course, starts, seed, progress):
        updates.append(seed)
        if len(updates) == 4:
            raise KeyboardInterrupt
        return {
            "frames": 20.0,
            "success": 0.0,
            "finished": 0.0,
            "indicator_in_memory": 0.0,
        }

    monkeypatch.setattr(Learner, "update", update)
    with pytest.raises(loop.Interrupted, match=r"after 60 of 90 .* after 60 frames"):
        train(settings, tmp_path, jit_compile=False)
    updates.clear()
    train(settings, tmp_path, jit_compile=False)
    assert updates[0] == (0, 3)  # the update behind the last validation comes next


def test_imaze_starts_are_drawn_from_all_maps_and_headings():
    supply = Supply(Settings(recipe=Recipe(episodes=200)))
    course, starts = supply(3)
    assert set(starts) == set(course.spawn.reshape(-1).tolist())
    again = Supply(Settings(recipe=Recipe(episodes=200)))(3)[1]
    np.testing.assert_array_equal(starts, again)
    assert (starts != supply(4)[1]).any()
    assert supply(4)[0] is course


def test_maps_are_walked_from_several_headings(tmp_path):
    world = single_indicator_world(count=5)
    save_jsonl(tmp_path / "maps.jsonl", world.mazes)
    settings = Settings(
        env="single-indicator",
        maps=str(tmp_path / "maps.jsonl"),
        generated=3,
        refresh=10,
        recipe=Recipe(episodes=8, maps=2),
    )
    supply = Supply(settings)
    course, starts = supply(0)
    assert set(starts.tolist()) == set(course.spawn.reshape(-1).tolist())
    assert len(set(starts.tolist())) == 8
    first = supply.world(9)
    assert len(first.mazes) == 8
    assert first.mazes[:5] == world.mazes
    second = supply.world(10)
    assert second.mazes[:5] == world.mazes
    assert second.mazes[5:] != first.mazes[5:]
    assert Supply(settings).world(10).mazes == second.mazes
    large = Supply(dataclasses.replace(settings, large=2)).world(0)
    assert large.mazes[:8] == first.mazes
    assert [maze.shape[0] > 9 for maze in large.mazes] == [False] * 8 + [True] * 2
    one = dataclasses.replace(settings, recipe=Recipe(episodes=6))
    course, starts = Supply(one)(0)
    assert starts.shape == (6,)
    assert np.isin(starts, course.spawn).all()


def test_validation_maps_are_others_than_those_trained_on():
    settings = Settings(env="single-indicator", generated=50, validation=9)
    valid = settings.validation_world()
    assert len(valid.mazes) == 9
    assert sum(limit == 100 for limit in valid.limit) == 3
    assert not set(valid.mazes) & set(Supply(settings).world(0).mazes)
    lengths = {len(m.rows) - 2 for m in Settings().validation_world().mazes}
    assert not lengths & {4, 6, 8, 10, 15, 20, 25, 30, 35, 40, 100, 200}
    assert lengths > {len(m.rows) - 2 for m in imaze_world([5, 7, 9]).mazes}


def test_bad_settings_are_refused(tmp_path):
    with pytest.raises(
        ValueError, match="expected env to be imaze or single-indicator, got 'doom'"
    ):
        Settings(env="doom")
    with pytest.raises(ValueError, match="no file of maps for imaze"):
        Settings(maps="x.jsonl")
    with pytest.raises(ValueError, match="expected maps to train on"):
        Settings(env="single-indicator", generated=0)
    with pytest.raises(ValueError, match=r"found no config\.json"):
        settings_of(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ValueError, match="another kind"):
        settings_of(tmp_path)
