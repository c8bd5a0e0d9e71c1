"""Jobs as processes: what is run, what is said of it, and how it is stopped."""

import contextlib
import fcntl
import subprocess
import sys
import time

import pytest

from lemn_tf.experiments import scheduling

SCRIPT = "import sys; print(sys.argv[1]); sys.exit(sys.argv[1] == 'bad')"


def test_processes_say_how_they_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(scheduling, "LEMN", (sys.executable, "-c", SCRIPT))
    ended: dict[str, bool] = {}
    with scheduling.Processes(2, tmp_path / "xla") as scheduler:
        for name in ("good", "bad"):
            scheduler.start(scheduling.Job(name, (name,), tmp_path / f"{name}.log"))
        deadline = time.time() + 60
        while len(ended) < 2 and time.time() < deadline:
            ended |= scheduler.ended()
            time.sleep(0.05)
        assert scheduler.ended() == {}  # each is told of once
    assert ended == {"good": True, "bad": False}
    assert (tmp_path / "bad.log").read_text() == "bad\n"


STARTS = """
import sys, time
from pathlib import Path
from lemn_tf.experiments import scheduling

scheduling.LEMN = (sys.executable, "-c", sys.argv[2])
folder = Path(sys.argv[1])
with scheduling.Processes(1, folder) as scheduler:
    scheduler.start(scheduling.Job("one", (str(folder / "job"),), folder / "log"))
    time.sleep(60)
"""
JOB = """
import fcntl, sys, time
from lemn_tf.experiments import scheduling

scheduling.follow()
mine = open(sys.argv[1], "w")
fcntl.flock(mine, fcntl.LOCK_EX)
print("locked", file=mine, flush=True)
time.sleep(60)
"""


def test_jobs_stop_when_the_one_that_started_them_is_killed(tmp_path):
    job = tmp_path / "job"
    parent = subprocess.Popen([sys.executable, "-c", STARTS, tmp_path, JOB])
    give_up = time.monotonic() + 40
    while not (job.exists() and job.read_text()) and time.monotonic() < give_up:
        time.sleep(0.05)
    with open(job) as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # it is at work
    parent.kill()
    parent.wait()
    with open(job) as file:
        while time.monotonic() < give_up:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            time.sleep(0.05)
    pytest.fail("the job goes on")
