"""Scores of documents: how they are drawn again, merged and counted."""

import numpy as np
import pytest

from lemn_tf.experiments import documents_scoring as scoring
from lemn_tf.model import StreamReader
from lemn_tf.readers import MemN2N


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
    assert told["exact_match"] == told["answer_in_memory"] == 33.333
    assert told["held"]["questions"] == 1
    assert told["held"]["exact_match"] == 100.0


def test_bootstrap_draws_documents_not_questions():
    ours = np.array([1.0, 1.0, 1.0, 1.0, 0.0, 0.0])
    theirs = np.zeros(6)
    mean, low, high = scoring.bootstrap(ours, theirs, np.array([0, 0, 0, 0, 1, 1]))
    assert mean == pytest.approx(66.667, abs=1e-3)
    assert (low, high) == (0.0, 100.0)
    mean, low, high = scoring.bootstrap(ours, theirs, np.arange(6))
    assert 0.0 < low < mean < high


def test_a_model_of_something_else_is_refused():
    with pytest.raises(ValueError, match="expected a model of documents"):
        scoring.words_of(StreamReader(MemN2N(9, sentence_length=4), 3, "fifo"))
