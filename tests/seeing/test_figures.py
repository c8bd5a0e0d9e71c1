"""Figures by their structure."""

import pytest
import tensorflow as tf

from lemn_tf import EpisodicMemory, memory
from lemn_tf.entries import Entry
from lemn_tf.seeing import figures


def test_life_lines(trace):
    figure = figures.life_lines(trace)
    axes, colours = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "Mary took the milk. (0)",
        "Mary went home. (1)",
        "John is bored. (2)",
        "John left. (3)",
    ]
    assert axes.get_xlabel() == "items seen"
    assert [figures._label(text, 4) for text in ("view 4", "4", "view 44")] == [
        *("view 4", "4"),
        "view 44 (4)",
    ]
    assert colours.get_ylabel() == "probability of being kept"
    (bars,) = axes.collections
    # items 0, 1 and 3 live 4, 3 and 1 steps; item 2 is never stored
    assert len(bars.get_array()) == 4 + 3 + 1
    marks = {
        line.get_label(): line.get_xdata() for line in axes.lines if line.get_label()[0] != "_"
    }
    assert set(marks) == {"left", "needed, and there", "needed, and gone"}
    assert list(marks["left"]) == [2.5, 3.5]
    assert list(marks["needed, and gone"]) == [4]
    assert figures.png(figure).startswith(b"\x89PNG")


def test_life_lines_of_decisions():
    _, decisions = EpisodicMemory(slots=2, policy="fifo")(tf.random.normal([2, 5, 3]))
    figure = figures.life_lines(decisions, list("abcde"), most=3, row=1)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [
        "a (0)",
        "b (1)",
        "c (2)",
    ]


def test_a_budget_curve():
    curves = {
        "mine": [(3, 19.0), (5, 1.4)],
        "fifo": [(3, 56.0), (5, 45.0)],
        "oracle": [(3, 1.7), (5, 0.0)],
    }
    figure = figures.budget_curve(curves, "wrong answers", {"mine": 5})
    (axes,) = figure.axes
    lines = {line.get_label(): line for line in axes.lines if line.get_label()[0] != "_"}
    assert set(lines) == set(curves)
    assert list(lines["mine"].get_ydata()) == [19.0, 1.4]
    assert lines["oracle"].get_linestyle() == "--"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("slots", "wrong answers, %")
    assert len({(line.get_color(), line.get_marker()) for line in lines.values()}) == 3
    ring = [line for line in axes.lines if line.get_label()[0] == "_"]
    assert (ring[0].get_xdata()[0], ring[0].get_ydata()[0]) == (5, 1.4)
    assert figures.svg(figure) == figures.svg(
        figures.budget_curve(curves, "wrong answers", {"mine": 5})
    )


def test_a_learning_curve_goes_on_over_phases():
    history = [
        {"phase": "reader", "episodes": 32, "val_accuracy": 0.2},
        {"phase": "policy", "episodes": 32, "val_accuracy": 0.5},
        {"phase": "policy", "episodes": 64, "val_accuracy": 0.75},
    ]
    points, phases, unit, measure = figures.along(history)
    assert points == [(32, 80.0), (64, 50.0), (96, 25.0)]
    assert phases == [(0, "reader"), (32, "policy")]
    assert (unit, measure) == ("episodes seen", figures.ERROR)
    won = {"frames": 7, "val_success_rate": 60.0, "val_return": 0.2}
    assert figures.along([won]) == ([(7, 40.0)], [], "frames seen", figures.ERROR)
    returned = [{"frames": 7, "val_return": -0.5}]
    assert figures.along(returned) == ([(7, -0.5)], [], "frames seen", figures.RETURN)
    assert figures.learning_curve({"mine": returned}).axes[0].get_ylabel() == "validation return"
    assert figures.learning_curve({"mine": history}).axes[0].get_xlabel() == "episodes seen"
    assert figures.learning_curve({"mine": []}) is None


def test_a_learning_curve_over_stages():
    """Documents: the reader's right answers, then the answers kept, with a gap between."""
    history = [
        {"stage": "reader", "epoch": 0, "update": 10, "right": 0.25},
        {"stage": "reader", "epoch": 1, "update": 20, "right": 0.5},
        {"stage": "policy", "update": 4, "answer_in_memory": 0.75},
    ]
    points, stages, unit, measure = figures.along(history)
    assert [point for point in points if point[1] == point[1]] == [(10, 75.0), (20, 50.0), (24, 25)]
    assert len(points) == 4
    assert (stages, unit, measure) == ([(0, "reader"), (20, "policy")], "updates", figures.MISSED)
    (axes,) = figures.learning_curve({"mine": history}).axes
    assert axes.get_ylabel() == figures.MISSED
    assert [text.get_text() for text in axes.texts] == ["reader", "policy"]
    old = [{name: line[name] for name in line if name != "update"} for line in history]
    assert [x for x, _ in figures.along(old)[0]] == [1, 2, 2, 3]
    assert figures.along(old)[2] == "epochs"


def test_tables_for_notebooks():
    remember = EpisodicMemory(slots=2, policy="fifo", encoder=lambda x: tf.zeros([*x.shape, 1]))
    state = remember.initial_state(1, tf.TensorSpec([], tf.string))
    for text in ("a<b", "c", "d"):
        state, decision = remember.observe(state, tf.constant([text]))
    table = figures.memory_table(memory.pin(state, 2))
    assert table.rows == [(1, "c", ""), (2, "d", "pinned")]
    assert "after 3 items" in state._repr_html_()
    shown = decision._repr_html_()
    assert "left" in shown
    assert "new" in shown
    live = figures.memory_table([Entry(3, "Mary left.", 0.5, True)])
    assert str(live).splitlines()[1].split() == ["3", "Mary", "left.", "0.50", "pinned"]


def test_what_cannot_be_drawn_is_said():
    from lemn_tf.seeing.trace import Trace

    with pytest.raises(ValueError, match="at least one decision"):
        figures.life_lines(Trace([]))
