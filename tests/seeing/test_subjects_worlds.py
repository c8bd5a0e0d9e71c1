"""An agent in a Gymnasium world as a subject."""

import gymnasium
import numpy as np
import pytest

from lemn_tf.navigation import worlds
from lemn_tf.seeing.regret import judge
from lemn_tf.seeing.subjects_worlds import WorldSubject

ENV = "lemn-test/Seen-v0"


class Cards(gymnasium.Env):
    """Six cards; the third step is paid for action 1 and costs for action 2, the others nothing."""

    observation_space = gymnasium.spaces.Dict(
        card=gymnasium.spaces.Discrete(5),
        view=gymnasium.spaces.Box(0, 255, (4, 4, 3), np.uint8),
    )
    action_space = gymnasium.spaces.Discrete(2, start=1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cards, self.at = self.np_random.integers(5, size=7), 0
        return self._seen(), {}

    def _seen(self):
        card = int(self.cards[self.at])
        return {"card": card, "view": np.full([4, 4, 3], 40 * card, np.uint8)}

    def step(self, action):
        reward = (3.0 - 2.0 * action) * (self.at == 2)
        self.at += 1
        return self._seen(), reward, self.at == 6, False, {}


@pytest.fixture(scope="module")
def subject():
    gymnasium.register(ENV, entry_point=Cards)
    agent = worlds.agent_for(worlds.make(ENV), "fifo", slots=2, units=8, width=4)
    return WorldSubject(agent, ENV, episodes=3)


def test_an_episode(subject):
    first, trace = subject.traces([0, 2])
    assert [step.text for step in first.steps()] != [step.text for step in trace.steps()]
    env = worlds.make(ENV, 3)
    seen, _ = env.reset(seed=subject.seed)
    assert next(trace.steps()).text == f"card {seen['card'][2]}"
    steps, asked = list(trace.steps()), list(trace.questions())
    assert len(steps) == len(asked) == 6
    assert [line.number if hasattr(line, "number") else -1 for line in trace][:4] == [1, -1, 2, -1]
    assert all(step.picture.startswith("data:image/png;base64,") for step in steps)
    assert [step.evicted for step in steps] == [-1, -1, 0, 1, 2, 3]
    assert [question.ids for question in asked[2:4]] == [(0, 1), (1, 2)]
    assert [question.right for question in asked[:2]] == [None, None]
    assert asked[2].right is (asked[2].answer == "action 1")
    assert judge([trace]).summary()["lives"].keys() == {"any item"}


def test_scores_are_returns(subject):
    told = subject.score()
    paid = [
        next(q for q in trace.questions() if q.right is not None).right
        for trace in subject.traces(range(3))
    ]
    assert told == {
        "result": round(np.mean([2 * one - 1 for one in paid]), 4),
        "recall": None,
        "count": 3,
    }
    assert set(subject.side_by_side()) == {"fifo", "lru", "uniform"}
    assert subject.score("lru", 1)["count"] == 3
