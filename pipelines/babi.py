"""Streams of the bAbI text format: read, write, encode and batch them.

A file holds stories. Each line is a number and a sentence; number 1 begins a new story. A line
with tabs is a question: its text, the answer, and the numbers of the lines that support it.

    1 Mary got the milk.
    2 Mary went to the garden.
    3 Where is the milk?<tab>garden<tab>1 2

Nothing here knows about models: the vocabulary is passed in (see `lemn_tf.text.Vocabulary`).
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from lemn_tf.files import write_atomically

from .stories import Question, Story, read_jsonl
from .text import batched


class WordIds(Protocol):
    """What a vocabulary must do: turn texts into padded ids, and answers into single ids."""

    unknown: int
    """The id of all unknown words."""

    def __call__(self, texts: tf.Tensor) -> tf.Tensor: ...

    def lookup(self, strings: tf.Tensor) -> tf.Tensor: ...


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


def _read(path: Path) -> list[Story]:
    return read_jsonl(path) if path.suffix == ".jsonl" else _read_file(path)


def _read_file(path: Path) -> list[Story]:
    text = path.read_bytes().decode("utf-8-sig", errors="replace")
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


def texts(stories: Iterable[Story]) -> list[str]:
    """Every distinct fact and question, in order of appearance; for building a vocabulary."""
    return list(
        dict.fromkeys(
            text
            for story in stories
            for text in (*story.facts, *(question.text for question in story.questions))
        )
    )


def answers(stories: Iterable[Story]) -> list[str]:
    """Every distinct answer, in order of appearance."""
    return list(dict.fromkeys(q.answer for story in stories for q in story.questions))


def example(stories: Iterable[Story]) -> dict[str, str | list[str]] | None:
    """The first question of the stories, and the last facts before it; None if there is none."""
    for story in stories:
        for question in story.questions[:1]:
            facts = story.facts[: question.asked_after]
            return {"item": list(facts[-4:]), "question": question.text}
    return None


def encode(
    stories: Sequence[Story], vocabulary: WordIds, store_questions: bool = False
) -> dict[str, np.ndarray]:
    """Turns stories into padded arrays of ids; S stories, T items, Q questions, K supports.

    All distinct sentences are tokenised in one call of the vocabulary.

    Args:
        stories: at least one story.
        vocabulary: maps a string tensor to ids, and with `lookup` answers to ids.
        store_questions: put each question into the stream too, right after it was asked.

    Returns:
        int32 arrays: `items` [S, T, L] (padding 0), `length` [S] the number of items,
        `questions` [S, Q, L] (padding 0), `ask_at` [S, Q] items seen before the question
        (padding -1), `answers` [S, Q] (-1 for padding, and for a word that the vocabulary does
        not know: no answer is right then), `support` [S, Q, K] items (padding -1).

    Example:

    >>> from lemn_tf.text import Vocabulary
    >>> story = Story(("Mary went home.",), (Question("Where is Mary?", "home", (0,), 1),))
    >>> data = encode([story], Vocabulary.from_texts(texts([story]), answers([story])))
    >>> {name: array.tolist() for name, array in data.items()}  # doctest: +NORMALIZE_WHITESPACE
    {'items': [[[4, 5, 2]]], 'length': [1], 'questions': [[[6, 3, 4]]], 'ask_at': [[1]],
     'answers': [[2]], 'support': [[[0]]]}
    """
    stories = list(stories)
    if not stories:
        raise ValueError("expected at least one story to encode, got none")
    streams = [stream(story, store_questions) for story in stories]
    asked = [[question.text for question in story.questions] for story in stories]
    shift = [_shifts(story) if store_questions else [0] * len(story.facts) for story in stories]
    sentences = _sentences([*streams, *asked], vocabulary)
    return {
        "items": sentences(streams),
        "length": np.array([len(stream) for stream in streams], np.int32),
        "questions": sentences(asked),
        "ask_at": _padded(
            [
                [q.asked_after + store_questions * k for k, q in enumerate(story.questions)]
                for story in stories
            ],
            -1,
        ),
        "answers": _answer_ids(stories, vocabulary),
        "support": _supports(stories, shift),
    }


def _sentences(
    rows: list[list[str]], vocabulary: WordIds
) -> Callable[[list[list[str]]], np.ndarray]:
    """A function from rows of these sentences to their ids, [rows, sentences, L]."""
    distinct = list(dict.fromkeys(text for row in rows for text in row))
    ids = np.asarray(vocabulary(tf.constant(distinct, tf.string)), np.int32)
    ids = np.concatenate([ids, np.zeros_like(ids[:1])]) if distinct else np.zeros((1, 0), np.int32)
    row_of = {text: row for row, text in enumerate(distinct)}  # the last row is padding
    return lambda rows: ids[
        _padded([[row_of[text] for text in row] for row in rows], len(distinct))
    ]


def _answer_ids(stories: list[Story], vocabulary: WordIds) -> np.ndarray:
    """Ids of the answers, [S, Q]; -1 for padding and for words that are not known."""
    flat = [question.answer for story in stories for question in story.questions]
    found = np.asarray(vocabulary.lookup(tf.constant(flat, tf.string)), np.int32)
    ids = iter(np.where(found == vocabulary.unknown, -1, found).tolist())
    return _padded([[next(ids) for _ in story.questions] for story in stories], -1)


def _supports(stories: list[Story], shift: list[list[int]]) -> np.ndarray:
    """Items that answer each question, [S, Q, K], each fact moved by its shift."""
    every = [question.support for story in stories for question in story.questions]
    shape = (max(len(story.questions) for story in stories), max(map(len, every), default=0))
    out = np.full((len(stories), *shape), -1, np.int32)
    for place, story, moved in zip(out, stories, shift, strict=True):
        for row, question in zip(place, story.questions, strict=False):
            row[: len(question.support)] = [fact + moved[fact] for fact in question.support]
    return out


def stream(story: Story, store_questions: bool) -> list[str]:
    """The items of a story, in order."""
    stream = list(story.facts)
    if store_questions:
        for question in reversed(story.questions):
            stream.insert(question.asked_after, question.text)
    return stream


def _shifts(story: Story) -> list[int]:
    """For each fact, how many stored questions come before it."""
    asked = np.array([question.asked_after for question in story.questions], int)
    return np.searchsorted(np.sort(asked), np.arange(len(story.facts)), side="right").tolist()


def _padded(rows: list[list[int]], padding: int) -> np.ndarray:
    out = np.full((len(rows), max(map(len, rows))), padding, np.int32)
    for place, row in zip(out, rows, strict=True):
        place[: len(row)] = row
    return out


def dataset(arrays: Mapping[str, np.ndarray], batch_size: int, **options: Any) -> tf.data.Dataset:
    """Batches of encoded stories, bucketed by their number of items.

    Within a bucket every batch has the same T; Q, L and K are the same everywhere.

    Args:
        arrays: what `encode` returned.
        batch_size: stories in a batch.
        **options: of `lemn_tf.pipelines.text.batched`: `shuffle_seed`, `buckets`, `repeat`,
            `drop_remainder`, `start`.

    Returns:
        A `tf.data.Dataset` of dicts with the keys of `encode`, batch-major.

    Example:

    >>> from lemn_tf.text import Vocabulary
    >>> story = Story(("Mary went home.",), (Question("Where is Mary?", "home", (0,), 1),))
    >>> vocabulary = Vocabulary.from_texts(texts([story]), answers([story]))
    >>> for batch in dataset(encode([story] * 3, vocabulary), batch_size=2):
    ...     print(batch["items"].shape)
    (2, 1, 3)
    (1, 1, 3)
    """
    return batched(arrays, arrays["length"], batch_size, cut=["items"], **options)
