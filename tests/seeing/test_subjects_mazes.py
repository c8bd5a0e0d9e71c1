"""A maze agent as a subject."""

import pytest

from lemn_tf.navigation.navigator import Navigator
from lemn_tf.seeing.subjects_mazes import MazeSubject


@pytest.fixture(scope="module")
def subject():
    return MazeSubject(Navigator("mqn", 3, "fifo", units=8, filters=(2, 4)), lengths=[4])


def test_an_episode(subject):
    assert subject.count == 8  # two colours, four headings
    trace = subject.traces([1])[0]
    steps, asked = list(trace.steps()), list(trace.questions())
    assert len(steps) == len(asked) > 3
    assert all(step.picture.startswith("data:image/png;base64,") for step in steps)
    assert [question.at for question in asked] == [step.t for step in steps]
    assert [step.evicted for step in steps[3:]] == list(range(len(steps) - 3))
    assert all(question.right is None for question in asked[:-1])
    assert asked[4].ids == steps[4].ids[:-1]


def test_scores(subject):
    own, bound = subject.score(), subject.score("winnable")
    assert own["count"] == 8
    assert bound["error"] <= own["error"]
    assert subject.rules() == ("fifo", "lru", "winnable")
    assert subject.score("lru", 2)["count"] == 8
    with pytest.raises(ValueError, match="st-lemn is learned"):
        subject.score("st-lemn")
