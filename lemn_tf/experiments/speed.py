"""How fast training and evaluation are, beside one story at a time in eager mode."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any, cast

import keras
import numpy as np
import tensorflow as tf

from lemn_tf.episode import Episode
from lemn_tf.experiments import babi
from lemn_tf.learning import Hindsight
from lemn_tf.learning.training import check_shards
from lemn_tf.model import StreamReader
from lemn_tf.pipelines import babi as pipeline
from lemn_tf.pipelines import babi_generator
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
        A dict: `episodes_per_second`, the same in eager mode, their `ratio`, `compile_seconds`.
    """
    check_shards(shards, size)

    def compiled(**options: Any) -> tuple[StreamReader, dict[str, np.ndarray]]:
        model, data = _prepare(policy, slots, size)
        model.compile(keras.optimizers.Adam(3e-3), retention=Hindsight(), updates=10_000, **options)
        return model, data

    model, data = compiled(shards=shards)
    fast = _rate(tf.function(model.train_step), _batches(data, size), size, seconds)
    model, data = compiled(jit_compile=False)
    tf.config.run_functions_eagerly(True)
    try:
        eager = _rate(model.train_step, _batches(data, 1), 1, seconds)
    finally:
        tf.config.run_functions_eagerly(False)
    return _result(size, shards, fast, eager)


def of_evaluation(
    policy: str, slots: int, size: int, shards: int, seconds: float
) -> dict[str, float]:
    """Measures greedy rollouts and answers; see `of_training`."""
    check_shards(shards, size)
    model, data = _prepare(policy, slots, size)
    program = tf.function(model.outcome, jit_compile=True)

    def step(batch: Episode) -> list[dict[str, tf.Tensor]]:
        parts = {name: tf.split(value, shards) for name, value in batch.items()}
        return [program({name: part[k] for name, part in parts.items()}) for k in range(shards)]

    fast = _rate(tf.function(step), _batches(data, size), size, seconds)
    eager = _rate(model.outcome, _batches(data, 1), 1, seconds)
    return _result(size, shards, fast, eager)


def _prepare(policy: str, slots: int, size: int) -> tuple[StreamReader, dict[str, np.ndarray]]:
    """A model and the stories that it is measured on: Noisy, 40 facts and 5 questions each."""
    stories = babi_generator.generate("noisy", max(1024, size), seed=0)
    words = Vocabulary.from_texts(pipeline.texts(stories), pipeline.answers(stories))
    data = pipeline.encode(stories, words)
    settings = babi.BabiSettings(train="", valid="", policy=policy, slots=slots)
    return babi.build(settings, words, data["items"].shape[-1]), data


def _rate(
    step: Callable[[Episode], Any], batches: Iterator[Episode], size: int, seconds: float
) -> tuple[float, float]:
    """Seconds until the first result, and episodes a second after it."""
    began = time.perf_counter()
    step(next(batches))
    first = time.perf_counter() - began
    began, done = time.perf_counter(), 0
    while time.perf_counter() - began < seconds or done == 0:
        step(next(batches))
        done += size
    return first, done / (time.perf_counter() - began)


def _batches(data: dict[str, np.ndarray], size: int) -> Iterator[Episode]:
    count = len(data["length"]) // size
    parts = [
        cast(Episode, {name: tf.constant(a[i * size : (i + 1) * size]) for name, a in data.items()})
        for i in range(count)
    ]
    return itertools.cycle(parts)


def _result(
    size: int, shards: int, fast: tuple[float, float], eager: tuple[float, float]
) -> dict[str, float]:
    return {
        "episodes_per_second": round(fast[1], 1),
        "eager_episodes_per_second": round(eager[1], 2),
        "ratio": round(fast[1] / eager[1], 1),
        "batch": size,
        "shards": shards,
        "compile_seconds": round(fast[0], 1),
    }
