"""Stories as files: bAbI's text format, read and written, and JSON lines, read; without TensorFlow.

A file holds stories. Each line is a number and a sentence; number 1 begins a new story. A line
with tabs is a question: its text, the answer, and the numbers of the lines that support it.

    1 Mary got the milk.
    2 Mary went to the garden.
    3 Where is the milk?<tab>garden<tab>1 2
"""

import os
from collections.abc import Iterable
from pathlib import Path

from lemn_tf.files import write_atomically

from .stories import Question, Story, parse_jsonl


def read_stories(paths: str | os.PathLike | Iterable[str | os.PathLike]) -> list[Story]:
    """Reads the stories of one or more files in bAbI's text format, or in JSON lines.

    Args:
        paths: a path, or several whose stories are joined in order. Files that end in `.jsonl`
            hold JSON lines, see `lemn_tf.pipelines.stories`.

    Returns:
        The stories.

    Example:

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "story.txt"
    >>> _ = path.write_text("1 Mary got the milk.\\n2 Where is it?\\tgarden\\t1\\n")
    >>> read_stories(path)[0].questions
    (Question(text='Where is it?', answer='garden', support=(0,), asked_after=1),)
    """
    each = [paths] if isinstance(paths, str | os.PathLike) else paths
    return [story for path in each for story in _read(Path(path))]


def check_beginning(path: str | os.PathLike) -> None:
    """Raises unless a file begins with a story; only its first line is read.

    Args:
        path: of stories, as `read_stories` takes it.

    Example:

    >>> check_beginning(__file__)
    Traceback (most recent call last):
    ValueError: ..., line 1: expected a line number, a space and a sentence, got '...
    """
    with open(path, "rb") as file:
        head = b""
        while not head.strip() and (line := file.readline()):
            head += line
    _parse(Path(path), head)


def _read(path: Path) -> list[Story]:
    return _parse(path, path.read_bytes())


def _parse(path: Path, data: bytes) -> list[Story]:
    text = data.decode("utf-8-sig", errors="replace")
    return parse_jsonl(path, text) if path.suffix == ".jsonl" else _parse_text(path, text)


def _parse_text(path: Path, text: str) -> list[Story]:
    stories: list[Story] = []
    facts: list[str] = []
    questions: list[Question] = []
    fact_at: dict[int, int] = {}  # line number in the story -> index of the fact
    last = line_number = 0

    def bad(expected: str, got: object) -> ValueError:
        return ValueError(f"{path}, line {line_number}: expected {expected}, got {got!r}")

    def close() -> None:
        if last:
            stories.append(Story(tuple(facts), tuple(questions)))
        for part in (facts, questions, fact_at):
            part.clear()

    for line_number, line in enumerate(text.split("\n"), 1):  # noqa: B007 (`bad` reads it)
        line = line.strip(" \r")
        if not line.strip():
            continue
        head, _, body = line.partition(" ")
        if not (head.isascii() and head.isdigit()) or not body.strip():
            raise bad("a line number, a space and a sentence", line)
        number = int(head)
        if number == 1:
            close()
        elif not last or number <= last:
            raise bad(f"line number 1{f' or one above {last}' if last else ''}", number)
        last = number
        sentence, *fields = (field.strip() for field in body.split("\t"))
        if not fields:
            fact_at[number] = len(facts)
            facts.append(sentence)
            continue
        while len(fields) > 1 and not fields[-1]:
            fields.pop()
        if len(fields) > 2 or not sentence or not fields[0]:
            raise bad("question <tab> answer [<tab> support line numbers]", body)
        if not facts:
            raise bad("a fact before the first question of a story", sentence)
        support = []
        for word in fields[1].split() if len(fields) == 2 else ():
            if not (word.isascii() and word.isdigit()) or int(word) not in fact_at:
                raise bad("support to be line numbers of earlier facts of the story", word)
            support.append(fact_at[int(word)])
        questions.append(Question(sentence, fields[0], tuple(support), len(facts)))
    close()
    if not stories:
        raise ValueError(f"{path}: expected at least one story in bAbI's text format, got none")
    return stories


def write_stories(stories: Iterable[Story], path: str | os.PathLike) -> None:
    """Writes stories in bAbI's text format; the file appears whole or not at all.

    Args:
        stories: what to write; `read_stories` gives the same back.
        path: the file to write, replaced if it exists. Missing folders are made.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (f"{line}\n" for story in stories for line in _lines(story))
    write_atomically(path, "".join(lines))


def _lines(story: Story) -> Iterable[str]:
    number, waiting = 0, list(story.questions)
    line_of: list[int] = []
    for seen in range(len(story.facts) + 1):
        while waiting and waiting[0].asked_after == seen:
            question = waiting.pop(0)
            number += 1
            support = " ".join(str(line_of[fact]) for fact in question.support)
            yield f"{number} {question.text}\t{question.answer}\t{support}".rstrip("\t")
        if seen < len(story.facts):
            number += 1
            line_of.append(number)
            yield f"{number} {story.facts[seen]}"
    if waiting:
        raise ValueError(
            f"expected questions in the order they are asked, after at most "
            f"{len(story.facts)} facts, got {waiting[0]}"
        )
