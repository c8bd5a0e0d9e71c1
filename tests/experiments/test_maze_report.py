"""The report on the maze table, and presets."""

import json

import keras
import numpy as np
import pytest

from lemn_tf import runs
from lemn_tf.experiments.maze_report import SHIPPED, copy_presets, write_report
from lemn_tf.navigation.navigator import Navigator


def record(env, reader, policy, by):
    group = "per_length" if env == "imaze" else "per_split"
    return {
        "env": env,
        "reader": reader,
        "policy": policy,
        "seed": 0,
        "row": f"{env}-{reader}-{policy}-{4 if env == 'imaze' else 5}",
        "scores": {
            group: {name: {"success_rate": rate} for name, rate in by.items()},
            "temperature": 0.25,
        },
        "frames": 1000,
        "training_seconds": 60.0,
        "command": "lemn reproduce maze --envs imaze",
        "commit": "abc",
    }


def test_the_report_shows_every_result(tmp_path):
    with pytest.raises(ValueError, match="found none"):
        write_report(tmp_path)
    (tmp_path / "maze").mkdir()
    for name, one in {
        "a": record("imaze", "mqn", "st-lemn", {"4": 100.0, "200": 50.0}),
        "b": record("single-indicator", "frmqn", "fifo", {"test": 90.0, "large": 80.0}),
    }.items():
        (tmp_path / "maze" / f"{name}.json").write_text(json.dumps(one))
    figure, imaze, maze = write_report(tmp_path)
    assert [path.name for path in (figure, imaze, maze)] == ["imaze.svg", "imaze.md", "maze.md"]
    assert "| mqn st-lemn, seed 0 | 100 | 50 | 1,000 | 1 |" in imaze.read_text()
    assert "- `lemn reproduce maze --envs imaze` (commit abc)" in imaze.read_text()
    assert "| 90.0 | 80.0 | 84.3 | 91.2 | 0.25 |" in maze.read_text()
    assert "Not run: mqn im-lemn, mqn s-lemn, mqn fifo, frmqn st-lemn, " in imaze.read_text()
    drawn = figure.read_bytes()
    for text in (b"mqn st-lemn", b"200", b"length"):
        assert text in drawn
    write_report(tmp_path)
    assert figure.read_bytes() == drawn


def test_a_run_of_another_kind_says_so(tmp_path):
    (tmp_path / "maze").mkdir()
    one = record("single-indicator", "frmqn", "st-lemn", {"test": 90.0, "large": 80.0})
    one["label"] = "generated maps only"
    (tmp_path / "maze" / "a.json").write_text(json.dumps(one))
    (maze,) = write_report(tmp_path)
    assert "| frmqn st-lemn, generated maps only, seed 0 | 90.0 | 80.0 |" in maze.read_text()


def test_the_best_agent_becomes_the_preset(tmp_path):
    row = SHIPPED[0]
    (tmp_path / "maze").mkdir()
    for seed, best in ((0, 90.0), (1, 100.0)):
        keras.utils.set_random_seed(seed)
        agent = Navigator("mqn", 3, "st-lemn", units=6, width=4, filters=(2, 3))
        folder = tmp_path / f"{row}-seed{seed}"
        folder.mkdir(parents=True)
        agent.save(folder / "model.keras")
        result = json.dumps({"best_validation": best, "seed": seed})
        (tmp_path / "maze" / f"{row}-seed{seed}.json").write_text(result)
    written = copy_presets(tmp_path, tmp_path, tmp_path / "presets")
    assert [path.name for path in written] == [f"{row}.keras"]
    for kept, given in zip(runs.load(written[0]).get_weights(), agent.get_weights(), strict=True):
        np.testing.assert_allclose(kept, given, atol=1e-3)
