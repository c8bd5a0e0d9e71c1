"""What a trace says of its items, and why they left."""

import pytest

from lemn_tf.seeing.trace import Step, Trace, why


def test_why_an_item_left(trace):
    assert trace.why(0) == (
        "Mary took the milk (0) left at t=3 with keep probability 0.04; Mary went home (1) stayed "
        "in its place with 0.61; it would have been needed at question 2 (with it, the right "
        "answer is 0.70 likelier)."
    )
    assert why(trace, 1) == "Mary went home (1) is still in memory."
    assert trace.why(2) == (
        "John is bored (2) was not stored at t=2, with keep probability 0.30; Mary went home (1) "
        "stayed with 0.80; no question needed it later."
    )
    with pytest.raises(ValueError, match="no item 7 in this trace"):
        trace.why(7)


def test_an_item_that_had_to_go():
    steps = [Step(0, (-1, 0), (0.0, 1.0), 0, text="a"), Step(1, (0, 1), (0.0, 1.0), 0, text="b")]
    assert Trace(steps).why(0) == "a (0) left at t=1 because nothing else could."  # nobody asked


def test_steps_and_questions(trace):
    assert [step.t for step in trace.steps()] == [0, 1, 2, 3]
    assert [step.evicted for step in trace.steps()] == [-1, -1, 2, 0]
    assert trace.step(3).after == (1, 3)
    early, late = trace.questions()
    assert (early.missed, late.missed) == ((), (0,))
    assert late.needs(0)
    assert not late.needs(3)
