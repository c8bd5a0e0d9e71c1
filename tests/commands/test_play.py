"""`lemn play`."""

import argparse

import keras
import pytest
from PIL import Image

from lemn_tf.commands.play import Play
from lemn_tf.mazes import imaze, save_jsonl
from lemn_tf.navigation.navigator import Navigator


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    """The folder of an untrained agent."""
    folder = tmp_path_factory.mktemp("agent")
    keras.utils.set_random_seed(0)
    Navigator("mqn", 3, "st-lemn", units=6, width=4, filters=(2, 3)).save_to(folder / "model.npz")
    return str(folder)


def play(text):
    parser = argparse.ArgumentParser()
    Play().add_arguments(parser)
    Play().run(parser.parse_args(text.split()))


def test_it_writes_a_film_and_says_how_it_ended(agent, tmp_path, capsys):
    path = tmp_path / "video.gif"
    save_jsonl(tmp_path / "maps.jsonl", [imaze(4), imaze(5, "L")])
    for what in ("--length 5 --indicator lime", f"--maps {tmp_path / 'maps.jsonl'} --map 1"):
        play(f"{agent} {what} --heading south --out {path}")
        with Image.open(path) as gif:
            assert gif.is_animated
        shown = capsys.readouterr().out
        assert f"wrote {path}: " in shown
        assert "steps to" in shown
        path.unlink()


def test_bad_requests_are_refused(agent, tmp_path):
    with pytest.raises(ValueError, match="number of a map with a file of maps only"):
        play(f"{agent} --map 3 --out x.gif")
    with pytest.raises(ValueError, match="either the length of an I-Maze or a file of maps"):
        play(f"{agent} --length 5 --maps x --out x.gif")
    save_jsonl(tmp_path / "maps.jsonl", [imaze(4)])
    with pytest.raises(ValueError, match="expected a map 0 to 0, got 1"):
        play(f"{agent} --maps {tmp_path / 'maps.jsonl'} --map 1 --out x.gif")
