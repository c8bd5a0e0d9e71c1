"""What a model must say about itself to be served: `Servable`, and the one for a reader of text.

The signatures of `lemn_tf.export.signatures` are written against `Servable` alone. A model with
other items (frames of a maze, documents) is exported by the same code once it has filled one in.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from lemn_tf import memory
from lemn_tf.layer import EpisodicMemory
from lemn_tf.memory import MemoryState
from lemn_tf.model import StreamReader
from lemn_tf.sentences import Sentences, Taken
from lemn_tf.text import Vocabulary

Nest = Any
Specs = dict[str, tf.TensorSpec]
Tensors = dict[str, tf.Tensor]


EXAMPLE = {
    "item": ["Mary took the milk.", "John went to the garden."],
    "question": "Where is the milk?",
}
"""The example for a reader of text, unless its vocabulary has one from its own data."""


@dataclass(frozen=True)
class Servable:
    """A memory, what goes in and what comes out. Specs are of one row: without batch dimension.

    Args:
        memory: the layer that observes, over entries as `entry` says.
        entry: nest of `tf.TensorSpec`, what a slot holds.
        item: what a caller sends as one item, by name.
        question: what a caller sends as a question, by name.
        encode: from items with any leading dimensions to entries with the same; None with `take`.
        answer: from a memory and questions `[B, ...]` to outputs by name, all `[B, ...]`; None with
            `act`.
        layers: owners of the weights and lookup tables; their weights make the fingerprint.
        identity: what else tells this model from others, such as its words; JSON values.
        act: instead of all that has to do with questions, for an agent: from a memory and one item,
            what it observes `[B, ...]`, to the memory after it and what the agent does, by name.
        present: from items to bool with the same leading dimensions, False for padding, which
            changes nothing; None if there is no padding.
        take: instead of `encode` and `present`, if an item may fill several slots, or depends on
            the stream before it: from a memory, items `[B, T, ...]` and what is `asked` to a
            `lemn_tf.sentences.Taken`, whose entries have a `text`.
        stream: nest of `tf.TensorSpec`, what a memory carries of its stream as a whole.
        asked: what a caller sends beside items to a policy that knows the question, each with the
            name in `question` that it anticipates.
        tables: lookup tables that are not part of any of the layers.
        checks: from entries to `{expectation: bool tensor}`, to refuse a damaged state.
        streams: names of the items in the one-shot signature; default the plural with "s".
        example: one example for each name in `item` (several of them, a list) and `question`.
        unknown: from texts `[B]` to the words in them that the model does not know, joined with
            spaces; None if it does not read text.
        facts: what to tell in `lemn.json` beside the signatures; JSON values.
    """

    memory: EpisodicMemory
    entry: Nest
    item: Specs
    question: Specs
    encode: Callable[[Tensors], Nest] | None
    answer: Callable[[MemoryState, Tensors], Tensors] | None
    layers: tuple[keras.layers.Layer, ...]
    identity: dict[str, Any]
    act: Callable[[MemoryState, Tensors], tuple[MemoryState, Tensors]] | None = None
    present: Callable[[Tensors], tf.Tensor] | None = None
    take: Callable[[MemoryState, Tensors, Tensors], Taken] | None = None
    stream: Nest = ()
    asked: dict[str, str] = field(default_factory=dict)
    tables: tuple[Any, ...] = ()
    checks: Callable[[Nest], Tensors] = lambda entries: {}
    streams: dict[str, str] = field(default_factory=dict)
    example: dict[str, Any] = field(default_factory=dict)
    unknown: Callable[[tf.Tensor], tf.Tensor] | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    def initial_state(self, batch: int | tf.Tensor) -> MemoryState:
        """An empty memory for each of `batch` rows."""
        carry = self.memory.policy.carry_spec()
        return memory.empty(batch, self.memory.slots, self.entry, carry, self.stream)

    def taken(self, state: MemoryState, items: Tensors, asked: Tensors) -> Taken:
        """What becomes of items `[B, T, ...]` that a memory is given next."""
        if self.take is not None:
            return self.take(state, items, asked)
        if self.encode is None:
            raise ValueError("expected a Servable with encode or take; got neither")
        mask = None if self.present is None else self.present(items)
        return Taken(self.encode(items), mask, state.stream)

    @property
    def state(self) -> Specs:
        """The flat state of one row, by name."""
        flat = memory.to_flat(self.initial_state(1))
        return {name: tf.TensorSpec(x.shape[1:], x.dtype, name) for name, x in flat.items()}

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits, the same for the same weights, words and shapes only."""
        digest = hashlib.sha256()
        specs = {name: [s.dtype.name, s.shape.as_list()] for name, s in self.state.items()}
        digest.update(json.dumps([specs, self.identity], sort_keys=True).encode())
        for layer in self.layers:
            for weight in layer.weights:
                value = np.ascontiguousarray(weight.numpy())
                digest.update(f"{value.dtype}{value.shape}".encode() + value.tobytes())
        return digest.hexdigest()[:16]


def text_servable(model: StreamReader, **options: Any) -> Servable:
    """A `StreamReader` with a vocabulary: sentences and questions in, words out.

    Entries hold the words as ids, for the model, and the sentence itself, for people.

    Args:
        model: has a `Vocabulary`, and a reader over word ids.
        **options: of `lemn_tf.sentences.Sentences`: `length`, `question_length`, `text_limit`.
    """
    served = Sentences(model, **options)
    reader, policy, vocabulary = model.reader, model.memory.policy, served.vocabulary
    return Servable(
        memory=served.memory,
        entry=served.entry,
        item={"item": tf.TensorSpec([], tf.string)},
        question={"question": tf.TensorSpec([], tf.string)},
        encode=lambda items: served.encode(items["item"]),
        answer=lambda state, asked: served.answer(state, asked["question"]),
        layers=(reader, policy, vocabulary),
        identity={
            "reader": type(reader).__name__,
            "policy": type(policy).__name__,
            "words": list(vocabulary.words),
        },
        present=lambda items: items["item"] != "",
        checks=lambda entries: _known_words(entries, vocabulary),
        streams={"item": "sentences"},
        example=vocabulary.example or EXAMPLE,
        unknown=vocabulary.unknown_words,
        facts={
            "reader": type(reader).__name__,
            "sentence_length": served.length,
            "question_length": served.question_length,
            "text_limit": served.text_limit,
            "answers": ["", "[unk]", *vocabulary.words],
        },
    )


def _known_words(entries: Nest, vocabulary: Vocabulary) -> Tensors:
    """Recognises a damaged memory by ids that are not words."""
    expectation = f"entries__tokens: expected word ids from 0 to {vocabulary.size - 1}"
    return {expectation: (entries["tokens"] >= 0) & (entries["tokens"] < vocabulary.size)}
