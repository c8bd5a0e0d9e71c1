"""`lemn evaluate` and `lemn compare`: what they ask of the runs they are given."""

import json

import pytest

from lemn_tf.commands import evaluate


def test_questions_in_the_stream_as_in_training(tmp_path):
    for name, stored in (("with", True), ("without", False)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps({"store_questions": stored}))
        (tmp_path / name / "model.keras").touch()
    ours, other = str(tmp_path / "with"), str(tmp_path / "without")
    assert evaluate.stores_questions([ours, ours + "/model.keras"], None) is True
    assert evaluate.stores_questions([other, "babi-noisy-st-lemn-5"], None) is False
    assert evaluate.stores_questions([ours, other], False) is False
    with pytest.raises(ValueError, match="say --store-questions or --no-store-questions"):
        evaluate.stores_questions([ours, other], None)


def test_a_column_for_every_size():
    rows = [
        {"name": name, "slots": slots, "error_rate": error / slots}
        for slots in (3, 5, 10)
        for name, error in (("fifo", 90.0), ("mine", 30.0))
    ]
    table = evaluate.sizes(rows, "F: error %")
    assert [column.header for column in table.columns] == [
        "model",
        "3 slots",
        "5 slots",
        "10 slots",
    ]
    assert [list(column.cells) for column in table.columns[:3]] == [
        *(["fifo", "mine"], ["30.0", "10.0"], ["18.0", "6.0"]),
    ]
