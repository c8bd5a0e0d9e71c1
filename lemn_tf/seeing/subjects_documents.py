"""Documents as a subject: a model that reads them slot by slot, and is asked at the end."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from lemn_tf import evaluation
from lemn_tf.episode import Episode, by_question
from lemn_tf.experiments import documents_scoring as scoring
from lemn_tf.experiments.documents_reading import Batch, Reading
from lemn_tf.experiments.minilm import Store
from lemn_tf.model import StreamReader
from lemn_tf.pipelines import documents as files
from lemn_tf.seeing.recording import Seen, Words, examine, traces
from lemn_tf.seeing.subjects import RULES, Subject
from lemn_tf.seeing.trace import Trace


class DocumentSubject(Subject):
    """A `StreamReader` over documents.

    Args:
        model: trained, with its words.
        qa: question file in TriviaQA's format.
        evidence: folder of its documents.
        name: of the run.
        context: where the vectors of a language model come from, if it sees them.
    """

    measure = "answers that do not match"
    examined = 20
    note = "LRU is FIFO here: nothing is read before a document ends."

    def __init__(
        self,
        model: StreamReader,
        qa: str | os.PathLike,
        evidence: str | os.PathLike,
        name: str = "",
        context: Store | None = None,
    ):
        self._read(model, Reading(model, files.read(qa, evidence), context=context))
        self.qa, self.evidence = qa, evidence
        self.name, self.data = name or self.policy, Path(qa).name

    def _read(self, model: StreamReader, reading: Reading) -> None:
        """Takes the model and what it reads."""
        self.model, self._reading, self.collection = model, reading, reading.collection
        self.policy, self.slots = model.memory.policy.name, model.memory.slots
        # Kept here, not by decorators, which would keep a trained model for ever.
        self._scored = functools.cache(self._score)
        self._examined = functools.cache(self._examine)

    @property
    def count(self) -> int:
        return int(self._rows.cardinality())

    def rules(self) -> tuple[str, ...]:
        # The oracle is told what one question needs; a policy that knows the question needs no
        # oracle.
        aware = self.model.memory.policy.question_aware
        suited = ("overlap" if aware else "distinct-salient",)
        for_words = suited if hasattr(self.model.reader, "lexical") else ()
        return (*RULES[:-1], *for_words, *(() if aware else RULES[-1:]))

    def score(self, policy: str | None = None, slots: int | None = None) -> dict[str, Any]:
        return self._scored(self._as(policy), slots)

    def _as(self, policy: str | None) -> str | None:
        """The policy that decides as this one; None for the model's own."""
        if policy == self.policy:
            return None
        return "fifo" if policy == "lru" else policy  # see `note`

    def _score(self, policy: str | None, slots: int | None) -> dict[str, Any]:
        model = self._with(policy)
        given = (self.qa, self.evidence, slots or self.slots, self._reading)
        told = scoring.score(model, *given).told
        if "exact_match" not in told:
            raise ValueError(f"{self.qa}: expected answers to mark by, found none")
        return {
            "result": round(100 - told["exact_match"], 3),
            "recall": told["answer_in_memory"],
            "count": told["questions"],
        }

    def _with(self, policy: str | None) -> StreamReader:
        return self.model if policy is None else evaluation.with_rule(self.model, policy)

    @functools.cached_property
    def _rows(self) -> tf.data.Dataset:
        """Documents one by one with some of their questions, and what a model is shown of them."""
        aware = self.model.memory.policy.question_aware

        def shown(row):
            episode = {**row, "support": row["answers"][..., 0]}
            if aware:  # every question makes a stream of its own: the first is shown
                episode = tf.nest.map_structure(lambda leaf: leaf[:1], by_question(episode))
            return row, episode

        one = Reading(self.model, self.collection, batch_size=1, context=self._reading.context)
        return one.batches.map(shown)

    def _examine(self, policy: str | None, hindsight: bool) -> Callable[[Episode], Seen]:
        model = self._with(policy)
        best = model.reader.best
        spec = self._rows.element_spec[1]
        return examine(model, hindsight, lambda answer: best(answer)._asdict(), spec)

    def traces(
        self, episodes: Sequence[int], policy: str | None = None, hindsight: bool = True
    ) -> list[Trace]:
        rows = enumerate(self._rows.take(max(episodes, default=-1) + 1))
        made = {n: self._trace(row, policy, hindsight) for n, row in rows if n in episodes}
        return [made[number] for number in episodes if number in made]

    def each(self) -> Iterator[Trace]:
        return (self._trace(row, None, False) for row in self._rows)

    def _trace(self, row: tuple[Batch, Episode], policy: str | None, hindsight: bool) -> Trace:
        """One document; a policy that knows the question reads it for the first question."""
        batch, episode = row
        seen = self._examined(policy, hindsight)(episode)
        told = {name: batch[name].numpy() for name in ("document", "question", "offsets")}
        told["question"] = told["question"][:, : seen.ask_at.shape[1]]
        about = {**self.about(), "policy": policy or self.policy}
        return traces(_needed(seen), self._words(seen, told), about)[0]

    def _words(self, seen: Seen, told: dict[str, np.ndarray]) -> Words:
        document = self.collection[int(told["document"][0])]
        offsets, said = told["offsets"][0], seen.said
        asked = [self.collection.questions[q] for q in told["question"][0] if q >= 0]

        def text(slot: int, first: int, last: int) -> str:
            return document.between(int(offsets[slot, first, 0]), int(offsets[slot, last, 1]))

        items = []
        for slot in range(int(seen.length[0])):
            used = np.flatnonzero(offsets[slot, :, 0] >= 0)
            items.append(text(slot, used[0], used[-1]) if len(used) else "")
        answers = [
            text(*(int(said[name][0, q]) for name in ("slot", "start", "end")))
            if said["slot"][0, q] >= 0
            else ""
            for q in range(len(asked))
        ]
        holds = (
            {int(one) for one in seen.support.ravel() if one >= 0}
            if seen.support is not None
            else set()
        )
        return Words(
            items=[[" ".join(item.split()) for item in items]],
            questions=[[question.text for question in asked]],
            answers=[answers],
            expected=[[" / ".join(question.aliases[:2]) for question in asked]],
            kinds=[["holds an answer" if n in holds else "other" for n in range(len(items))]],
        )


def _needed(seen: Seen) -> Seen:
    """A question needs any one place that holds an answer: one in memory, or else the dearest."""
    assert seen.support is not None
    holds = seen.support >= 0
    there = (seen.support[..., None] == seen.kept[..., None, :]).any(axis=-1) & holds
    worth = seen.support.astype(np.float64)  # if nobody looked, the newest
    if seen.flipped is not None:
        worth = np.take_along_axis(seen.flipped, np.maximum(seen.support, 0), axis=-1)
    best = np.where(holds, worth + 1e6 * there, -np.inf).argmax(axis=-1)
    one = np.arange(holds.shape[-1]) == best[..., None]
    return dataclasses.replace(seen, support=np.where(one & holds, seen.support, -1))
