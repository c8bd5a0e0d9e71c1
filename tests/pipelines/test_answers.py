"""The normal form of answers: the golden cases, and what it must never do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lemn_tf.pipelines.answers import normalize


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("U.S.A.", "u s"),
        ("AC/DC", "ac dc"),
        ("O’Brien", "o brien"),
        ("The_Beatles", "beatles"),
        ("1,000", "1 000"),
        ("Vitamin A", "vitamin"),
        ("“Hello” – there", "“hello” – there"),
        ("", ""),
        ("the", ""),
        ("  An  apple\ta day\n", "apple day"),
        ("theatre", "theatre"),
        ("aé a", "aé"),
        ("ÉCOLE", "école"),
        ("rock`n´roll", "rock n roll"),
    ],
)
def test_golden_cases(text, normal):
    assert normalize(text) == normal


@given(st.text())
def test_it_is_clean_of_punctuation_case_and_space(text):
    normal = normalize(text)
    assert normal == normal.strip()
    assert "  " not in normal
    assert not set(normal) & set("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~‘’´")
    assert not set(normal.split()) & {"a", "an", "the"}
