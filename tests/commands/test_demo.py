"""`lemn demo`: what it shows and what it leaves."""

import json

import pytest

from lemn_tf import cli


@pytest.mark.slow
def test_demo_and_what_it_leaves(tmp_path, capsys):
    out = str(tmp_path / "demo")
    short = ["--episodes", "256", "--shards", "1", "--out", out]
    assert cli.main(["demo", *short]) == 0
    shown = capsys.readouterr().out
    for expected in (
        "fifo",
        "lru",
        "oracle",
        "trained",
        "Where is",
        "report.html",
        "The run is in",
    ):
        assert expected in shown
    run = tmp_path / "demo" / "noisy-st-lemn-5-seed1"
    data = tmp_path / "demo" / "data" / run.name / "noisy_test.txt"
    assert list((run / "logs").iterdir())
    assert "lemn demo" in (run / "report.html").read_text()
    assert cli.main(["evaluate", str(run), "--data", str(data), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert {"error_rate", "questions", "support_recall", "policy", "slots"} <= set(result)
    assert result["questions"] == 1000
    assert cli.main(["compare", str(run), "--data", str(data), "--slots", "3,5", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["slots"] for row in rows} == {3, 5}
    oracle = [row for row in rows if row["name"] == "oracle"]
    assert all(row["support_recall"] == 100 for row in oracle if row["slots"] == 5)
