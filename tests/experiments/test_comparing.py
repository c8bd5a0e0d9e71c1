"""A comparison by jobs: the rows of one process, and nothing twice."""

import functools
import json

import pytest

from lemn_tf import evaluation
from lemn_tf.experiments import babi, comparing


@pytest.fixture(scope="module")
def table(files, tmp_path_factory):
    stories = babi.Stories(files["valid"])
    settings = babi.BabiSettings("", "", units=4, slots=2)
    model = babi.build(settings, stories.vocabulary, stories.sentence_length)
    models = {"fifo": model.with_policy("fifo"), "runs/mine": model}
    out = tmp_path_factory.mktemp("compare")
    return comparing.ScoreTable(out, models, files["valid"], False, ["compare", "runs/mine"])


@pytest.mark.slow
def test_the_rows_are_those_of_one_process(table, files):
    cells = table.cells([2, 3])
    assert [cell.name for cell in cells[:3]] == [
        *("fifo_slots=2", "runs-mine_slots=2", "oracle_slots=2"),
    ]
    assert table.process(cells[1]) == ["compare", "runs/mine", "--cell", "runs-mine_slots=2"]
    for cell in cells:
        table.run_cell(cell)
    expected = []
    for slots in (2, 3):
        score = functools.partial(babi.score, path=files["valid"], slots=slots)
        expected += evaluation.compare(table.models, score)
    assert table.rows(cells) == expected
    assert table.unfinished(cells) == []


def test_a_score_of_another_model_or_of_other_stories_is_made_again(table, files):
    cell = comparing.ScoreCell("runs/mine", 2)
    table.run_cell(cell)
    record = json.loads(table.result(cell).read_text())
    assert table.is_current(cell, record)
    model = table.models["runs/mine"]
    other = model.with_policy("st-lemn")  # with weights of its own
    models = {**table.models, "runs/mine": other}
    assert not comparing.ScoreTable(table.out, models, files["valid"], False, []).is_current(
        cell, record
    )
    changed = comparing.ScoreTable(table.out, table.models, files["test"], False, [])
    assert not changed.is_current(cell, record)
