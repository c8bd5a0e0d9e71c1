"""The loop of every run, around a trainee that does next to nothing."""

import json
import os
import signal
import subprocess
import sys

import keras
import numpy as np
import pytest

from lemn_tf.loop import Interrupted, Run, run_loop
from lemn_tf.loop import Trainee as Base


class Trainee(Base):
    """Counts to six, by two; its one weight is the count, and four validates best."""

    def __init__(self, stop_at=None, can_settle=False):
        model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1, use_bias=False)])
        model.set_weights([np.zeros([1, 1])])
        super().__init__(model, {"update": 0})
        self.stop_at, self.can_settle = stop_at, can_settle
        self.sgd = keras.optimizers.SGD(0.1, momentum=0.9)
        self.sgd.build(model.trainable_variables)

    @property
    def optimizer(self):
        return self.sgd

    @property
    def finished(self):
        return self.position["update"] >= 6

    def advance(self):
        for _ in range(2 - self.position["update"] % 2):
            if self.position["update"] == self.stop_at:
                raise KeyboardInterrupt
            self.sgd.apply([np.full([1, 1], -1.0)], self.model.trainable_variables)
            self.position["update"] += 1
        count = self.position["update"]
        return {"update": count, "val_score": -abs(4 - count)}

    def rank(self, line):
        return (line["val_score"], 0.0) if line["update"] > 2 else None

    def where(self):
        return f"{self.position['update']} of 6"

    def settle(self):
        return self.can_settle

    @property
    def weight(self):
        return self.model.get_weights()[0].item()


def test_in_the_end_the_model_is_the_one_that_validated_best(tmp_path):
    trainee, shown = Trainee(), []
    standing = run_loop(trainee, Run(tmp_path, {}), shown.append)
    assert standing.best == (0, 0)
    assert [line["update"] for line in shown] == [2, 4, 6]
    assert [line.get("best") for line in shown] == [None, 0, 0]
    assert Run(tmp_path, {}).history() == shown
    saved = keras.saving.load_model(tmp_path / "model.keras", compile=False)
    assert saved.get_weights()[0].item() == trainee.weight
    alone = Trainee()
    run_loop(alone)  # and without a folder
    assert alone.weight == trainee.weight


@pytest.mark.parametrize(
    ("can_settle", "said"),
    [(True, r"after 3 of 6; saved in"), (False, r"after 3 of 6; saved as of 2 of 6 in")],
)
def test_ctrl_c_and_the_same_again(tmp_path, can_settle, said):
    whole = Trainee()
    run_loop(whole, Run(tmp_path / "whole", {}))
    with pytest.raises(Interrupted, match=said):
        run_loop(Trainee(3, can_settle), Run(tmp_path / "parts", {}))
    again = Trainee()
    standing = run_loop(again, Run(tmp_path / "parts", {}))
    assert again.weight == whole.weight
    ours, theirs = (Run(tmp_path / name, {}).load() for name in ("parts", "whole"))
    for name in set(theirs) - {"progress/seconds"}:
        np.testing.assert_array_equal(ours[name], theirs[name])
    assert standing.lines == len(Run(tmp_path / "parts", {}).history())


def test_ctrl_c_without_a_folder_is_ctrl_c():
    with pytest.raises(KeyboardInterrupt):
        run_loop(Trainee(3))


def test_lines_behind_the_checkpoint_are_written_again(tmp_path):
    with pytest.raises(Interrupted):
        run_loop(Trainee(4), Run(tmp_path, {}))
    run = Run(tmp_path, {})
    run.log({"update": 6, "killed": "before its checkpoint was written"})
    with open(tmp_path / "history.jsonl", "a") as file:
        file.write('{"upd')
    run_loop(Trainee(), run)
    assert [line["update"] for line in run.history()] == [2, 4, 6]
    assert "killed" not in (tmp_path / "history.jsonl").read_text()


def test_checkpoints_of_older_versions_are_read(tmp_path):
    """They have a single number for the best, and do not count the lines."""
    run = Run(tmp_path, {})
    with pytest.raises(Interrupted):
        run_loop(Trainee(4), run)
    arrays = run.load()
    del arrays["progress/lines"]
    run.save({**arrays, "progress/best": np.asarray(0.5)})
    standing = run_loop(Trainee(), run)
    assert (standing.lines, standing.best) == (3, (0.5,))


def test_other_settings_are_refused(tmp_path):
    Run(tmp_path, {"seed": 1, "slots": 5})
    Run(tmp_path, {"slots": 5, "seed": 1})
    with pytest.raises(ValueError, match=r"other settings \(policy, slots differ\)"):
        Run(tmp_path, {"seed": 1, "slots": 6, "policy": "fifo"})
    assert json.loads((tmp_path / "config.json").read_text()) == {"seed": 1, "slots": 5}


def test_a_setting_that_is_new_and_not_used_is_no_other_setting(tmp_path):
    Run(tmp_path, {"slots": 5})
    Run(tmp_path, {"slots": 5, "news": None})
    with pytest.raises(ValueError, match=r"made with other settings \(news, slots differ\)"):
        Run(tmp_path, {"slots": 6, "news": 1})


def test_sigterm_saves_like_ctrl_c(tmp_path):
    class Told(Trainee):
        def advance(self):
            if self.position["update"] == 4:
                os.kill(os.getpid(), signal.SIGTERM)
            return super().advance()

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted, match="saved"):
        run_loop(Told(), Run(tmp_path, {}))
    assert signal.getsignal(signal.SIGTERM) is before
    trainee = Trainee()
    run_loop(trainee, Run(tmp_path, {}))
    assert trainee.position["update"] == 6


def test_a_second_trainer_is_refused(tmp_path):
    run = Run(tmp_path, {})
    script = "import sys; from lemn_tf.loop import Run; Run(sys.argv[1], {})"
    command = [sys.executable, "-c", script, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert f"another process is training in {tmp_path}" in done.stderr
    assert run.load() is None
    del run


NOT_CHECKPOINTS = [
    b"",
    b"PK\x03\x04 torn",
    b"PK\x05\x06" + bytes(18),  # a zip archive of nothing
    b"not a zip",
]


@pytest.mark.parametrize("content", NOT_CHECKPOINTS)
def test_a_damaged_checkpoint_is_named(tmp_path, content):
    (tmp_path / "checkpoint.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"checkpoint\.npz is damaged .*: remove it to train"):
        Run(tmp_path, {}).load()


def test_an_array_is_no_checkpoint(tmp_path):
    with open(tmp_path / "checkpoint.npz", "wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(ValueError, match=r"checkpoint\.npz is damaged .*: remove it to train"):
        Run(tmp_path, {}).load()


def test_a_damaged_config_or_history_is_named(tmp_path):
    run = Run(tmp_path, {})
    for damaged in ('{"a": 1}\n{"a": }\n', '{"a": \n{"a": 1}\n'):
        (tmp_path / "history.jsonl").write_text(damaged)
        with pytest.raises(ValueError, match=r"history\.jsonl is damaged"):
            run.history()
    for broken in (b"{", b"\xff\xfe", b"[]"):
        (tmp_path / "config.json").write_bytes(broken)
        with pytest.raises(ValueError, match=r"config\.json is damaged"):
            Run(tmp_path, {})
    (tmp_path / "history.jsonl").write_bytes(b"\xff}\n")
    with pytest.raises(ValueError, match=r"history\.jsonl is damaged"):
        run.history()


def test_a_kill_before_the_first_checkpoint_leaves_no_line_twice(tmp_path):
    run = Run(tmp_path, {})
    run.log({"update": 2})  # the process is killed here
    run_loop(Trainee(), Run(tmp_path, {}))
    assert [line["update"] for line in run.history()] == [2, 4, 6]


@pytest.mark.slow
def test_large_buffers_are_used_again():
    """Freed memory is not given back to the system, so using it again costs no page faults."""
    program = """
import resource, sys
from lemn_tf.loop import hold_memory
if sys.argv[1] == "hold":
    hold_memory()
faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
bytearray(64_000_000)
before = faults()
for _ in range(4):
    bytearray(64_000_000)
print(faults() - before)
"""
    held, given_back = (
        int(
            subprocess.run(
                [sys.executable, "-c", program, how], capture_output=True, check=True
            ).stdout
        )
        for how in ("hold", "not")
    )
    assert held < 1000 < given_back
