"""A sweep on Ray: the files of local processes, also when a worker is killed on the way."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("ray", reason="Ray is an extra that is not installed")
PHASES = "linear start=32,reader=32,roomy=32,policy=32,polish=32"
GIVEN = ("--param", "units=4", "--param", "slots=2,3", "--phases", PHASES)


def sweep(data, out, *more) -> subprocess.Popen:
    command = [sys.executable, "-m", "lemn_tf.cli", "sweep", "babi", *GIVEN]
    where = ["--data", str(data), "--out", str(out)]
    return subprocess.Popen([*command, *where, *more], stderr=subprocess.PIPE, text=True)


def kill_a_worker(out) -> None:
    """Kills the worker of a cell that has a checkpoint and no result."""
    deadline = time.time() + 300
    while not list(out.glob("runs/*/checkpoint.npz")):
        assert time.time() < deadline
        time.sleep(0.2)
    name = next(out.glob("runs/*/checkpoint.npz")).parent.name
    found = subprocess.run(["pgrep", "-f", f"^ray::{name}"], capture_output=True, text=True)
    os.kill(int(found.stdout.split()[0]), signal.SIGKILL)


@pytest.mark.slow
def test_ray_leaves_what_processes_leave(files, tmp_path):
    data, outs = files["train"].parent, (tmp_path / "here", tmp_path / "ray")
    local = sweep(data, outs[0])
    assert local.wait() == 0, local.stderr.read()
    task = sweep(data, outs[1], "--ray")
    kill_a_worker(outs[1])
    assert task.wait() == 0, task.stderr.read()
    names = [sorted(path.name for path in (out / "results").iterdir()) for out in outs]
    assert names[0] == names[1]
    assert len(names[0]) == 2
    for name in names[0]:
        one, other = (json.loads((out / "results" / name).read_text()) for out in outs)
        clocks = ("seconds", "training_seconds")
        assert [key for key in one if key not in clocks and one[key] != other[key]] == []
