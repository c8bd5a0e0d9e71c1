"""Streams of stories, encoded and batched; `story_files` reads and writes them.

Nothing here knows about models: the vocabulary is passed in (see `lemn_tf.text.Vocabulary`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from .stories import Question, Story
from .story_files import read_stories, write_stories
from .text import batched

__all__ = [
    "Question",
    "Story",
    "answers",
    "dataset",
    "encode",
    "example",
    "read_stories",
    "stream",
    "texts",
    "write_stories",
]


class WordIds(Protocol):
    """What a vocabulary must do: turn texts into padded ids, and answers into single ids."""

    unknown: int
    """The id of all unknown words."""

    def __call__(self, texts: tf.Tensor) -> tf.Tensor: ...

    def lookup(self, strings: tf.Tensor) -> tf.Tensor: ...


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
