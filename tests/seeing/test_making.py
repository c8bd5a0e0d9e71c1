"""What a report says of how it was made."""

import json

import keras

from lemn_tf.loop import history
from lemn_tf.seeing.making import made


def test_a_run_and_a_preset(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"policy": "st-lemn", "slots": 5, "seed": 3}))
    lines = [json.dumps({"val_accuracy": 0.5, "seconds": 12.3}), '{"torn']
    (tmp_path / "history.jsonl").write_text("\n".join(lines))
    assert history(tmp_path) == [{"val_accuracy": 0.5, "seconds": 12.3}]
    told = made("lemn report", [tmp_path, "babi-noisy-st-lemn-5"], 7.0)
    assert told[f"run {tmp_path}"] == "policy st-lemn, slots 5, seed 3"
    assert told[f"training of {tmp_path}"] == "12 seconds"
    assert told["run babi-noisy-st-lemn-5"].startswith("preset: ")
    assert f"keras {keras.__version__}" in told["versions"]
    assert (told["command"], told["time"]) == ("lemn report", "7 seconds")
    assert history("babi-noisy-st-lemn-5") == []
