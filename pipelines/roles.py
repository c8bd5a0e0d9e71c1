"""Roles: words of stories that may replace each other, read from a file or found.

In "Mary took the milk" another person may replace Mary, or another thing the milk, and a story in
which names change like this throughout stays true (`renaming`). A file can list these words, one
role per line:

    mary john sandra daniel
    kitchen, garden, office

or the stories show them: words that appear in the same positions. Only names count: words in facts
that are also asked about, are answers, or always have a capital. "Took" and "dropped" appear in
the same positions too, but exchanging them would change the story.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from .stories import Story

_WORD = re.compile(r"[^\W_]+(?:['-]+[^\W_]+)*")
EXPECTED = 10
"""Two words differ if one never appears where it would be expected this many times."""
SAMPLE = 2_000
"""This many stories are enough to find roles."""


def words_of(text: str) -> list[str]:
    """The words of a text in lower case, as in the vocabulary.

    Example:

    >>> words_of("Where is Mary's cat?")
    ['where', 'is', "mary's", 'cat']
    """
    return _WORD.findall(text.lower())


def read_roles(path: str | os.PathLike, known: Iterable[str]) -> list[list[str]]:
    """Reads roles from a file: one per line, its words separated by spaces or commas.

    Args:
        path: the file; empty lines, and lines that begin with "#", are skipped.
        known: the words of the stories.
    """
    known, roles, seen = set(known), [], dict[str, int]()
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), start=1):
        role = line.replace(",", " ").lower().split()
        if not role or line.startswith("#"):
            continue
        where = f"{path}, line {number}"
        if len(role) < 2:
            raise ValueError(f"{where}: expected two or more words in a role, got {line.strip()!r}")
        for word in role:
            if word not in known:
                raise ValueError(f"{where}: expected words of the stories, got {word!r}")
            if word in seen:
                raise ValueError(f"{where}: expected each word once, got {word!r} again")
            seen[word] = number
        roles.append(role)
    if not roles:
        raise ValueError(f"{path}: expected a role on each line, found none")
    return roles


def find_roles(stories: Sequence[Story]) -> list[list[str]]:
    """Words that appear in the same positions, in groups of two or more.

    Two words differ if one often appears in a position, or before a sentence with some word ("then
    she"), where the other never does.
    """
    stories = stories[:: 1 + len(stories) // SAMPLE]
    names = _names(stories)
    places: dict[str, Counter] = defaultdict(Counter)
    for story in stories:
        facts = [words_of(fact) for fact in story.facts]
        for fact, after in zip(facts, [*facts[1:], []], strict=True):
            _note(places, names, fact, {word for word in after if word not in names})
        for question in story.questions:
            asked = [*words_of(question.text), "?", question.answer.lower()]
            _note(places, names, asked, set())
    groups: list[list[str]] = []
    for word in sorted(places):
        for group in groups:
            if all(_alike(places[word], places[other]) for other in group):
                group.append(word)
                break
        else:
            groups.append([word])
    return [group for group in groups if len(group) > 1]


def _names(stories: Sequence[Story]) -> set[str]:
    """Words in facts that are asked about, are answers, or always begin with a capital."""
    told, small, asked, answers = set[str](), set[str](), set[str](), set[str]()
    for story in stories:
        for fact in story.facts:
            told.update(words_of(fact))
            small.update(words_of(" ".join(w for w in fact.split() if not w[:1].isupper())))
        for question in story.questions:
            asked.update(words_of(question.text))
            answers.add(question.answer.lower())
    parts = {part for answer in answers for part in words_of(answer) if part != answer}
    return (told & (asked | answers | (told - small))) - parts


def _note(
    places: dict[str, Counter], names: set[str], sentence: list[str], after: set[str]
) -> None:
    """Counts the positions of the names in a sentence, and the words of the next one."""
    hidden = ["*" if word in names else word for word in sentence]
    for place, word in enumerate(sentence):
        if word in names:
            places[word][""] += 1
            places[word][(*hidden[:place], "_", *hidden[place + 1 :])] += 1
            for other in after:
                places[word][other] += 1


def _alike(one: Counter, other: Counter) -> bool:
    """Whether each appears wherever the other is expected, and both somewhere."""
    for this, that in ((one, other), (other, one)):
        share = that[""] / this[""]
        if any(count * share >= EXPECTED and key not in that for key, count in this.items()):
            return False
    return any(isinstance(key, tuple) and key in other for key in one)
