"""The exam as a table: what is in it, how a cell is trained, and the report."""

import importlib
import json
import sys
from unittest import mock

import pytest

from lemn_tf.experiments import worlds_table
from lemn_tf.experiments.worlds_cells import EXAMS, ROWS, WorldCell, plan
from lemn_tf.experiments.worlds_table import WorldTable, regret_ratio, write_report

FIRST, PREVIOUS = list(EXAMS)[:2]


def test_one_recipe_for_every_world_and_row(tmp_path):
    table = WorldTable(tmp_path, tmp_path)
    settings = [table.settings(cell) for cell in plan(EXAMS, ROWS, seeds=1)]
    assert len(settings) == len(EXAMS) * len(ROWS)
    recipes = {json.dumps({**one.config()["recipe"], "frames": 0}) for one in settings}
    assert len(recipes) == 1
    assert {one.units for one in settings} == {64}


def test_a_cell_leaves_its_result_and_the_report_shows_it(tmp_path, monkeypatch):
    monkeypatch.setitem(EXAMS, "CartPole-v1", EXAMS[FIRST]._replace(slots=2))
    real = worlds_table.WorldSettings
    small = {"units": 8, "validation": 2, "longest": 6}
    monkeypatch.setattr(worlds_table, "WorldSettings", lambda *a, **k: real(*a, **k, **small))
    table = WorldTable(tmp_path / "out", tmp_path / "results", frames=20)
    table.run_cell(WorldCell("CartPole-v1", "fifo", 1))
    told = json.loads((tmp_path / "results" / "worlds" / "CartPole-v1-fifo-seed1.json").read_text())
    assert told["scores"]["slots"] == 2
    assert told["command"].startswith(
        "lemn reproduce worlds --envs CartPole-v1 --rows fifo --seeds"
    )
    assert table.is_current(WorldCell("CartPole-v1", "fifo", 1), told)
    assert not table.is_current(WorldCell("CartPole-v1", "lifo", 1), told | {"recipe": {}})
    page = write_report(tmp_path / "results").read_text()
    score = f"{told['scores']['return']:.2f}"
    assert f"| CartPole-v1 | 2 | -, - | -, {score} | -, - | -, - |" in page
    assert f"| {PREVIOUS} | 6 | -, - | -, - | -, - | -, - |" in page


def test_bsuite_counts_the_mistakes_of_its_first_10000_episodes():
    lines = [{"update": 100, "return": 0.0}, {"update": 250, "return": 1.0}]
    assert regret_ratio(lines, 32) == pytest.approx(3200 / 8000)  # all there is
    lines += [{"update": 400, "return": -1.0}]
    assert regret_ratio(lines, 32) == pytest.approx((3200 + 2 * 2000) / 10000)


def test_the_regret_is_that_of_bsuite_itself(monkeypatch):
    pytest.importorskip("bsuite", reason="bsuite is not installed; see docs/worlds.md")
    pandas = pytest.importorskip("pandas")
    monkeypatch.setitem(sys.modules, "plotnine", mock.MagicMock())  # it would draw
    analysis = importlib.import_module("bsuite.experiments.memory_len.analysis")
    for right in (0.6, 0.65):
        lines = [{"update": 400, "return": 2 * right - 1}]
        rows = {"episode": [10_000], "total_perfect": [10_000 * right], "memory_length": [5]}
        told = pandas.DataFrame(rows)
        mine = regret_ratio(lines, 32)
        theirs = analysis.memory_preprocess(told)["regret_ratio"][0] / 10_000
        assert mine == pytest.approx(theirs)
        assert analysis.score(told) == (mine < worlds_table.LEARNED)


def test_the_report_has_the_score_of_bsuite(tmp_path):
    lens = [env for env in EXAMS if env.startswith("bsuite/memory_len/")]
    (tmp_path / "worlds").mkdir()
    for env, ratio in zip(lens, (0.2, 0.5, 0.9), strict=True):
        told = {"env": env, "row": "fifo", "seed": 0, "scores": {"return": 0.5}, "frames": 9}
        told |= {"regret_ratio": ratio, "training_seconds": 1.0, "commit": "c", "command": "x"}
        (tmp_path / "worlds" / f"{env.replace('/', '-')}.json").write_text(json.dumps(told))
    page = write_report(tmp_path).read_text()
    assert "| memory_len | - | 0.67 | - | - |" in page
    assert "| memory_size | - | - | - | - |" in page
