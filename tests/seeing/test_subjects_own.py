"""A model of one's own as a subject."""

import keras
import numpy as np
import pytest

from lemn_tf import EpisodicMemory, MemoryModel
from lemn_tf.seeing.subjects_own import OwnSubject, samples


def test_scores_and_traces(own):
    model, x, y = own
    subject = OwnSubject(model, x, y, "mine")
    wrong = (model.predict(x, verbose=0).argmax(-1) != y).mean()
    assert subject.score() == {"result": round(100 * wrong, 3), "recall": None, "count": 6}
    assert (subject.policy, subject.slots, subject.rules()) == ("s-lemn", 3, ("fifo", "lru"))
    trace = subject.traces([2])[0]
    assert len(list(trace.steps())) == 12
    (asked,) = trace.questions()
    assert asked.expected == str(y[2])
    assert (asked.answer == asked.expected) == asked.right


def test_rules_beside_it(own):
    """FIFO keeps the last three, and can be judged; asked at the end, LRU does the same."""
    model, x, y = own
    subject = OwnSubject(model, x, y)
    assert subject.traced == ("fifo",)
    (trace,) = subject.traces([1], "fifo")
    assert trace.about["policy"] == "fifo"
    (asked,) = trace.questions()
    assert asked.ids == (9, 10, 11)
    answer = subject._answers(x, "fifo", None)[1]
    assert asked.answer == str(answer.argmax())
    assert 0 < asked.probability < 1
    assert all(0 <= item < 9 for item in asked.costs)
    assert subject.score("lru") == subject.score("fifo")
    assert "LRU is FIFO here" in subject.note
    assert "no oracle" in subject.note
    with pytest.raises(ValueError, match="st-lemn is learned"):
        subject.traces([1], "st-lemn")


@pytest.mark.parametrize("rule", ["fifo", "lru"])
def test_rules_beside_a_policy_with_a_state_of_its_own(rule):
    """ST-LEMN remembers something of each slot, and rules something else or nothing."""
    inputs = keras.Input((6, 2))
    state, _ = EpisodicMemory(slots=2, policy="st-lemn")(inputs)
    seen = keras.layers.GlobalAveragePooling1D()(state.entries)
    model = MemoryModel(inputs, keras.layers.Dense(2, "softmax")(seen))
    model.compile("sgd", "sparse_categorical_crossentropy")
    x, y = np.random.default_rng(0).normal(size=[2, 6, 2]).astype("float32"), np.array([0, 1])
    (trace,) = OwnSubject(model, x, y).traces([1], rule)
    (asked,) = trace.questions()
    assert asked.ids == (4, 5)
    assert set(asked.costs) <= {0, 1, 2, 3}


def test_a_rule_in_the_policys_place(own):
    model, x, y = own
    answers = OwnSubject(model, x, y)._answers(x, "lifo", None)
    changed = x.copy()
    changed[:, 3:] = 0  # LIFO keeps the first three, whatever follows
    again = OwnSubject(model, changed, y)._answers(changed, "lifo", None)
    np.testing.assert_allclose(answers, again, rtol=1e-5)


def test_samples_in_a_file(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.ones([2, 3]), y=np.zeros(2))
    x, y = samples(tmp_path / "a.npz")
    assert x.shape == (2, 3)
    assert y.shape == (2,)
    np.savez(tmp_path / "b.npz", stream=np.ones([2, 3]), query=np.ones(2), y=np.zeros(2))
    assert set(samples(tmp_path / "b.npz")[0]) == {"stream", "query"}
    np.savez(tmp_path / "c.npz", x=np.ones([2, 3]))
    with pytest.raises(ValueError, match="expected arrays y and x"):
        samples(tmp_path / "c.npz")
