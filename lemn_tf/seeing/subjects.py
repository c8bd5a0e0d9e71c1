"""Subjects: a trained model with data, so that it can be examined whatever its task.

Traces, boards, reports and comparisons need four things: what the model did with some episodes, its
score, its score with another policy or size of memory, and names for all that. This module has the
one for text; `subjects_documents`, `subjects_mazes` and `subjects_worlds` have those for documents,
mazes and Gymnasium worlds. For a task of your own, subclass `Subject`.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lemn_tf import evaluation
from lemn_tf.experiments import babi
from lemn_tf.model import StreamReader
from lemn_tf.pipelines.babi import stream
from lemn_tf.pipelines.text import batched
from lemn_tf.seeing.quickly import json_lines
from lemn_tf.seeing.recording import Seen, Words, examine, traces
from lemn_tf.seeing.trace import Trace

RULES = ("fifo", "lru", "oracle")
"""The rules shown beside a learned policy."""


class Subject(abc.ABC):
    """A trained model and data for it.

    Attributes:
        name: of the run.
        data: of the file.
        policy, slots: of its memory.
        measure: what its score says, such as "wrong answers".
        rising: whether more of it is better; otherwise it is an error in percent.
        unit: what is counted, such as "questions".
        bound: the name of the clairvoyant row.
        traced: the rules that it can also be traced with, for comparison.
        examined: how many episodes are enough to judge it.
        learned: what its learning curve shows.
        note: what a reader should know about the rules beside it.
    """

    name: str
    data: str
    policy: str
    slots: int
    measure = "wrong answers"
    rising = False
    unit = "questions"
    bound = "oracle"
    traced: tuple[str, ...] = ("fifo",)
    examined = 100
    learned = "the error in validation"
    note = ""

    @property
    @abc.abstractmethod
    def count(self) -> int:
        """How many episodes there are."""

    @abc.abstractmethod
    def score(self, policy: str | None = None, slots: int | None = None) -> dict[str, Any]:
        """Its score: `result`, `recall` of what was needed in percent (or None), `count`.

        Args:
            policy: another one over the same reader; None for its own.
            slots: another size of the memory.
        """

    @abc.abstractmethod
    def traces(
        self, episodes: Sequence[int], policy: str | None = None, hindsight: bool = True
    ) -> list[Trace]:
        """What happened in some episodes.

        Args:
            episodes: their numbers.
            policy: another one over the same reader; None for its own.
            hindsight: also find what dropped items would have been worth.
        """

    def lines(self) -> Iterator[bytes]:
        """All episodes as lines of JSON, for a file; whole batches at a time."""
        from lemn_tf.seeing.files import to_json

        for episode, trace in enumerate(self.each()):
            numbered = (dataclasses.replace(line, episode=episode) for line in trace)
            yield "".join(to_json(line) + "\n" for line in numbered).encode()

    def each(self) -> Iterator[Trace]:
        """What happened in every episode, without hindsight, one at a time."""
        for episode in range(self.count):
            yield from self.traces([episode], hindsight=False)

    def about(self) -> dict[str, Any]:
        """What a trace says about its origin."""
        return {"run": self.name, "data": self.data, "policy": self.policy, "slots": self.slots}

    def rules(self) -> tuple[str, ...]:
        """The rules it can be shown beside, the clairvoyant one last."""
        return RULES

    def scores(self) -> dict[str, dict[str, Any]]:
        """Its score, and those with rules in its policy's place, by policy."""
        rules = (rule for rule in self.rules() if rule != self.policy)
        others = {rule: self.score(rule) for rule in rules}
        return {self.policy: self.score(), **others}

    def side_by_side(self) -> dict[str, float]:
        """The results of `scores`."""
        return {name: score["result"] for name, score in self.scores().items()}

    def pictures(self) -> np.ndarray | None:
        """Pictures `[K, H, W, 3]` of the first episode; None if there is nothing to draw."""
        return None


class TextSubject(Subject):
    """A `StreamReader` over stories.

    Args:
        model: trained, with a vocabulary.
        path: stories, in bAbI's format or JSON lines.
        name: of the run.
        store_questions: see `babi.BabiSettings`.
    """

    def __init__(
        self,
        model: StreamReader,
        path: str | os.PathLike,
        name: str = "",
        store_questions: bool = False,
    ):
        self.model, self.path, self.stored = model, path, store_questions
        self.name, self.data = name or model.memory.policy.name, Path(path).name
        self.policy, self.slots = model.memory.policy.name, model.memory.slots
        self.stories = babi.Stories(path, model.vocabulary, store_questions)
        self._labelled = bool((self.stories.arrays["support"] >= 0).any())

    @property
    def count(self) -> int:
        return len(self.stories.stories)

    def rules(self) -> tuple[str, ...]:
        return RULES if self._labelled else RULES[:-1]

    @functools.cache  # noqa: B019 (a subject lives only while its page is made)
    def _with(self, policy: str | None) -> StreamReader:
        return self.model if policy is None else evaluation.with_rule(self.model, policy)

    def score(self, policy: str | None = None, slots: int | None = None) -> dict[str, Any]:
        batches = self.stories.batches(256, buckets=babi.BUCKETS)
        told = evaluation.rates(self._with(policy), batches, slots)
        return {
            "result": told["error_rate"],
            "recall": told["support_recall"],
            "count": told["questions"],
        }

    def traces(
        self, episodes: Sequence[int], policy: str | None = None, hindsight: bool = True
    ) -> list[Trace]:
        look = self._examine(policy, hindsight)
        about = {**self.about(), "policy": policy or self.policy}
        made: list[Trace] = []
        for begin in range(0, len(episodes), 64):
            rows = np.asarray(episodes[begin : begin + 64])
            seen = look({name: array[rows] for name, array in self.stories.arrays.items()})
            made += traces(seen, self.words(seen, rows), about)
        return made

    @functools.cache  # noqa: B019
    def _examine(self, policy: str | None, hindsight: bool):
        return examine(self._with(policy), hindsight=hindsight)

    def lines(self) -> Iterator[bytes]:
        arrays = {**self.stories.arrays, "row": np.arange(self.count, dtype=np.int32)}
        look = self._examine(None, False)
        for batch in batched(arrays, arrays["length"], 256, cut=["items"], buckets=babi.BUCKETS):
            seen, rows = look(batch), batch["row"].numpy()
            yield json_lines(seen, self.words(seen, rows), rows.tolist())

    def words(self, seen: Seen, rows: np.ndarray) -> Words:
        """Stories in words."""
        stories = [self.stories.stories[row] for row in rows]
        vocabulary: Any = self.model.vocabulary
        answers = vocabulary.text(seen.said[..., None]).numpy()
        items = [stream(story, self.stored) for story in stories]
        return Words(
            items=items,
            questions=[[question.text for question in story.questions] for story in stories],
            answers=[[answer.decode() for answer in row] for row in answers],
            expected=[[question.answer for question in story.questions] for story in stories],
            kinds=[[kind_of(text) for text in texts] for texts in items],
        )


KINDS = {
    "moves": ("journeyed", "moved", "travelled", "went"),
    "picks up": ("got", "grabbed", "picked", "took"),
    "puts down": ("discarded", "dropped", "left", "put", "let"),
}
"""The verbs of bAbI's stories."""


@functools.lru_cache(1 << 16)
def kind_of(text: str) -> str:
    """The kind of a sentence, by its verb.

    Example:

    >>> kind_of("Mary went to the garden."), kind_of("Mice are afraid of wolves.")
    ('moves', 'other')
    """
    found = set(text.lower().split())
    return next((kind for kind, verbs in KINDS.items() if found & set(verbs)), "other")
