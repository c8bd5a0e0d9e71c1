"""Drops judged in hindsight."""

from lemn_tf.seeing.regret import judge


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


def test_a_model_in_hindsight(subject, examined):
    verdict = judge(examined)
    told = subject.score()
    assert verdict.questions == told["count"]
    assert verdict.summary()["error"] == told["error"]
    fifo = judge(subject.traces(range(subject.count), "fifo"))
    assert fifo.recall < verdict.recall
    assert fifo.cost > verdict.cost
    assert all(drop.age == 5 for drop in fifo.drops)
