"""What is recorded of models is what they did."""

import numpy as np
import pytest
import tensorflow as tf

from lemn_tf import EpisodicMemory
from lemn_tf.seeing.recording import Seen, as_trace, examine, examine_model, numpy, traces
from lemn_tf.seeing.subjects import TextSubject


def test_decisions_as_a_trace():
    state, decisions = EpisodicMemory(slots=2, policy="fifo")(tf.random.normal([1, 5, 3]))
    trace = as_trace(decisions, list("abcde"))
    assert [step.evicted for step in trace.steps()] == [-1, -1, 0, 1, 2]
    assert trace.step(4).after == tuple(state.ids[0].numpy())
    assert trace.step(3).runner_up == 2
    assert trace.text(3) == "d"
    with pytest.raises(ValueError, match="decisions about streams"):
        as_trace(tf.nest.map_structure(lambda leaf: leaf[:, 0], decisions))


def test_a_reader_of_text(preset, stories):
    subject = TextSubject(preset, stories)
    batch = {name: array[:4] for name, array in subject.stories.arrays.items()}
    seen = examine(preset, hindsight=True)(batch)
    counts = preset.outcome({name: tf.constant(array) for name, array in batch.items()})
    assert seen.right.sum() == int(counts["right"])
    for row, trace in enumerate(traces(seen)):
        for step in trace.steps():
            assert abs(sum(1 - keep for keep in step.keep) - 1) < 1e-4
            assert step.t == step.ids[-1]
        for question in trace.questions():
            before = trace.step(question.at - 1)
            assert before.after == tuple(one for one in question.ids if one >= 0)
            assert abs(sum(question.attention) - 1) < 1e-3
            for item, cost in question.costs.items():
                assert item not in question.ids
                assert 0 < cost <= 1 - seen.probability[row, question.number - 1] + 1e-3


def test_an_item_that_a_question_needs_twice_is_named_once():
    _, decisions = EpisodicMemory(slots=1, policy="fifo")(tf.random.normal([1, 3, 2]))
    seen = Seen(
        numpy(decisions),
        length=np.array([3]),
        ask_at=np.array([[3]]),
        kept=np.array([[[2]]]),
        support=np.array([[[0, 0, -1]]]),
    )
    (asked,) = traces(seen)[0].questions()
    assert (asked.support, asked.missed, asked.costs) == ((0,), (0,), None)


def test_attention_at_the_next_question(preset, stories):
    trace = TextSubject(preset, stories).traces([0])[0]
    first, second = list(trace.questions())[:2]
    step = trace.step(first.at)  # the first item after question 1: the next one is question 2
    for item, weight in zip(step.ids, step.attention, strict=True):
        expected = dict(zip(second.ids, second.attention, strict=True)).get(item, 0.0)
        assert weight == pytest.approx(expected)


def test_a_model_of_ones_own(own):
    model, x, y = own
    seen = examine_model(model, x, y, hindsight=True)
    answers = model.predict(x, verbose=0)
    np.testing.assert_array_equal(seen.right[:, 0], answers.argmax(-1) == y)
    np.testing.assert_allclose(seen.probability[:, 0], answers[np.arange(6), y], rtol=1e-3)
    assert seen.flipped.shape == (6, 1, 12)
    assert examine_model(model, x).probability is None
    with pytest.raises(ValueError, match="expected a memory 1"):
        examine_model(model, x, memory=1)
