"""Tables as text, Markdown and HTML."""

import numpy as np

from lemn_tf.tables import Table, in_words


def test_three_ways():
    table = Table(("id", "entry"), [(3, "<b>"), (12, "a|b")], "held")
    assert str(table) == "held\nid  entry\n 3  <b>\n12  a|b"
    assert table.markdown().splitlines()[2:] == [
        *("| id | entry |", "| ---: | --- |", "| 3 | <b> |", "| 12 | a\\|b |"),
    ]
    assert '<td style="text-align:right">12</td>' in table._repr_html_()
    assert "&lt;b&gt;" in table._repr_html_()
    assert str(Table(("a",))) == "a"


def test_entries_in_words():
    assert in_words(np.array([1, 2])) == "1, 2"
    assert in_words({"a": 1, "b": b"x"}) == "a 1; b x"
    assert in_words("long words", 5) == "long…"
