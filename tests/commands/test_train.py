"""`lemn train babi` on stories of three facts: what it leaves, and what `lemn evaluate` says."""

import itertools
import json

import keras
import pytest
import tensorflow as tf

from lemn_tf import cli

PLACES = ("garden", "kitchen", "office")
STORY = """\
1 Mary went to the {}.
2 John went to the {}.
3 Sandra went to the {}.
4 Where is {}?\t{}\t{}
"""


@pytest.fixture
def stories(tmp_path):
    """A file of stories."""
    path = tmp_path / "stories.txt"
    asked = itertools.cycle(enumerate(("Mary", "John", "Sandra")))
    with open(path, "w") as file:
        for places in itertools.product(PLACES, repeat=3):
            index, person = next(asked)
            file.write(STORY.format(*places, person, places[index], index + 1))
    return str(path)


@pytest.fixture
def _eagerly():
    """So few updates are done before a graph is traced."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.mark.usefixtures("_eagerly")
def test_a_model_is_trained_and_scored(stories, tmp_path, capsys):
    run = tmp_path / "run"
    command = ["train", "babi", "--train", stories, "--valid", stories, "--out", str(run)]
    command += ["--policy", "s-lemn", "--slots", "2", "--units", "4", "--shards", "1", "--no-room"]
    command += ["--episodes", "64", "--phases", "linear start=32,reader=32"]
    assert cli.main(command) == 0
    said = capsys.readouterr()
    assert said.out == f"best model: {run / 'model.keras'}\n"
    assert "polish: 32 of 32 episodes" in said.err
    files = {path.name for path in run.iterdir()}
    assert {"config.json", "history.jsonl", "checkpoint.npz", "model.keras", "logs"} <= files
    # One file of the first attempt at a reader, which failed, and one of what was made of it.
    logs = list((run / "logs").iterdir())
    steps = {e.step for path in logs for e in tf.compat.v1.train.summary_iterator(str(path))}
    assert len(logs) == 2
    assert {1, 2, 3, 4} <= steps  # an update in each phase, counted on
    lines = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    assert [line["phase"] for line in lines] == ["linear start", "reader", "policy", "polish"]
    assert json.loads((run / "config.json").read_text())["policy"] == "s-lemn"
    model = keras.saving.load_model(run / "model.keras", compile=False)
    assert (model.memory.policy.name, model.memory.slots) == ("s-lemn", 2)

    assert cli.main(["evaluate", str(run), "--data", stories, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["questions"], result["labelled"], result["slots"]) == (27, 27, 2)
    best = max(line["val_accuracy"] for line in lines[2:])
    assert result["error_rate"] == pytest.approx(100 * (1 - best), abs=0.01)

    assert cli.main(command) == 0  # nothing is left to train
    again = (run / "history.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in again] == lines


@pytest.mark.usefixtures("_eagerly")
def test_ctrl_c_says_how_to_go_on(stories, tmp_path, capsys, monkeypatch):
    def stop(self, batch, logs=None):
        raise KeyboardInterrupt

    monkeypatch.setattr("lemn_tf.commands.progress.Bar.on_train_batch_end", stop)
    command = ["train", "babi", "--train", stories, "--valid", stories]
    command += ["--policy", "fifo", "--units", "4", "--shards", "1", "--phases", "linear start=64"]
    assert cli.main([*command, "--out", str(tmp_path / "run")]) == 130
    said = capsys.readouterr().err
    assert "lemn: stopped after update 1 of 2 in phase 'linear start'; saved in" in said
    assert "run the same command again to go on" in said
