"""Trainings in mazes: maps as asked for, the same numbers whether stopped or not, scores."""

import dataclasses
import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf import loop, retention
from lemn_tf.experiments import mazes
from lemn_tf.experiments.mazes import (
    MapSupply,
    MazeSettings,
    exam_world,
    load_agent,
    maze_settings,
    train_agent,
)
from lemn_tf.mazes import Rules, imaze, imaze_world, save_jsonl, single_indicator_world
from lemn_tf.navigation.learning import Learner
from lemn_tf.navigation.recipe import Recipe

pytestmark = pytest.mark.filterwarnings("ignore:Even though the .tf.config.experimental_run")
RECIPE = Recipe(frames=90, episodes=4, validate_every=1)


@pytest.fixture
def settings(monkeypatch):
    """A run of three updates of a small agent, in short episodes, without tracing."""

    def short(lengths):
        return imaze_world(lengths, rules=Rules(-0.04, 8))

    tf.config.run_functions_eagerly(True)
    monkeypatch.setattr(mazes, "VALIDATION_LENGTHS", (4,))
    monkeypatch.setattr(mazes, "imaze_world", short)
    small = {"units": 6, "width": 4, "filters": (2, 3)}
    sizes = MazeSettings.sizes.fget
    monkeypatch.setattr(MazeSettings, "sizes", property(lambda self: {**sizes(self), **small}))
    yield MazeSettings(lengths=(4,), policy="fifo", slots=2, recipe=RECIPE)
    tf.config.run_functions_eagerly(False)


def stop_at(monkeypatch, call):
    """Ctrl-C in place of that update of the process; the ones after it go well."""
    update, calls = Learner.update, []

    def counted(self, *given):
        calls.append(given[2])
        if len(calls) == call:
            raise KeyboardInterrupt
        return update(self, *given)

    monkeypatch.setattr(Learner, "update", counted)
    return calls


def test_maps_that_cannot_be_read_leave_no_folder(tmp_path):
    settings = MazeSettings(env="single-indicator", maps=str(tmp_path / "typo"), recipe=RECIPE)
    with pytest.raises(OSError, match="typo"):
        train_agent(settings, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_begins_with_the_agent_it_is_given(settings, tmp_path):
    first = train_agent(settings, tmp_path / "first", jit_compile=False)
    follows = dataclasses.replace(settings, start_from=str(tmp_path / "first"), seed=1)
    for a, b in zip(first.get_weights(), follows.build().get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    knowing = dataclasses.replace(follows, dated=True, acted=2).build()
    frames, state = tf.random.uniform([2, 32, 32, 3], maxval=255), first.initial_state(2)
    knows = knowing.initial_state(2)
    for frame in (frames, frames[::-1]):  # what it knows says nothing yet
        action, state, _ = first.act(frame, state)
        again, knows, _ = knowing.act(frame, knows)
        np.testing.assert_array_equal(action, again)
    np.testing.assert_array_equal(state.ids, knows.ids)
    other = dataclasses.replace(follows, slots=3)
    with pytest.raises(ValueError, match="first: expected an agent with slots 3, got 2"):
        other.build()


def test_a_run_that_was_stopped_goes_on_as_if_nothing_had_happened(settings, tmp_path, monkeypatch):
    lines = []
    whole = train_agent(settings, tmp_path / "whole", lines.append, jit_compile=False)
    assert len(lines) >= 3
    calls = stop_at(monkeypatch, 2)
    with pytest.raises(loop.Interrupted, match="run the same command again to go on"):
        train_agent(settings, tmp_path / "parts", jit_compile=False)
    resumed = train_agent(settings, tmp_path / "parts", jit_compile=False)
    assert calls[:3] == [(0, 0), (0, 1), (0, 1)]  # from the last validation
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
    for a, b in zip(whole.get_weights(), load_agent(tmp_path / "whole").get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert list((tmp_path / "whole" / "logs").iterdir())
    with pytest.raises(ValueError, match=r"other settings .*seed"):
        train_agent(dataclasses.replace(settings, seed=1), tmp_path / "whole", jit_compile=False)


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
    after = train_agent(settings, tmp_path, lines.append, jit_compile=False)
    assert all("eviction_entropy" in line for line in lines)
    first, last = (model.memory.policy.get_weights()[0] for model in (before, after))
    assert np.abs(first - last).max() > 0
    assert load_agent(tmp_path).memory.policy.name == "own-maze-policy"


def test_imaze_starts_are_drawn_from_all_maps_and_headings():
    supply = MapSupply(MazeSettings(recipe=Recipe(episodes=200)))
    starts, course = supply(3)
    assert set(starts) == set(course.spawn.reshape(-1).tolist())
    again = MapSupply(MazeSettings(recipe=Recipe(episodes=200)))(3)[0]
    np.testing.assert_array_equal(starts, again)
    assert (starts != supply(4)[0]).any()


def test_maps_are_walked_from_several_headings(tmp_path):
    world = single_indicator_world(count=5)
    save_jsonl(tmp_path / "maps.jsonl", world.mazes)
    settings = MazeSettings(
        env="single-indicator",
        maps=str(tmp_path / "maps.jsonl"),
        generated=3,
        refresh=10,
        recipe=Recipe(episodes=8, maps=2),
    )
    supply = MapSupply(settings)
    starts, course = supply(0)
    assert set(starts.tolist()) == set(course.spawn.reshape(-1).tolist())
    assert len(set(starts.tolist())) == 8
    first = supply.world(9)
    assert len(first.mazes) == 8
    assert first.mazes[:5] == world.mazes
    second = supply.world(10)
    assert second.mazes[:5] == world.mazes
    assert second.mazes[5:] != first.mazes[5:]
    assert MapSupply(settings).world(10).mazes == second.mazes
    both = MapSupply(dataclasses.replace(settings, large=2))
    assert {
        len(np.unique(both(update)[1].limit[both(update)[1].spawn])) for update in range(9)
    } == {1}
    assert {both(update)[1].longest for update in range(9)} == {50, 100}
    large = both.world(0)
    assert large.mazes[:8] == first.mazes
    assert [maze.shape[0] > 9 for maze in large.mazes] == [False] * 8 + [True] * 2
    one = dataclasses.replace(settings, recipe=Recipe(episodes=6))
    starts, course = MapSupply(one)(0)
    assert starts.shape == (6,)
    assert np.isin(starts, course.spawn).all()


def test_validation_maps_are_others_than_those_trained_on():
    settings = MazeSettings(env="single-indicator", generated=50, validation=9)
    valid = settings.validation_world()
    assert len(valid.mazes) == 9
    assert sum(limit == 100 for limit in valid.limit) == 3
    assert not set(valid.mazes) & set(MapSupply(settings).world(0).mazes)
    lengths = {len(m.rows) - 2 for m in MazeSettings().validation_world().mazes}
    assert not lengths & {4, 6, 8, 10, 15, 20, 25, 30, 35, 40, 100, 200}
    assert lengths > {len(m.rows) - 2 for m in imaze_world([5, 7, 9]).mazes}


def test_bad_settings_are_refused():
    for make in (MazeSettings, maze_settings):
        with pytest.raises(
            ValueError, match="expected env to be imaze or single-indicator, got 'doom'"
        ):
            make(env="doom")
    with pytest.raises(ValueError, match="expected reader to be mqn or frmqn, got 'dqn'"):
        maze_settings(reader="dqn")
    with pytest.raises(ValueError, match="no file of maps for imaze"):
        MazeSettings(maps="x.jsonl")
    with pytest.raises(ValueError, match="expected maps to train on"):
        MazeSettings(env="single-indicator", generated=0)


def test_settings_suit_the_environment_and_the_reader():
    settings = maze_settings("single-indicator", "frmqn", changes={"frames": 5, "entropy": 0.1})
    assert (settings.slots, settings.generated, settings.reader) == (5, 1000, "frmqn")
    assert (settings.recipe.frames, settings.recipe.entropy, settings.recipe.maps) == (5, 0.1, 8)
    settings = maze_settings(seed=3)
    assert (settings.env, settings.slots, settings.seed) == ("imaze", 4, 3)
    assert settings.recipe.entropy == 0.07
    assert maze_settings("single-indicator", maps="f").generated == 0
    later = maze_settings("single-indicator", start_from="single-indicator-frmqn-st-lemn-5")
    assert (later.recipe.guidance, later.recipe.episodes) == (0.0, 64)
    assert later.start_from.endswith("single-indicator-frmqn-st-lemn-5.keras")


def test_exams_know_which_maps_belong_together(tmp_path):
    world, groups = exam_world("imaze", [5, 7])
    assert {name: [world.mazes[m].id for m in rows] for name, rows in groups.items()} == {
        "5": ["imaze-5-Y", "imaze-5-L"],
        "7": ["imaze-7-Y", "imaze-7-L"],
    }
    world, groups = exam_world("single-indicator", count=2, seed=1)
    for name, rows in groups.items():
        assert all(world.mazes[m].id.startswith(name) for m in rows)
    assert sum(map(len, groups.values())) == len(world.mazes) == 4
    save_jsonl(tmp_path / "maps.jsonl", [imaze(6)])
    world, groups = exam_world("imaze", maps=str(tmp_path / "maps.jsonl"))
    assert (world.mazes, groups) == ((imaze(6),), {})
