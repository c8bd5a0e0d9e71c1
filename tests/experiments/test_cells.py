"""A table of cells: processes, order, what failed, what is told, and no cell twice."""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
import sys
import time
import types

import pytest

from lemn_tf.experiments import cells, scheduling

SCRIPT = """
import json, os, sys
_, folder, _, name = sys.argv[1:]
print("began", name)
if name.startswith("slow"):
    import signal, time
    def save(*_):
        time.sleep(0.5)
        print("saved", flush=True)
        sys.exit(130)
    signal.signal(signal.SIGINT, save)
    print("ready", flush=True)
    time.sleep(60)
if name.startswith("bad"):
    sys.exit("no such luck")
if not name.startswith("silent"):
    threads = os.environ.get("TF_NUM_INTRAOP_THREADS", "")
    record = {"name": name, "threads": threads, "flags": os.environ["TF_XLA_FLAGS"]}
    with open(os.path.join(folder, name + ".json"), "w") as file:
        json.dump(record, file)
"""


@dataclasses.dataclass(frozen=True)
class Cell:
    name: str
    first: str | None = None


class Counting(cells.CellTable):
    """A script takes the place of `lemn`, and a line in a file that of a training."""

    version = 1

    def train(self, cell, folder):
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / "history.jsonl", "a") as file:
            file.write('{"seconds": 2.5, "score": 7}\n')

    def record(self, cell, folder, history):
        return {"version": self.version, "scores": [line["score"] for line in history]}

    def summary(self, record):
        return f"threads {record['threads'] or 'all'}"

    def command(self, cell):
        return ["count"]

    def places(self, cell):
        return [str(self.results)]

    def is_current(self, cell, record):
        return record.get("version", 1) == self.version

    def is_ready(self, cell):
        return cell.first is None or (self.results / f"{cell.first}.json").exists()


@pytest.fixture
def table(tmp_path):
    return Counting(tmp_path / "out", tmp_path / "results")


@pytest.fixture
def run(table, monkeypatch):
    """Runs cells with a script in the place of `lemn`."""
    monkeypatch.setattr(scheduling, "LEMN", (sys.executable, "-c", SCRIPT))
    table.results.mkdir()

    def run(todo, jobs=2):
        with scheduling.Processes(jobs, table.out / "xla") as scheduler:
            return table.run(todo, scheduler)

    return run


def test_a_cell_is_trained_once(table):
    cell = Cell("one")
    assert not table.is_done(cell)
    table.run_cell(cell)
    assert table.is_done(cell)
    record = json.loads(table.result(cell).read_text())
    assert record["scores"] == [7]
    assert record["training_seconds"] == 2.5
    assert {"seconds", "commit"} <= set(record)


def test_a_cell_with_other_settings_is_trained_afresh(table):
    cell = Cell("one")
    table.run_cell(cell)
    for version in (2, 3):
        table.version = version
        assert not table.is_done(cell)
        table.run_cell(cell)
        assert json.loads(table.result(cell).read_text()) | {"seconds": 0} == {
            "version": version,
            "scores": [7],
            "training_seconds": 2.5,
            "seconds": 0,
            "commit": cells.commit(),
            "command": "lemn count",
        }
    old = [table.folder(cell).with_suffix(f".old{number}") for number in (0, 1)]
    assert all(folder.is_dir() for folder in old)
    cells.put_aside(table.out / "nothing")  # nothing to do


def test_runs_in_order_of_need_and_tells_each_result(run, tmp_path, capsys):
    done = [Cell("one"), Cell("two"), Cell("three")]
    for cell in done:
        (tmp_path / "results" / f"{cell.name}.json").write_text("{}")
    assert run([*done, Cell("late", first="early"), Cell("early")], jobs=1) == []
    lines = capsys.readouterr().err.splitlines()
    assert lines.pop(0).startswith("5 trainings, 3 have results; 2 to run, 1 at a time, ")
    assert [line.split(" (")[0] for line in lines] == [
        "[4/5] early: threads all",
        "[5/5] late: threads all",
    ]
    assert "about 0 min left" in lines[-1]
    assert (tmp_path / "out" / "logs" / "late.log").read_text() == "began late\n"


def test_processes_side_by_side_keep_to_one_thread_and_share_programs(run, tmp_path, monkeypatch):
    monkeypatch.setenv("TF_XLA_FLAGS", "--mine=1")
    assert run([Cell("one"), Cell("two")], jobs=2) == []
    record = (tmp_path / "results" / "two.json").read_text()
    assert '"threads": "1"' in record
    assert f"--mine=1 --tf_xla_persistent_cache_directory={tmp_path / 'out' / 'xla'}" in record


def test_names_what_failed_and_what_waited_for_it(run, capsys):
    todo = [Cell("bad"), Cell("silent"), Cell("good"), Cell("never", first="bad")]
    assert sorted(run(todo)) == ["bad", "never", "silent"]
    told = capsys.readouterr().err
    assert "bad failed: see" in told
    assert "silent failed: see" in told
    assert "good: threads 1" in told


def test_lets_cells_save_when_it_is_stopped(run, tmp_path, monkeypatch, capsys):
    log = tmp_path / "out" / "logs" / "slow.log"
    popen, started = subprocess.Popen, []
    monkeypatch.setattr(
        scheduling.subprocess,
        "Popen",
        lambda *a, **k: started.append(popen(*a, **k)) or started[-1],
    )

    def press(_):
        """Ctrl-C once the cell runs: it reaches both processes."""
        if "ready" in log.read_text():
            started[0].send_signal(signal.SIGINT)
            raise KeyboardInterrupt

    monkeypatch.setattr(cells, "time", types.SimpleNamespace(time=time.time, sleep=press))
    with pytest.raises(KeyboardInterrupt):
        run([Cell("slow")])
    assert "saved" in log.read_text()
    assert "the same command again goes on" in capsys.readouterr().err


def test_the_plan_is_told_first(table):
    assert table.forecast(5, 0, 2) == "5 trainings, 5 have results"
    said = table.forecast(5, 4, 2)
    assert said.startswith("5 trainings, 1 have results; 4 to run, 2 at a time, logs in ")
    assert said.endswith("an estimate of the time follows after the first")
    table.results.mkdir()
    for name, seconds in (("a", 1800), ("b", 5400)):
        (table.results / f"{name}.json").write_text(json.dumps({"seconds": seconds}))
    assert "; about 2.0 hours, if they take as long as those in " in table.forecast(5, 4, 2)
