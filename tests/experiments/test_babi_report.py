"""The report on the bAbI tables, and the choice of presets."""

import json

import tensorflow as tf

from lemn_tf.experiments import babi, babi_report
from lemn_tf.experiments.babi_table import BabiTable


def copy_presets(folder):
    table = BabiTable(folder, folder)
    return babi_report.copy_presets(table, folder / "presets")


def test_the_preset_is_the_run_that_validates_best(files, tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "noisy_valid.txt").write_bytes(files["valid"].read_bytes())
    words = babi.Stories(files["train"]).vocabulary
    for seed in (0, 1):
        folder = tmp_path / "runs" / f"st-lemn-noisy-5-seed{seed}"
        folder.mkdir(parents=True)
        model = babi.build(babi.BabiSettings("", ""), words, 7)
        guess = words.lookup(["kitchen" if seed else "john"])  # one is right now and then
        model.reader.bias.assign(9.0 * tf.one_hot(guess[0], words.size))
        model.save(folder / "model.keras")
        record = {"row": "st-lemn", "variant": "noisy", "slots": 5, "seed": seed}
        (tmp_path / "babi").mkdir(exist_ok=True)
        (tmp_path / "babi" / f"{seed}.json").write_text(json.dumps(record))
    monkeypatch.setattr(babi_report, "RENAMINGS", 2)
    ((target, errors),) = copy_presets(tmp_path).items()
    assert target.name == "babi-noisy-st-lemn-5.keras"
    one, other = errors.values()
    assert one == 100 > other
    assert target.read_bytes() == (folder / "model.keras").read_bytes()
    (folder / "model.keras").unlink()  # one of two runs is elsewhere: no choice
    assert not copy_presets(tmp_path)


def test_the_report_shows_all_seeds(tmp_path):
    folder = tmp_path / "babi"
    folder.mkdir()
    for seed, (valid, test) in enumerate([(3.0, 2.0), (1.0, 4.0)]):
        record = {
            "row": "st-lemn",
            "variant": "noisy",
            "slots": 5,
            "seed": seed,
            "scores": {
                "valid": {"error_rate": valid, "generated": False},
                "test": {"error_rate": test, "generated": True},
            },
            "settings": {"episodes": {"policy": 1000, "polish": 500 * (1 + seed)}},
            "seconds": 1800,
        }
        (folder / f"{seed}.json").write_text(json.dumps(record))
    babi_report.write(tmp_path)
    text = (tmp_path / "babi.md").read_text()
    assert "**2.0** (by validation 4.0, mean 3.0: 2.0, 4.0)" in text
    assert "noisy test" in text
    assert "| st-lemn | - | 1.5, 2 | - | - | - |" in text
    assert "4.0 beats the paper's 11.7" in text
    assert "2 trainings, 1.0 hours" in text
