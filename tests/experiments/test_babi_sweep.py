"""A sweep: its grid, its settings, its report."""

import json

import pytest

from lemn_tf.experiments import babi_grid, babi_sweep, babi_table


def test_values_become_settings(tmp_path):
    table = babi_sweep.SweepTable(tmp_path, "noisy", {"reader": 64})
    values = {"entropy": [0.05, 0.1], "slots": [5, 10], "episodes": [1000]}
    cells = babi_grid.grid(values, seeds=2)
    for cell in cells:
        cell.check(table.lengths)
    assert len({cell.name for cell in cells}) == 8
    settings = table.settings(cells[3])
    assert (settings.slots, settings.seed) == (10, 1)
    policy = settings.phases()[-1]
    assert policy.entropy == 0.05
    assert sum(phase.episodes for phase in settings.phases() if phase.objectives) == 1000
    assert settings.episodes["reader"] == 64


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("colour", "1", "unknown parameter 'colour'; known are"),
        ("slots", "many", "slots: expected int of at least 1, got 'many'"),
        ("entropy", "nan", "entropy: expected float of at least 0, got 'nan'"),
        ("rename", "2", "rename: expected bool, got '2'"),
    ],
)
def test_bad_values_are_refused(name, text, said):
    with pytest.raises(ValueError, match=said):
        babi_grid.parsed(name, text)


def test_the_report_shows_all_seeds_best_in_validation_first(tmp_path):
    table = babi_sweep.SweepTable(tmp_path, "noisy", {})
    cells = babi_grid.grid({"slots": [5, 10]}, seeds=2)
    errors = {5: (30.0, 20.0), 10: (2.0, 4.0)}
    table.results.mkdir()
    for cell in cells:
        error = errors[dict(cell.values)["slots"]][cell.seed]
        score = {"error_rate": error, "generated": True}
        record = {
            "values": dict(cell.values),
            "seed": cell.seed,
            "scores": {"valid": score, "test": score},
            "settings": babi_table.told(table.settings(cell)),
            "seconds": 60,
        }
        table.result(cell).write_text(json.dumps(record))
    page, data = table.report(cells)
    assert [row["valid"] for row in json.loads(data.read_text())] == [[2.0, 4.0], [30.0, 20.0]]
    assert "| 10 | 3.00 | 2.0, 4.0 |" in page.read_text()
    assert "generated test stories" in page.read_text()
