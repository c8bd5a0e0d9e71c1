"""Documents as a subject: a model that reads them slot by slot, and is asked at the end."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lemn_tf import evaluation
from lemn_tf.episode import by_question
from lemn_tf.experiments import documents_scoring as scoring
from lemn_tf.experiments.documents_evidence import with_arrival
from lemn_tf.model import StreamReader
from lemn_tf.pipelines import documents as files
from lemn_tf.pipelines import spans as pipeline
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
    """

    measure = "answers that do not match"
    examined = 20

    def __init__(
        self,
        model: StreamReader,
        qa: str | os.PathLike,
        evidence: str | os.PathLike,
        name: str = "",
    ):
        self.model, self.qa, self.evidence = model, qa, evidence
        self.name, self.data = name or model.memory.policy.name, Path(qa).name
        self.policy, self.slots = model.memory.policy.name, model.memory.slots
        self.known, self.idf = scoring.words_of(model)
        self.collection = files.read(qa, evidence)

    @property
    def count(self) -> int:
        return len(self.collection)

    def rules(self) -> tuple[str, ...]:
        # The oracle is told what one question needs; a policy that knows the question needs no
        # oracle.
        return RULES[:-1] if self.model.memory.policy.question_aware else RULES

    def score(self, policy: str | None = None, slots: int | None = None) -> dict[str, Any]:
        told = scoring.score(self._with(policy), self.qa, self.evidence, slots).told
        if "exact_match" not in told:
            raise ValueError(f"{self.qa}: expected answers to mark by, found none")
        return {
            "error": round(100 - told["exact_match"], 3),
            "recall": told["answer_in_memory"],
            "count": told["questions"],
        }

    def _with(self, policy: str | None) -> StreamReader:
        return self.model if policy is None else evaluation.with_rule(self.model, policy)

    def traces(
        self, episodes: Sequence[int], policy: str | None = None, hindsight: bool = True
    ) -> list[Trace]:
        model = self._with(policy)
        reader = model.reader
        layout = pipeline.Layout(slot_words=reader.words, longest=reader.words)
        batches = pipeline.dataset(self.collection, self.known, 1, layout, idf=self.idf)
        if reader.slot:
            batches = batches.map(with_arrival)
        look = examine(model, said=lambda answer: reader.best(answer)._asdict())
        about = {**self.about(), "policy": policy or self.policy}
        made: dict[int, Trace] = {}
        last = max(episodes, default=-1)
        for number, batch in enumerate(itertools.islice(batches, last + 1)):
            if number in episodes:
                made[number] = self._trace(look, batch, about)
        return [made[number] for number in episodes if number in made]

    def _trace(self, look, batch, about: dict[str, Any]) -> Trace:
        """One document; a policy that knows the question reads it for the first question."""
        aware = self.model.memory.policy.question_aware
        asked = {**batch, "support": batch["answers"][..., 0]}
        seen = look(by_question(asked) if aware else asked)  # type: ignore[arg-type]
        told = {name: batch[name].numpy() for name in ("document", "question", "offsets")}
        if aware:
            told["question"] = told["question"][:, :1]
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
    """A question needs any one place that holds an answer: those in memory count, if any."""
    assert seen.support is not None
    there = (seen.support[..., None] == seen.kept[..., None, :]).any(axis=-1) & (seen.support >= 0)
    found = there.any(axis=-1, keepdims=True)
    return dataclasses.replace(seen, support=np.where(found & ~there, -1, seen.support))
