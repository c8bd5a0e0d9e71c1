"""`lemn train maze` and `lemn evaluate` for agents."""

import argparse
import json

import numpy as np
import pytest

from lemn_tf import cli
from lemn_tf.commands import maze
from lemn_tf.commands.evaluate import Evaluate
from lemn_tf.experiments import mazes
from lemn_tf.mazes import imaze, load_jsonl, random_mazes, save_jsonl


def parse(add, text):
    parser = argparse.ArgumentParser()
    add(parser)
    return parser.parse_args(text.split())


def evaluate(text):
    Evaluate().run(parse(Evaluate().add_arguments, text))


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


def test_the_same_agent_over_another_memory(capsys):
    shipped = "evaluate imaze-mqn-st-lemn-4 --lengths 6 --json"
    for policy, slots, least, most in (("st-lemn", 4, 100, 100), ("fifo", 2, 0, 50)):
        other = [] if policy == "st-lemn" else ["--policy", policy, "--slots", str(slots)]
        assert cli.main([*shipped.split(), *other]) == 0
        result = json.loads(capsys.readouterr().out)
        assert (result["policy"], result["slots"]) == (policy, slots)
        assert least <= result["success_rate"] <= most
    for wrong, said in (("s-lemn", "s-lemn is learned"), ("oracle", "oracle needs labels")):
        assert cli.main([*shipped.split(), "--policy", wrong]) == 2
        assert said in capsys.readouterr().err


def test_bad_requests_are_refused(agent, tmp_path):
    with pytest.raises(ValueError, match="either lengths of I-Mazes or a file of maps"):
        evaluate(f"{agent} --lengths 4 --maps x")
    with pytest.raises(ValueError, match="lengths with imaze only"):
        evaluate(f"{agent} --lengths 4 --env single-indicator")
    for option in ("--seed 0", "--far 3"):
        with pytest.raises(ValueError, match="--count, --far and --seed with generated random"):
            evaluate(f"{agent} --maps x {option}")
    with pytest.raises(ValueError, match=r"is not a finished run: expected a model\.keras in it"):
        evaluate(f"{tmp_path} --lengths 4")
    with pytest.raises(ValueError, match="--data, --renamings: meant for models that answer"):
        evaluate(f"{agent} --data x --renamings 1 --lengths 4")


def test_train_passes_on_what_was_asked(tmp_path, monkeypatch, capsys):
    asked = {}

    def train_agent(settings, out, show):
        asked.update(settings=settings, out=out)
        numbers = ("frames", "frames_per_second", "success", "length", "best")
        show(dict.fromkeys((*numbers, "val_success_rate", "val_wrong_rate"), 1))

    monkeypatch.setattr(mazes, "train_agent", train_agent)
    text = "--env single-indicator --reader frmqn --frames 5 --entropy 0.1 --large 3 --far 2"
    text += " --dated --acted 4 --guided 0.8 --out x"
    maze.run_train(parse(maze.add_train_arguments, text))
    assert asked["out"] == "x"
    changes = {"frames": 5, "entropy": 0.1, "guided": 0.8}
    assert asked["settings"] == mazes.maze_settings(
        "single-indicator", "frmqn", large=3, far=2, dated=True, acted=4, changes=changes
    )
    shown = capsys.readouterr()
    assert "best agent: x/model.keras" in shown.out
    assert "validation: success   1.0%" in shown.err


def test_maps_are_written_as_they_are_read(tmp_path, capsys):
    path = tmp_path / "maps.jsonl"
    asked = f"--env single-indicator --count 3 --seed 1 --out {path}"
    maze.run_data(parse(maze.add_data_arguments, asked))
    assert load_jsonl(path) == random_mazes(3, 1, "train")
    assert capsys.readouterr().out == f"{path}: 3 maps\n"
    maze.run_data(parse(maze.add_data_arguments, f"{asked} --far 4"))
    assert load_jsonl(path) == random_mazes(3, 1, "train", far=4)
    capsys.readouterr()
    maze.run_data(parse(maze.add_data_arguments, f"--env imaze --lengths 5 --out {path}"))
    assert load_jsonl(path) == [imaze(5, "Y"), imaze(5, "L")]
    with pytest.raises(ValueError, match="--lengths: not meant for single-indicator"):
        maze.check_data(parse(maze.add_data_arguments, f"--lengths 5 --out {path}"))
