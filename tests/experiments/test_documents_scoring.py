"""Scores of documents: how they are drawn again, merged and counted."""

import json
from pathlib import Path

import numpy as np
import pytest

from lemn_tf.experiments import documents_scoring as scoring
from lemn_tf.experiments import triviaqa_scoring as official
from tests.experiments.conftest import span_model


def answered(
    question: int, document: int, text: str, confidence: float, **more
) -> scoring.Answered:
    told = {"place": (0, 1), "slot": 0, "in_memory": False, "held": True, **more}
    return scoring.Answered(question, document, text, confidence=confidence, **told)


def test_marks_count_missing_answers():
    truths = {"a": ["rome"], "b": ["oslo"], "c": ["bern"]}
    answers = {
        "a": [answered(0, 4, "Rome", 0.5, in_memory=True)],
        "b": [answered(1, 7, "Bergen", 0.5, held=False)],
    }
    marks = scoring.mark(truths, {"a": "Rome", "b": "Bergen"}, answers)
    np.testing.assert_array_equal(marks.exact, [1, 0, 0])
    np.testing.assert_array_equal(marks.document, [4, 7, -1])
    told = scoring.summary(marks)
    assert told["questions"] == 3
    assert told["exact_match"] == told["answer_in_memory"] == 100 / 3
    assert told["held"]["questions"] == 1
    assert told["held"]["exact_match"] == 100.0


def test_marks_of_each_document():
    truths = {key: ["rome"] for key in "abcd"}
    said = {"a": "Rome", "b": "Oslo", "c": "Rome", "d": "Rome"}
    answers = {
        key: [answered(0, n, said[key], 1.0)] for key, n in zip("abd", (5, 2, 5), strict=True)
    }
    parts = scoring.mark(truths, said, answers).by_document()
    assert {n: scoring.summary(part)["exact_match"] for n, part in parts.items()} == {2: 0, 5: 100}
    assert parts[5].keys == ("a", "d")


HEADER = {"Domain": "Web", "VerifiedEval": False}


def web(towns) -> list[dict]:
    """Two questions, the first of them verified and about two documents and one that is missing."""
    records = json.loads(Path(towns.qa).read_text())["Data"][:2]
    records[0]["SearchResults"] = [{"Filename": "wikipedia/DOC3.txt"}, {"Filename": "gone.txt"}]
    records[0]["QuestionPartOfVerifiedEval"] = True
    records[0]["EntityPages"][0]["DocPartOfVerifiedEval"] = True
    return records


KEYS = ["q0_0--doc0.txt", "q0_0--wikipedia/DOC3.txt", "q0_1--doc0.txt"]


def test_web_answers_are_by_question_and_document(towns, tmp_path):
    qa, said = tmp_path / "web.json", tmp_path / "said.json"
    qa.write_text(json.dumps({"Data": web(towns), **HEADER}))
    result = scoring.score(span_model(towns, "fifo"), qa, towns.evidence)
    assert sorted(result.predictions) == KEYS
    assert result.marks.keys == (*KEYS[:2], "q0_0--gone.txt", KEYS[2])
    assert result.told["missing_documents"] == 1
    assert result.told["questions"] == 4
    said.write_text(json.dumps(result.predictions))
    assert result.told["f1"] == official.score_files(qa, said).f1


@pytest.mark.slow
def test_verified_and_unanswered_web_files(towns, tmp_path):
    qa, model, records = tmp_path / "web.json", span_model(towns, "fifo"), web(towns)
    qa.write_text(json.dumps({"Data": records, **HEADER, "VerifiedEval": True}))
    assert list(scoring.score(model, qa, towns.evidence).predictions) == KEYS[:1]
    for record in records:
        del record["Answer"]
    qa.write_text(json.dumps({"Data": records, **HEADER}))
    unmarked = scoring.score(model, qa, towns.evidence)
    assert unmarked.marks is None
    assert sorted(unmarked.predictions) == KEYS


def test_bootstrap_draws_documents_not_questions():
    ours = np.array([1.0, 1.0, 1.0, 1.0, 0.0, 0.0])
    theirs = np.zeros(6)
    mean, low, high = scoring.bootstrap(ours, theirs, np.array([0, 0, 0, 0, 1, 1]))
    assert mean == pytest.approx(66.667, abs=1e-3)
    assert (low, high) == (0.0, 100.0)
    mean, low, high = scoring.bootstrap(ours, theirs, np.arange(6))
    assert 0.0 < low < mean < high
