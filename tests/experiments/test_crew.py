"""The workers of a training: how many, and the whole command with two of them."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from lemn_tf.experiments import babi, crew
from lemn_tf.learning.workers import ALONE, VARIABLE, write_config

PHASES = "linear start=32,reader=32,policy=64,polish=32"


def test_the_number_of_workers_is_that_of_the_cluster(monkeypatch):
    assert [crew.size(None), crew.size(3)] == [1, 3]
    monkeypatch.setenv(VARIABLE, write_config(["a:1", "b:1"], 0))
    assert [crew.size(None), crew.size(2)] == [2, 2]
    with pytest.raises(ValueError, match="--workers: TF_CONFIG names 2, got 3"):
        crew.size(3)


def test_workers_with_other_settings_are_refused(files):
    settings = babi.BabiSettings(str(files["train"]), str(files["valid"]), units=4)

    class Told(type(ALONE)):
        def hear(self):
            config = json.dumps({**babi._config(settings, 2), "slots": 7, "seed": 4})
            return {"config": np.asarray(config), "attempt": np.asarray(0)}

    with pytest.raises(ValueError, match=r"with other settings: \['seed', 'slots'\] differ"):
        babi.assist(settings, Told(), shards=2)


def train(files, out, *more) -> subprocess.Popen:
    given = ["--train", files["train"], "--valid", files["valid"], "--out", out, *more]
    small = ["--policy", "fifo", "--units", "4", "--phases", PHASES, "--competent", "0"]
    command = [sys.executable, "-m", "lemn_tf.cli", "train", "babi", *map(str, given), *small]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def weights(out) -> list[np.ndarray]:
    with np.load(out / "checkpoint.npz") as file:
        return [file[name] for name in sorted(file.files) if name.startswith("weight/")]


@pytest.mark.slow
def test_the_command_with_two_workers(files, tmp_path):
    """As with one; and if the second is killed, the same command again goes on."""
    one, two = train(files, tmp_path / "one"), train(files, tmp_path / "two", "--workers", "2")
    line, deadline = tmp_path / "two" / "history.jsonl", time.time() + 600
    while not (line.exists() and line.read_text()):
        assert time.time() < deadline
        time.sleep(0.1)
    found = subprocess.run(["pgrep", "-P", str(two.pid)], capture_output=True, text=True)
    subprocess.run(["kill", "-KILL", *found.stdout.split()], check=True)
    _, said = two.communicate(timeout=120)
    assert two.returncode == 2, said
    assert "lost contact with another one" in said
    assert f"worker 2 ended with code {-signal.SIGKILL}" in said
    again = train(files, tmp_path / "two", "--workers", "2")
    assert again.wait() == 0, again.stderr.read()
    assert one.wait() == 0, one.stderr.read()
    for ours, theirs in zip(weights(tmp_path / "two"), weights(tmp_path / "one"), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)
