"""`lemn trace`: a file of decisions, and reasons."""

import argparse
import json
import subprocess
import sys
import zipfile

import pytest

from lemn_tf import cli, runs
from lemn_tf.commands import trace
from lemn_tf.pipelines import babi as pipeline
from lemn_tf.pipelines import babi_generator
from lemn_tf.seeing import files

PRESET = "babi-noisy-st-lemn-5"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "noisy.txt"
    pipeline.write_stories(babi_generator.generate("noisy", 5, seed=2), path)
    return str(path)


def test_one_episode(data, tmp_path, capsys):
    out = str(tmp_path / "t.jsonl")
    given = ["trace", PRESET, "--data", data, "--episode", "3", "--out", out, "--why", "0"]
    assert cli.main(given) == 0
    said = capsys.readouterr().out
    assert "(0) left at t=" in said
    assert f"wrote {out}: 45 lines" in said
    assert files.read(out).about["run"] == PRESET
    assert files.read(out).why(0) in said


def test_all_episodes(data, tmp_path, capsys):
    out = str(tmp_path / "t.jsonl")
    assert cli.main(["trace", PRESET, "--data", data, "--out", out]) == 0
    assert "5 episodes" in capsys.readouterr().out
    assert {line.episode for line in files.read(out)} == set(range(5))


def test_what_is_wrong_is_said(data, tmp_path, capsys):
    out = str(tmp_path / "t.jsonl")
    for given, told in (
        ([PRESET, "--data", data], "say what to make"),
        ([PRESET, "--out", out], "say which data to show babi-noisy-st-lemn-5 with: --data F"),
        ([PRESET, "--data", data, "--episode", "5", "--out", out], "expected an episode 0 to 4"),
        ([PRESET, "--data", data, "--why", "99"], "no item 99"),
        ([PRESET, "--data", data, "--lengths", "5", "--why", "0"], "lengths are for maze agents"),
    ):
        assert cli.main(["trace", *given]) == 2
        assert told in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("run", "lengths", "last"),
    [
        ("imaze-mqn-st-lemn-4", None, 31),
        ("imaze-mqn-st-lemn-4", "5,9", 15),
        ("single-indicator-frmqn-st-lemn-5", None, 199),
    ],
)
def test_agents_in_mazes(run, lengths, last, tmp_path, capsys):
    given = ["--episode", str(last + 1), "--out", str(tmp_path / "t.jsonl")]
    given += ["--lengths", lengths] if lengths else []
    assert cli.main(["trace", run, *given]) == 2
    assert f"expected an episode 0 to {last}, got {last + 1}" in capsys.readouterr().err


def test_agents_in_worlds(tmp_path):
    """The file of an agent says what it is, which is enough to know."""
    path = tmp_path / "model.keras"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("config.json", json.dumps({"class_name": "MemoryAgent", "config": {}}))
    assert runs.about(path).cls == "MemoryAgent"
    given = argparse.Namespace(run=str(path), data=None, evidence=None, lengths=None)
    assert len(trace.lengths_in(given)) == 64


def test_the_amounts_need_no_tensorflow():
    code = "import sys, lemn_tf.commands.trace; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
