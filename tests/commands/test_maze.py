"""The commands for mazes from end to end, and films."""

import argparse
import json

import keras
import numpy as np
import pytest
from PIL import Image

from lemn_tf.commands import maze, maze_reproduce
from lemn_tf.commands.evaluate import Evaluate
from lemn_tf.mazes import imaze, imaze_world, save_jsonl
from lemn_tf.navigation.navigator import Navigator
from lemn_tf.navigation.video import episode, film


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    """The folder of an untrained agent."""
    folder = tmp_path_factory.mktemp("agent")
    keras.utils.set_random_seed(0)
    Navigator("mqn", 3, "st-lemn", units=6, width=4, filters=(2, 3)).save_to(folder / "model.npz")
    return str(folder)


def parse(add, text):
    parser = argparse.ArgumentParser()
    add(parser)
    return parser.parse_args(text.split())


def evaluate(text):
    maze.run_evaluate(parse(Evaluate().add_arguments, text))


def test_evaluate_by_length(agent, capsys):
    evaluate(f"{agent} --env imaze --lengths 5,7 --json")
    result = json.loads(capsys.readouterr().out)
    assert result["episodes"] == 16
    assert list(result["per_length"]) == ["5", "7"]
    assert result["per_length"]["5"]["episodes"] == 8
    rates = [one["success_rate"] for one in result["per_length"].values()]
    assert result["success_rate"] == pytest.approx(np.mean(rates), abs=1e-3)
    assert result["policy"] == "st-lemn"


def test_evaluate_a_file_of_maps(agent, tmp_path, capsys):
    save_jsonl(tmp_path / "maps.jsonl", [imaze(5, "Y"), imaze(5, "L"), imaze(7, "L")])
    evaluate(f"{agent} --maps {tmp_path / 'maps.jsonl'} --json")
    result = json.loads(capsys.readouterr().out)
    assert result["episodes"] == 12
    assert 0 <= result["success_rate"] <= result["winnable_rate"] == 100.0
    evaluate(f"{agent} --maps {tmp_path / 'maps.jsonl'}")
    assert "% of 12 episodes (at most 100.0% can be won)" in capsys.readouterr().out


def test_bad_requests_are_refused(agent, tmp_path):
    with pytest.raises(ValueError, match="either lengths of I-Mazes or a file of maps"):
        evaluate(f"{agent} --lengths 4 --maps x")
    with pytest.raises(ValueError, match="lengths with imaze only"):
        evaluate(f"{agent} --lengths 4 --env single-indicator")
    with pytest.raises(ValueError, match="--count and --seed with generated random mazes only"):
        evaluate(f"{agent} --maps x --seed 0")
    with pytest.raises(ValueError, match=r"expected a trained maze agent, found none at .*presets"):
        evaluate(f"{tmp_path} --lengths 4")
    with pytest.raises(ValueError, match="--slots, --policy: meant for models that answer"):
        evaluate(f"{agent} --policy fifo --slots 1 --lengths 4")
    with pytest.raises(ValueError, match="number of a map with a file of maps only"):
        maze.run_play(parse(maze.add_play_arguments, f"{agent} --map 3 --out x.gif"))
    assert maze.is_agent(agent)
    assert not maze.is_agent(str(tmp_path))


def test_play_writes_a_film(agent, tmp_path, capsys):
    path = tmp_path / "video.gif"
    text = f"{agent} --length 5 --indicator lime --heading south --out {path}"
    maze.run_play(parse(maze.add_play_arguments, text))
    shown = capsys.readouterr().out
    with Image.open(path) as gif:
        assert gif.is_animated
        assert gif.size[0] > 300
        assert f" {gif.n_frames} steps" in shown or gif.n_frames > 1  # equal pictures are joined
    with pytest.raises(ValueError, match="ends in"):
        film(maze.load(agent), imaze_world(5), tmp_path / "video.mp4")


def test_an_episode_tells_what_was_seen(agent):
    world, model = imaze_world(5), maze.load(agent)
    told = episode(model, world, maze=1, heading=2)
    steps = len(told["action"])
    assert told["frames"].shape == (steps, 4, 32, 32, 3)
    np.testing.assert_allclose(told["actions"].sum(-1), 1.0, atol=1e-5)
    np.testing.assert_allclose(told["drop"].sum(-1), 1.0, atol=1e-5)
    np.testing.assert_allclose(told["attention"][1:].sum(-1), 1.0, atol=1e-5)
    assert not told["attention"][0].any()
    for t in range(steps):
        pose = world.pose(1, tuple(told["cell"][t]), int(told["heading"][t]))
        np.testing.assert_array_equal(told["frames"][t, -1], world.rgb[world.frame[pose]])
    assert tuple(told["cell"][0]) == world.mazes[1].spawn
    with pytest.raises(ValueError, match="expected a map 0 to 1 and a heading 0 to 3, got 2 and 0"):
        episode(model, world, 2, 0)


def test_train_settings_follow_the_arguments(tmp_path):
    text = "--env single-indicator --reader frmqn --frames 5 --entropy 0.1 --out x"
    settings = maze.settings_from(parse(maze.add_train_arguments, text))
    assert (settings.slots, settings.generated, settings.reader) == (5, 1000, "frmqn")
    assert (settings.recipe.frames, settings.recipe.entropy, settings.recipe.maps) == (5, 0.1, 8)
    settings = maze.settings_from(parse(maze.add_train_arguments, "--out x --seed 3"))
    assert (settings.env, settings.slots, settings.seed) == ("imaze", 4, 3)
    assert settings.recipe.entropy == 0.07
    settings = maze.settings_from(
        parse(maze.add_train_arguments, "--env single-indicator --maps f --out x")
    )
    assert settings.generated == 0


def test_the_plan_and_its_report(tmp_path):
    arguments = parse(maze_reproduce.add_reproduce_arguments, "--seeds 2")
    cells = maze_reproduce.plan(arguments)
    names = [cell.name for cell in cells]
    assert "imaze-mqn-st-lemn-4-seed1" in names
    assert "single-indicator-frmqn-fifo-5-seed0" in names
    assert len(names) == len(set(names)) == 12
    command = maze_reproduce.train_command(cells[0], arguments)
    parsed = parse(maze.add_train_arguments, " ".join(command[2:]))
    assert maze.settings_from(parsed).policy == "st-lemn"
    with pytest.raises(ValueError, match="found none"):
        maze_reproduce.write_report(tmp_path)
    folder = tmp_path / "maze"
    folder.mkdir()
    for cell in (cells[0], cells[-1]):
        by = {"4": 100.0, "200": 50.0} if cell.env == "imaze" else {"test": 90.0, "large": 80.0}
        group = "per_length" if cell.env == "imaze" else "per_split"
        record = {
            **vars(cell),
            "row": cell.row,
            "scores": {
                group: {name: {"success_rate": rate} for name, rate in by.items()},
                "temperature": 0.25,
            },
            "frames": 1000,
            "training_seconds": 60.0,
            "command": maze_reproduce.reproduce_command(cell, arguments),
            "commit": "abc",
        }
        (folder / f"{cell.name}.json").write_text(json.dumps(record))
    written = maze_reproduce.write_report(tmp_path)
    assert [path.name for path in written] == ["imaze.svg", "imaze.md", "maze.md"]
    assert "| mqn st-lemn, seed 0 | 100 | 50 | 1,000 | 1 |" in written[1].read_text()
    assert "| 90.0 | 80.0 | 84.3 | 91.2 | 0.25 |" in written[2].read_text()
    assert (
        "lemn reproduce maze --envs imaze --readers mqn --policies st-lemn"
        in written[1].read_text()
    )
    assert "<polyline" in written[0].read_text()


def test_a_result_says_how_to_get_it_again(tmp_path):
    text = f"--envs single-indicator --maps {tmp_path / 'given.jsonl'} --frames 9 --maze-seeds 2"
    arguments = parse(maze_reproduce.add_reproduce_arguments, text)
    cell = maze_reproduce.plan(arguments)[-1]
    command = maze_reproduce.reproduce_command(cell, arguments)
    assert str(tmp_path) not in command
    again = parse(
        maze_reproduce.add_reproduce_arguments, command.removeprefix("lemn reproduce maze")
    )
    assert cell in maze_reproduce.plan(again)
    assert (again.maps, again.frames) == ("given.jsonl", 9)


def test_the_best_agent_becomes_the_preset(tmp_path):
    row = maze_reproduce.PRESETS[0]
    (tmp_path / "maze").mkdir()
    for seed, best in ((0, 90.0), (1, 100.0)):
        keras.utils.set_random_seed(seed)
        agent = Navigator("mqn", 3, "st-lemn", units=6, width=4, filters=(2, 3))
        (tmp_path / f"{row}-seed{seed}").mkdir()
        agent.save_to(tmp_path / f"{row}-seed{seed}" / "model.npz")
        record = json.dumps({"best_validation": best, "seed": seed})
        (tmp_path / "maze" / f"{row}-seed{seed}.json").write_text(record)
    written = maze_reproduce.copy_presets(tmp_path, tmp_path, tmp_path / "presets")
    assert [path.name for path in written] == [f"{row}.npz"]
    for kept, given in zip(
        maze.load(str(written[0])).get_weights(), agent.get_weights(), strict=True
    ):
        np.testing.assert_allclose(kept, given, atol=1e-3)
