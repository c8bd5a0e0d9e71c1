"""How fast training, evaluation and reading are, beside one stream at a time in eager mode."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, cast

import keras
import numpy as np
import tensorflow as tf

from lemn_tf.episode import Episode
from lemn_tf.experiments import babi
from lemn_tf.learning import Hindsight
from lemn_tf.memory import MemoryState, to_flat
from lemn_tf.model import StreamReader
from lemn_tf.pipelines import babi as pipeline
from lemn_tf.pipelines import babi_generator
from lemn_tf.recipes import check_shards
from lemn_tf.sentences import Sentences
from lemn_tf.text import Vocabulary


def of_training(
    policy: str, slots: int, size: int, shards: int, seconds: float
) -> dict[str, float]:
    """Measures rollouts and full updates by hindsight credit, reader included.

    Args:
        policy, slots: of the memory.
        size: episodes in a batch.
        shards: see `StreamReader.compile`.
        seconds: to measure for.

    Returns:
        A dict: `episodes_per_second`, the same in eager mode, their `ratio`, `compile_seconds`,
        and `per_processor_second`, which does not depend on what else the machine does.
    """
    check_shards(shards, size)

    def compiled(**options: Any) -> tuple[StreamReader, dict[str, np.ndarray]]:
        model, data = prepare(policy, slots, size)
        model.compile(keras.optimizers.Adam(3e-3), retention=Hindsight(), updates=10_000, **options)
        return model, data

    model, data = compiled(shards=shards)
    fast = _rate(tf.function(model.train_step, autograph=False), batches(data, size), size, seconds)
    model, data = compiled(jit_compile=False)
    tf.config.run_functions_eagerly(True)
    try:
        eager = _rate(model.train_step, batches(data, 1), 1, seconds)
    finally:
        tf.config.run_functions_eagerly(False)
    return _result(size, shards, fast, eager)


def of_evaluation(
    policy: str, slots: int, size: int, shards: int, seconds: float
) -> dict[str, float]:
    """Measures greedy rollouts and answers; see `of_training`."""
    check_shards(shards, size)
    model, data = prepare(policy, slots, size)
    program = tf.function(model.outcome, autograph=False, jit_compile=True)

    def step(batch: Episode) -> list[dict[str, tf.Tensor]]:
        parts = {name: tf.split(value, shards) for name, value in batch.items()}
        return [program({name: part[k] for name, part in parts.items()}) for k in range(shards)]

    fast = _rate(tf.function(step, autograph=False), batches(data, size), size, seconds)
    eager = _rate(model.outcome, batches(data, 1), 1, seconds)
    return _result(size, shards, fast, eager)


def of_observing(policy: str, slots: int, size: int, seconds: float) -> dict[str, float]:
    """Measures streams that take in one sentence after another, from text to decision.

    Args:
        policy, slots: of the memory.
        size: streams in a batch, a sentence of each at a time.
        seconds: to measure for.

    Returns:
        As `of_training`, with a sentence for an episode; and `state_bytes`, what the memory of a
        stream holds, with sentences as they are in the stories.
    """
    stories = babi_generator.generate("noisy", 64, seed=0)
    words = Vocabulary.from_texts(pipeline.texts(stories), pipeline.answers(stories))
    settings = babi.BabiSettings(train="", valid="", policy=policy, slots=slots)
    reader = Sentences(babi.build(settings, words, sentence_length=8))
    facts = [fact for story in stories for fact in story.facts]
    states: dict[int, MemoryState] = {}

    def observe(read: Callable[..., Any], texts: tf.Tensor) -> None:
        rows = len(texts)
        state = states.get(rows) or reader.initial_state(rows)
        states[rows] = read(state, texts[:, None])[0]

    def rate(read: Callable[..., Any], rows: int) -> Rate:
        starts = itertools.count()
        texts = (tf.constant([facts[(k + n) % len(facts)] for n in range(rows)]) for k in starts)
        return _rate(partial(observe, read), texts, rows, seconds)

    fast = rate(tf.function(reader.read, autograph=False), size)
    eager = rate(reader.read, 1)
    held = sum(_bytes(tensor) for tensor in to_flat(states[size]).values())
    return {**_result(size, 1, fast, eager), "state_bytes": round(held / size)}


def _bytes(tensor: tf.Tensor) -> int:
    """What a tensor holds, without any frame around it."""
    if tensor.dtype == tf.string:
        return int(tf.reduce_sum(tf.strings.length(tensor)))
    return int(tf.size(tensor)) * tensor.dtype.size


def prepare(policy: str, slots: int, size: int) -> tuple[StreamReader, dict[str, np.ndarray]]:
    """A model and the stories that it is measured on: Noisy, 40 facts and 5 questions each."""
    stories = babi_generator.generate("noisy", max(1024, size), seed=0)
    words = Vocabulary.from_texts(pipeline.texts(stories), pipeline.answers(stories))
    data = pipeline.encode(stories, words)
    settings = babi.BabiSettings(train="", valid="", policy=policy, slots=slots)
    return babi.build(settings, words, data["items"].shape[-1]), data


class Rate(NamedTuple):
    """Seconds until the first result, and what was done in a second after it."""

    first: float
    per_second: float
    per_processor_second: float


def _rate(step: Callable[[Any], Any], batches: Iterator[Any], size: int, seconds: float) -> Rate:
    began = time.perf_counter()
    step(next(batches))
    first = time.perf_counter() - began
    began, worked, done = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - began < seconds or done == 0:
        step(next(batches))
        done += size
    worked = max(time.process_time() - worked, 1e-9)
    return Rate(first, done / (time.perf_counter() - began), done / worked)


def batches(data: dict[str, np.ndarray], size: int) -> Iterator[Episode]:
    """Batches of stories, again and again."""
    count = len(data["length"]) // size
    parts = [
        cast(Episode, {name: tf.constant(a[i * size : (i + 1) * size]) for name, a in data.items()})
        for i in range(count)
    ]
    return itertools.cycle(parts)


def _result(size: int, shards: int, fast: Rate, eager: Rate) -> dict[str, float]:
    return {
        "episodes_per_second": round(fast.per_second, 1),
        "per_processor_second": round(fast.per_processor_second, 1),
        "eager_episodes_per_second": round(eager.per_second, 2),
        "ratio": round(fast.per_second / eager.per_second, 1),
        "batch": size,
        "shards": shards,
        "compile_seconds": round(fast.first, 1),
    }
