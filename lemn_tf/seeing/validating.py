"""What a board needs from a model in training: errors by policy, and traces.

It does not change the numbers of the training.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from lemn_tf.model import StreamReader
from lemn_tf.seeing.boards import undisturbed
from lemn_tf.seeing.recording import Words, examine, traces
from lemn_tf.seeing.subjects_own import OwnSubject
from lemn_tf.seeing.trace import Trace
from lemn_tf.tables import in_words
from lemn_tf.text import Vocabulary
from lemn_tf.wordlist import WordList

ROWS = 64
"""How many streams a board looks at."""


class Watched:
    """A `StreamReader` or a model of your own, and one batch of validation data.

    Args:
        model: in training.
        data: a data set of episodes or one of them, or `(x, y)` for a model of your own.
        texts: from an item to words, for a model of your own.
    """

    def __init__(self, model: Any, data: Any, texts: Callable[[Any], str] | None = None):
        self.model = model
        if not isinstance(model, StreamReader):
            x, y = (tf.nest.map_structure(lambda leaf: leaf[:ROWS], part) for part in data)
            self.own = OwnSubject(model, x, y, texts=texts or in_words)
            return
        first = data if isinstance(data, dict) else next(iter(data))
        self.episode = tf.nest.map_structure(lambda leaf: leaf[:ROWS], first)
        with undisturbed():
            rules = ["fifo", "lru", "oracle"]
            if self.episode.get("support") is None:
                rules.remove("oracle")
            others = {rule: model.with_policy(rule) for rule in rules}
            models = {model.memory.policy.name: model, **others}
        self._errors = {
            name: tf.function(one.outcome, autograph=False) for name, one in models.items()
        }
        self._look = examine(model, hindsight=False)

    def errors(self) -> dict[str, float]:
        """The error in percent, of the model as it is and with rules in its policy's place."""
        if not isinstance(self.model, StreamReader):
            return self.own.side_by_side()
        counts = {name: outcome(self.episode) for name, outcome in self._errors.items()}
        return {
            name: 100.0 * (1.0 - int(one["right"]) / max(int(one["questions"]), 1))
            for name, one in counts.items()
        }

    def traces(self) -> list[Trace]:
        """Traces of what the model does with the batch now."""
        if not isinstance(self.model, StreamReader):
            return self.own.traces(range(self.own.count), hindsight=False)
        seen = self._look(self.episode)
        return traces(seen, self._words(seen))

    def _words(self, seen) -> Words:
        known = self.model.vocabulary
        if isinstance(known, WordList):
            parts = (self.episode[name]["words"] for name in ("items", "questions"))
            return Words(*(_in_words(known, np.asarray(ids)) for ids in parts))
        if not isinstance(known, Vocabulary):
            return Words()

        def text(ids) -> list[list[str]]:
            rows = known.text(ids).numpy()
            return [[one.decode() for one in row] for row in rows]

        return Words(
            items=text(self.episode["items"]),
            questions=text(self.episode["questions"]),
            answers=text(seen.said[..., None]),
            expected=text(tf.maximum(self.episode["answers"], 0)[..., None]),
        )


def _in_words(known: WordList, ids: np.ndarray) -> list[list[str]]:
    """Texts `[B, T, L]` of ids in words; others are …."""
    table = np.array(["", *known.words], object)
    told = np.where(ids < len(table), table[np.minimum(ids, len(table) - 1)], "…")
    return [[" ".join(filter(None, text)) for text in row] for row in told]
