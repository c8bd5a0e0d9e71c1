"""A maze agent as a subject."""

import numpy as np
import pytest

from lemn_tf.mazes import imaze_world
from lemn_tf.navigation.evaluation import Evaluator
from lemn_tf.navigation.navigator import Navigator
from lemn_tf.seeing.subjects_mazes import MazeSubject


@pytest.fixture(scope="module")
def subject():
    return MazeSubject(Navigator("mqn", 3, "fifo", units=8, filters=(2, 4)), imaze_world([4]))


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
    assert bound["result"] <= own["result"]
    assert subject.rules() == ("fifo", "lru", "winnable")
    assert subject.score("lru", 2)["count"] == 8
    with pytest.raises(ValueError, match="st-lemn is learned"):
        subject.score("st-lemn")


def test_an_agent_in_training_is_looked_at_as_it_is_now(subject):
    before = subject.side_by_side()
    assert set(before) == {"fifo", "lru", "winnable"}
    agent, random = subject.model, np.random.default_rng(0)
    weights = agent.get_weights()
    agent.set_weights([random.normal(size=w.shape) for w in weights])
    other = Evaluator(agent.with_memory("lru"), subject.world, jit_compile=False)().summary()
    assert subject.score("lru")["result"] == round(100 - other["success_rate"], 3)
    own = Evaluator(agent, subject.world, jit_compile=False)().summary()
    assert subject.score()["result"] == round(100 - own["success_rate"], 3)
    assert subject.pictures().shape[::3] == (3, 3)
    agent.set_weights(weights)
    assert subject.side_by_side() == before
