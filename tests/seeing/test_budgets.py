"""One memory at many sizes."""

from lemn_tf.seeing.budgets import errors_by_size, from_rows


def test_a_run_and_a_rule_at_two_sizes(subject):
    curves = errors_by_size({"mine": subject}, [2, 5])
    assert set(curves) == {"mine", *subject.rules()}
    assert all([size for size, _ in points] == [2, 5] for points in curves.values())
    assert curves["mine"][1][1] == subject.score()["result"]
    assert curves["mine"][1][1] < curves["fifo"][1][1]


def test_curves_from_rows():
    rows = [{"name": "a", "slots": n, "error_rate": 50.0 / n} for n in (5, 2)]
    assert from_rows(rows) == {"a": [(2, 25.0), (5, 10.0)]}
