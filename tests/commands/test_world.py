"""`lemn train world` and `lemn evaluate` for its agents."""

import json
import sys

import pytest

from lemn_tf import cli, retention
from lemn_tf.experiments import worlds


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of an agent that was trained for a moment, by the command."""
    folder = str(tmp_path_factory.mktemp("world") / "run")
    sizes = "--slots 2 --policy fifo --units 8 --validation 2 --longest 8"
    short = "--frames 40 --episodes 3 --validate-every 1"
    command = f"train world --env CartPole-v1 --import gymnasium {sizes} {short} --out {folder}"
    assert cli.main(command.split()) == 0
    return folder


def test_what_was_trained_can_be_played(run, capsys):
    assert cli.main(["evaluate", run, "--count", "3", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["env"], told["return"], told["episodes"]) == ("CartPole-v1", 8.0, 3)
    assert cli.main(["evaluate", run, "--count", "3", "--env", "CartPole-v1"]) == 0
    assert "return 8.000 (8.000 to 8.000), above 0 in 100.0% of 3" in capsys.readouterr().out


def test_a_policy_from_a_module_of_ones_own(tmp_path, monkeypatch, capsys):
    (tmp_path / "gist_of_it.py").write_text(
        "import tensorflow as tf\n"
        "from lemn_tf import RetentionPolicy, retention\n"
        "@retention.register('gist-of-it')\n"
        "class GistOfIt(RetentionPolicy):\n"
        "    def score(self, seen, cells, carry):\n"
        "        return self.opinion(-tf.norm(cells.vectors, axis=-1))\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place])
    monkeypatch.setattr(retention, "_POLICIES", dict(retention._POLICIES))
    out = str(tmp_path / "run")
    small = "--slots 2 --units 8 --validation 2 --longest 8 --frames 40 --episodes 3"
    asked = f"train world --env CartPole-v1 --import gist_of_it --policy gist-of-it {small}"
    assert cli.main([*asked.split(), "--validate-every", "1", "--out", out]) == 0
    assert cli.main(["evaluate", out, "--count", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["policy"] == "gist-of-it"
    exported = tmp_path / "model" / "1"
    for again in (f"evaluate {out} --count 1", f"export {out} --no-warmup --out {exported}"):
        del sys.modules["gist_of_it"]
        assert cli.main(again.split()) == 0
        assert "gist_of_it" in sys.modules


def test_an_agent_over_another_memory(run, capsys):
    asked = ["evaluate", run, "--count", "3", "--json", "--policy", "lifo", "--slots", "5"]
    assert cli.main(asked) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["policy"], told["slots"], told["return"]) == ("lifo", 5, 8.0)
    assert cli.main(["evaluate", run, "--policy", "st-lemn"]) == 2
    assert "st-lemn is learned" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("--env NoSuch-v0", "say --import MODULE"),
        ("--lengths 5", "--lengths: meant for agents that walk mazes"),
        ("--data x", "such file"),
    ],
)
def test_bad_requests_are_refused(run, asked, said, capsys):
    assert cli.main(["evaluate", run, *asked.split()]) == 2
    assert said in capsys.readouterr().err


def test_what_is_wrong_is_said_before_anything_is_made(tmp_path, capsys):
    out = tmp_path / "run"
    for wrong in ("--env NoSuch-v0", "--env Pendulum-v1", "--env CartPole-v1 --policy nix"):
        assert cli.main(["train", "world", *wrong.split(), "--out", str(out)]) == 2
        assert "lemn: error:" in capsys.readouterr().err
        assert not out.exists()


def test_settings_say_what_was_asked():
    settings = worlds.WorldSettings("CartPole-v1", slots=7)
    assert settings.config()["task"] == "world"
    assert settings.config()["recipe"]["episodes"] == 32
