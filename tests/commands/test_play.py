"""`lemn play`."""

import argparse

import pytest
from PIL import Image

from lemn_tf.commands.play import Play
from lemn_tf.mazes import imaze, save_jsonl


def play(text):
    parser = argparse.ArgumentParser()
    Play().add_arguments(parser)
    arguments = parser.parse_args(text.split())
    Play().check(arguments)
    Play().run(arguments)


def test_it_writes_a_film_and_says_how_it_ended(agent, tmp_path, capsys):
    path = tmp_path / "video.gif"
    save_jsonl(tmp_path / "maps.jsonl", [imaze(4), imaze(5, "L")])
    for what in (
        "--length 5 --indicator lime",
        "--seed 1",
        f"--maps {tmp_path / 'maps.jsonl'} --map 1",
    ):
        play(f"{agent} {what} --heading south --out {path}")
        with Image.open(path) as gif:
            assert gif.is_animated
        shown = capsys.readouterr().out
        assert f"wrote {path}: " in shown
        assert "steps to" in shown
        path.unlink()


def test_bad_requests_are_refused(agent, tmp_path):
    with pytest.raises(FileNotFoundError, match="the folder for it is not there"):
        play(f"{agent} --out nowhere/x.gif")
    with pytest.raises(ValueError, match="number of a map with a file of maps only"):
        play(f"{agent} --map 3 --out x.gif")
    with pytest.raises(ValueError, match=r"either the length of an I-Maze, .* got length and maps"):
        play(f"{agent} --length 5 --maps x --out x.gif")
    save_jsonl(tmp_path / "maps.jsonl", [imaze(4)])
    with pytest.raises(ValueError, match="expected a map 0 to 0, got 1"):
        play(f"{agent} --maps {tmp_path / 'maps.jsonl'} --map 1 --out x.gif")


def test_a_maze_of_the_kind_the_agent_was_made_for(tmp_path):
    given = {"length": None, "seed": None, "far": None, "maps": None, "map": 0}
    arguments = argparse.Namespace(**given, indicator="lime")
    assert Play()._world(arguments, "imaze").mazes[0].id == "imaze-9-L"
    assert Play()._world(arguments, "single-indicator").mazes[0].id == "test-0"
    arguments.far = 6
    assert Play()._world(arguments, "single-indicator").mazes[0].id == "test-0-far-6"
