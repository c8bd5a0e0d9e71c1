"""The paper's table on TriviaQA: what is planned, trained once, and told."""

import json
import shutil
from pathlib import Path

import pytest

from lemn_tf.experiments import triviaqa_table as table
from lemn_tf.experiments.documents import Settings


@pytest.fixture
def official(towns, tmp_path) -> Path:
    """A folder of question files with the official names."""
    folder = tmp_path / "qa"
    folder.mkdir()
    for name in (table.TRAIN, table.SIDES["distant"]):
        shutil.copy(towns.qa, folder / name)
    return folder


def planned(towns, official, **more) -> table.Plan:
    base = Settings(
        (str(official / table.TRAIN),), (towns.evidence,), towns.vectors, slots=3, updates=4
    )
    return table.Plan(official, Path(towns.evidence), base, **more)


def test_what_is_not_there_is_said(towns, official):
    with pytest.raises(ValueError, match=r"unknown rows \['best'\]; known are fifo"):
        planned(towns, official, rows=("fifo", "best"))
    assert list(planned(towns, official).sides) == ["distant"]
    shutil.copy(towns.qa, official / table.SIDES["verified"])
    assert list(planned(towns, official).sides) == ["distant", "verified"]
    (official / table.TRAIN).unlink()
    with pytest.raises(FileNotFoundError, match=r"qa: expected .* wikipedia-train\.json"):
        planned(towns, official)


def test_the_table_shows_both_denominators_and_the_paper(tmp_path):
    (tmp_path / "triviaqa").mkdir()
    score = {"exact_match": 12.5, "f1": 20.0, "answer_in_memory": 50.0}
    told = {**score, "held": {**score, "exact_match": 25.0, "questions": 4}}
    told |= {"questions": 8, "documents": 9, "missing_documents": 1}
    for row in ("st-lemn", "overlap"):
        (tmp_path / "triviaqa" / f"distant-{row}.json").write_text(json.dumps(told))
    text = table.write(tmp_path).read_text()
    assert "## Distant: 8 questions, 9 documents, 1 missing" in text
    line = "| st-lemn | 12.50 (25.00) | 20.00 (20.00) | 50.00 (50.00) | 45.21 | 49.04 |"
    assert line in text
    assert "| overlap | 12.50 (25.00) | 20.00 (20.00) | 50.00 (50.00) |  |  |" in text
    assert "Verified" not in text


@pytest.mark.slow
def test_every_row_is_trained_over_one_reader_and_once(towns, official, tmp_path):
    said: list[str] = []
    plan = planned(towns, official, rows=("overlap", "s-lemn"))
    path = table.reproduce(plan, tmp_path / "runs", tmp_path / "results", said.append)
    assert sorted(each.name for each in (tmp_path / "runs").iterdir()) == ["fifo", "s-lemn"]
    assert any("verified-wikipedia-dev.json: not found, left out" in line for line in said)
    assert sum("reader: taken from" in line for line in said) == 1
    assert "| s-lemn |" in path.read_text()
    again: list[str] = []
    table.reproduce(plan, tmp_path / "runs", tmp_path / "results", again.append)
    assert len(again) == 1  # the file that is missing
