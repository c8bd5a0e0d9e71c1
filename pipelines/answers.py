"""The normal form by which answers are compared: TriviaQA's official rules, to the letter."""

from __future__ import annotations

import re
import string

SEPARATORS = string.punctuation + "‘’´`"
"""What the official rules turn into a space. Other quotation marks and dashes are kept."""

_TO_SPACE = str.maketrans({mark: " " for mark in SEPARATORS})
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalize(text: str) -> str:
    """The normal form of an answer, by the rules of TriviaQA's official scorer.

    Lower case; punctuation and single quotes become spaces; articles go; white space collapses.

    Example:

    >>> [normalize(text) for text in ("The_Beatles", "U.S.A.", "AC/DC", "1,000", "“O’Brien”")]
    ['beatles', 'u s', 'ac dc', '1 000', '“o brien”']
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_TO_SPACE)).split())
