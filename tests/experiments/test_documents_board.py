"""A training over documents in TensorBoard."""

import tensorflow as tf

from lemn_tf.experiments.documents_board import BoardedRun

LINES = [
    {"stage": "reader", "epoch": 0, "loss": 3.0},
    {"stage": "reader", "epoch": 1, "loss": 2.0},
    {"stage": "policy", "answer_in_memory": 0.5},
]


def test_stages_are_phases_of_one_curve(tmp_path):
    run = BoardedRun(tmp_path, {"slots": 3})
    for line in LINES:
        run.log(line)
    run.board.close()
    assert run.history() == LINES
    (path,) = (tmp_path / "logs").iterdir()
    found = {}
    for event in tf.compat.v1.train.summary_iterator(str(path)):
        for value in event.summary.value:
            found.setdefault(value.tag, []).append((event.step, tf.make_ndarray(value.tensor)))
    assert found["training/loss"] == [(1, 3.0), (2, 2.0)]
    assert found["training/answer_in_memory"] == [(3, 0.5)]
    assert [step for step, _ in found["phase"]] == [0, 2]
    assert b"policy begins at step 2" in found["phases"][1][1]
    assert "training/epoch" not in found


def test_a_run_that_goes_on_counts_on(tmp_path):
    first = BoardedRun(tmp_path, {"slots": 3})
    first.log(LINES[0])
    first._lock.close()
    second = BoardedRun(tmp_path, {"slots": 3})
    assert second.stages == ["reader"]
