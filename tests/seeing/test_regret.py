"""Drops judged in hindsight."""

import dataclasses

from lemn_tf.seeing.regret import judge
from lemn_tf.seeing.trace import Asked, Trace


def test_a_drop_that_was_needed(trace):
    verdict = judge([trace])
    assert [(drop.item, drop.age, drop.needed) for drop in verdict.drops] == [
        (2, 0, ()),
        (0, 3, (2,)),
    ]
    (dear,) = verdict.regretted
    assert (dear.cost, dear.wrong, dear.keep) == (0.7, 1, 0.04)
    assert (verdict.needed, verdict.found, verdict.recall) == (4, 3, 75.0)
    assert verdict.summary() == {
        "drops": 2,
        "regretted": 1,
        "recall": 75.0,
        "cost": 0.35,
        "error": 50.0,
        "lives": {"moves": 3.0, "never needed": 0.5, "picks up": 3.0},
    }
    assert "Mary took the milk." in verdict._repr_html_()


def test_what_nobody_examined_has_no_cost(trace):
    unexamined = [
        dataclasses.replace(line, costs=None) if isinstance(line, Asked) else line for line in trace
    ]
    verdict = judge([Trace(unexamined)])
    assert verdict.cost is None
    assert len(verdict.regretted) == verdict.summary()["regretted"] == 1  # by the labels
    unlabelled = [
        dataclasses.replace(line, support=()) if isinstance(line, Asked) else line
        for line in unexamined
    ]
    assert judge([Trace(unlabelled)]).summary()["regretted"] is None
    guessed = Asked(1, 3, (2,), costs={0: 0.2, 1: 0.7})
    assert guessed.missed == (1, 0)  # by hindsight, the dearest first
    assert Trace(unlabelled).why(0).endswith("stayed in its place with 0.61.")


def test_a_model_in_hindsight(subject, examined):
    verdict = judge(examined)
    told = subject.score()
    assert verdict.questions == told["count"]
    assert verdict.summary()["error"] == told["result"]
    fifo = judge(subject.traces(range(subject.count), "fifo"))
    assert fifo.recall < verdict.recall
    assert fifo.cost > verdict.cost
    assert all(drop.age == 5 for drop in fifo.drops)
