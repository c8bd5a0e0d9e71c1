"""A Keras model of your own as a subject: any `MemoryModel`, with a batch of x and y."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from lemn_tf.seeing.recording import (
    Words,
    examine_model,
    memories_like,
    traces,
    with_rules,
)
from lemn_tf.seeing.subjects import RULES, Subject
from lemn_tf.seeing.trace import Trace
from lemn_tf.tables import in_words
from lemn_tf.tape import MemoryTape

Nest = Any


class OwnSubject(Subject):
    """A model with an `EpisodicMemory` in it, and samples.

    Args:
        model: functional or subclassed; compiled, if its answers are to be judged.
        x, y: samples, as `fit` takes them.
        name: of the run.
        data: of the samples.
        texts: from one item of a stream to words; default its text or its numbers.
        memory: which of its memories, in the order in which they are called.
    """

    measure = "wrong answers"
    unit = "samples"

    def __init__(
        self,
        model: keras.Model,
        x: Nest,
        y: Nest,
        name: str = "",
        data: str = "samples",
        texts: Callable[[Nest], str] = in_words,
        memory: int = 0,
    ):
        self.model, self.x, self.y, self.texts, self.memory = model, x, y, texts, memory
        self._calls = self._looked(self._rows(slice(1)))
        layer = self._calls[memory].layer
        self._along = self._calls[memory].ask_at is not None
        self.policy, self.slots = layer.policy.name, layer.slots
        self.name, self.data = name or model.name, data

    @property
    def count(self) -> int:
        return len(tf.nest.flatten(self.x)[0])

    def rules(self) -> tuple[str, ...]:
        return RULES[:1] if self._along else RULES[:2]

    @property
    def note(self) -> str:  # type: ignore[override]
        """Which rules there are, and why not the others."""
        lru = (
            "There is no LRU: the model does not say which items its questions read."
            if self._along
            else "LRU is FIFO here: nothing is read before the stream ends."
        )
        return f"{lru} There is no oracle: nothing says which items a question needs."

    def _rows(self, rows: Any) -> tuple[Nest, Nest]:
        return tuple(
            tf.nest.map_structure(lambda leaf: tf.convert_to_tensor(np.asarray(leaf)[rows]), one)
            for one in (self.x, self.y)
        )

    def _looked(self, batch: tuple[Nest, Nest]):
        with MemoryTape() as tape:
            self.model(batch[0], training=False)
        if self.memory >= len(tape.calls):
            raise ValueError(
                f"expected an EpisodicMemory in {self.model.name!r}; it called {len(tape.calls)}"
            )
        return tape.calls

    def score(self, policy: str | None = None, slots: int | None = None) -> dict[str, Any]:
        right = 0
        for begin in range(0, self.count, 256):
            x, y = self._rows(slice(begin, begin + 256))
            answers = self._answers(x, policy, slots)
            labels = np.asarray(y)
            if answers.ndim != labels.ndim + 1:
                raise ValueError(
                    f"expected answers that are classes, y {labels.shape} and scores of one more "
                    f"dimension; got {answers.shape}"
                )
            right += int((answers.argmax(axis=-1) == labels).sum())
        total = int(np.size(self.y))
        return {"result": round(100 * (1 - right / total), 3), "recall": None, "count": total}

    def _answers(self, x: Nest, policy: str | None, slots: int | None) -> np.ndarray:
        """The model's answers, with its policies or with a rule in their place."""
        rules = None if policy is None else memories_like(self.model, x, policy)
        return np.asarray(with_rules(self.model, x, rules, slots)[0])

    def traces(
        self, episodes: Sequence[int], policy: str | None = None, hindsight: bool = True
    ) -> list[Trace]:
        rule = None if policy == self.policy else policy
        x, y = self._rows(np.asarray(episodes))
        seen = examine_model(self.model, x, y, self.memory, hindsight, rule=rule)
        call = self._looked((x, y))[self.memory]
        told = tf.nest.map_structure(lambda leaf: leaf.numpy(), call.items)
        items = [
            [
                self.texts(tf.nest.map_structure(lambda leaf, r=r, t=t: leaf[r, t], told))
                for t in range(int(seen.length[r]))
            ]
            for r in range(len(episodes))
        ]
        words = Words(items=items, **self._answered(seen, np.asarray(y)))
        return traces(seen, words, {**self.about(), "policy": policy or self.policy})

    @staticmethod
    def _answered(seen, labels: np.ndarray) -> dict[str, list[list[str]]]:
        said, shape = seen.said, seen.ask_at.shape
        if not isinstance(said, np.ndarray) or said.size // max(said.shape[-1], 1) != np.prod(
            shape
        ):
            return {}
        guess = said.argmax(axis=-1).reshape(shape).astype(str).tolist()
        told: dict[str, list[list[str]]] = {"answers": guess}
        if labels.size == np.prod(shape):
            told["expected"] = labels.reshape(shape).astype(str).tolist()
        return told


def samples(path: str | os.PathLike) -> tuple[Nest, np.ndarray]:
    """Samples of a model in an `.npz` file: `y`, and `x` or several arrays that are named."""
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    if "y" not in arrays or len(arrays) < 2:
        raise ValueError(f"{path}: expected arrays y and x; found {', '.join(arrays) or 'none'}")
    y = arrays.pop("y")
    return (arrays["x"] if set(arrays) == {"x"} else arrays), y
