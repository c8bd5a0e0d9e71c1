"""Stories: facts in order, with questions in between; also read from JSON lines.

A file of JSON lines holds one story on each line. `after` says how many items come before the
question; it may be left out for a question at the end. `support`, which items (from 0) the answer
rests on, is optional, and only used to report whether they were still in memory.

    {"items": ["Mary got the milk.", "Mary went home."],
     "questions": [{"after": 2, "question": "Where is the milk?", "answer": "home"}]}
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Question:
    """A question of a story.

    Attributes:
        text: the question.
        answer: the answer, one word ("milk,football" is one).
        support: the facts that answer it, as indices into `Story.facts`, in the file's order.
        asked_after: how many facts came before it.
    """

    text: str
    answer: str
    support: tuple[int, ...]
    asked_after: int


@dataclass(frozen=True)
class Story:
    """A story: its facts in order, and its questions in the order they are asked."""

    facts: tuple[str, ...]
    questions: tuple[Question, ...]


def parse_jsonl(path: Path, text: str) -> list[Story]:
    """Stories from the text of a file of JSON lines.

    Args:
        path: of the file, for errors.
        text: its content.

    Example:

    >>> question = {"question": "Where is Mary?", "answer": "garden"}
    >>> story = {"items": ["Mary went to the garden."], "questions": [question]}
    >>> parse_jsonl(Path("story.jsonl"), json.dumps(story))[0].questions
    (Question(text='Where is Mary?', answer='garden', support=(), asked_after=1),)
    """
    stories = []
    for number, line in enumerate(io.StringIO(text, newline=None), 1):
        if line.strip():
            stories.append(_story(line, f"{path}, line {number}"))
    if not stories:
        raise ValueError(f"{path}: expected a story on each line, got an empty file")
    return stories


def _story(line: str, where: str) -> Story:
    try:
        given = json.loads(line)
    except ValueError as error:
        raise ValueError(
            f"{where}: expected a story in JSON, got {line[:60]!r} ({error})"
        ) from None
    if not isinstance(given, dict) or not {"items", "questions"} <= given.keys():
        raise ValueError(f"{where}: expected an object with items and questions, got {line[:60]!r}")
    items, asked = given["items"], given["questions"]
    if not isinstance(items, list) or not items or not all(map(_is_text, items)):
        raise ValueError(f"{where}: expected items, a list of sentences, got {items!r:.80}")
    if not isinstance(asked, list):
        raise ValueError(f"{where}: expected questions, a list, got {asked!r:.80}")
    questions = [_question(one, len(items), where) for one in asked]
    return Story(tuple(items), tuple(sorted(questions, key=lambda q: q.asked_after)))


def _question(given: Any, items: int, where: str) -> Question:
    if not isinstance(given, dict) or not {"question", "answer"} <= given.keys():
        raise ValueError(f"{where}: expected a question and its answer, got {given!r:.80}")
    for name in ("question", "answer"):
        if not _is_text(given[name]):
            raise ValueError(f"{where}: expected {name} in words, got {given[name]!r:.80}")
    after = given.get("after", items)
    if not isinstance(after, int) or isinstance(after, bool) or not 1 <= after <= items:
        raise ValueError(f"{where}: expected after to be from 1 to {items}, got {after!r}")
    support = given.get("support", [])
    known = isinstance(support, list) and all(type(one) is int for one in support)
    if not known or not all(0 <= one < after for one in support):
        raise ValueError(
            f"{where}: expected support to be numbers from 0 to {after - 1}, got {support!r}"
        )
    return Question(given["question"].strip(), given["answer"].strip(), tuple(support), after)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())
