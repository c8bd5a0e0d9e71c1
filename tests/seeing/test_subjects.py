"""A model of text as a subject."""

import pytest

from lemn_tf.experiments import babi
from lemn_tf.seeing.subjects import TextSubject


def test_its_scores_are_those_of_the_experiment(subject, preset, stories):
    told = babi.score(preset, stories)
    assert subject.score() == {
        "result": told["error_rate"],
        "recall": told["support_recall"],
        "count": told["questions"],
    }
    assert subject.rules() == ("fifo", "lru", "oracle")


def test_its_traces_are_in_the_words_of_the_file(subject, examined):
    story = subject.stories.stories[2]
    assert [step.text for step in examined[2].steps()] == list(story.facts)
    asked = list(examined[2].questions())
    assert [question.text for question in asked] == [q.text for q in story.questions]
    assert [question.expected for question in asked] == [q.answer for q in story.questions]
    assert all((q.answer == q.expected) == q.right for q in asked)
    assert {step.kind for step in examined[2].steps()} <= {
        "moves",
        "picks up",
        "puts down",
        "other",
    }


def test_questions_that_enter_the_stream(preset, stories):
    stored = TextSubject(preset, stories, store_questions=True)
    trace = stored.traces([0], hindsight=False)[0]
    first = next(trace.questions())
    assert trace.step(first.at).text == first.text


def test_a_learned_policy_is_no_rule(subject):
    with pytest.raises(ValueError, match="s-lemn is learned"):
        subject.score("s-lemn")
