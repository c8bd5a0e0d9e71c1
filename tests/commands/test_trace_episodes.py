"""A wrong --episode is found at once: how many there are is known before TensorFlow loads."""

import argparse
import json
import subprocess
import sys
import zipfile

import pytest

from lemn_tf import cli, runs
from lemn_tf.commands import trace


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
