"""`lemn bench`: how fast training and evaluation are, beside one story at a time in eager mode."""

from __future__ import annotations

import argparse
import json
import time

from lemn_tf.commands.common import whole_number


class Bench:
    """Measures episodes a second, after compilation, as a ratio to an eager baseline."""

    name = "bench"
    help = "measure episodes a second of training or evaluation"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("what", choices=("train", "evaluate"))
        parser.add_argument("--policy", default="st-lemn", help="retention policy")
        parser.add_argument("--slots", type=whole_number(1), default=5, help="N in the paper")
        parser.add_argument("--batch", type=whole_number(1), help="episodes at a time")
        parser.add_argument("--shards", type=whole_number(1), default=2, help="cores to use")
        parser.add_argument("--seconds", type=whole_number(1), default=10, help="to measure for")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def run(self, arguments: argparse.Namespace) -> None:
        from lemn_tf.learning.training import check_shards

        measure = training if arguments.what == "train" else evaluation
        size = arguments.batch or (64 if arguments.what == "train" else 256)
        check_shards(arguments.shards, size)
        result = measure(
            arguments.policy,
            arguments.slots,
            size,
            arguments.shards,
            arguments.seconds,
        )
        if arguments.json:
            print(json.dumps(result))
            return
        print(
            f"{arguments.what}: {result['episodes_per_second']:,.0f} episodes/s "
            f"(batch {result['batch']}, {result['shards']} shards, compiled in "
            f"{result['compile_seconds']:.0f} s); one story at a time in eager mode "
            f"{result['eager_episodes_per_second']:,.1f} episodes/s: "
            f"{result['ratio']:,.0f} times as fast"
        )


def _prepare(policy: str, slots: int, size: int):
    """A model and the stories that it is measured on: Noisy, 40 facts and 5 questions each."""
    from lemn_tf.experiments import babi
    from lemn_tf.pipelines import babi as pipeline
    from lemn_tf.pipelines import babi_generator
    from lemn_tf.text import Vocabulary

    stories = babi_generator.generate("noisy", max(1024, size), seed=0)
    words = Vocabulary.from_texts(pipeline.texts(stories), pipeline.answers(stories))
    data = pipeline.encode(stories, words)
    settings = babi.Settings(train="", valid="", policy=policy, slots=slots)
    return babi.build(settings, words, data["items"].shape[-1]), data


def _rate(step, batches, size: int, seconds: float) -> tuple[float, float]:
    """Seconds until the first result, and episodes a second after it."""
    began = time.perf_counter()
    step(next(batches))
    first = time.perf_counter() - began
    began, done = time.perf_counter(), 0
    while time.perf_counter() - began < seconds or done == 0:
        step(next(batches))
        done += size
    return first, done / (time.perf_counter() - began)


def _batches(data: dict, size: int):
    import itertools

    import tensorflow as tf

    count = len(data["length"]) // size
    parts = [
        {name: tf.constant(a[i * size : (i + 1) * size]) for name, a in data.items()}
        for i in range(count)
    ]
    return itertools.cycle(parts)


def _result(size, shards, first, rate, eager) -> dict:
    return {
        "episodes_per_second": round(rate, 1),
        "eager_episodes_per_second": round(eager, 2),
        "ratio": round(rate / eager, 1),
        "batch": size,
        "shards": shards,
        "compile_seconds": round(first, 1),
    }


def training(policy: str, slots: int, size: int, shards: int, seconds: float) -> dict:
    """Rollout and full update by hindsight credit, reader included."""
    import keras
    import tensorflow as tf

    from lemn_tf.learning import Hindsight

    def compiled(**options):
        model, data = _prepare(policy, slots, size)
        model.compile(keras.optimizers.Adam(3e-3), retention=Hindsight(), updates=10_000, **options)
        return model, data

    model, data = compiled(shards=shards)
    first, rate = _rate(tf.function(model.train_step), _batches(data, size), size, seconds)
    model, data = compiled(jit_compile=False)
    tf.config.run_functions_eagerly(True)
    try:
        _, eager = _rate(model.train_step, _batches(data, 1), 1, seconds)
    finally:
        tf.config.run_functions_eagerly(False)
    return _result(size, shards, first, rate, eager)


def evaluation(policy: str, slots: int, size: int, shards: int, seconds: float) -> dict:
    """Greedy rollout and answers."""
    import tensorflow as tf

    model, data = _prepare(policy, slots, size)
    program = tf.function(model.outcome, jit_compile=True)

    def step(batch):
        parts = tf.nest.map_structure(lambda x: tf.split(x, shards), batch)
        return [program({name: part[k] for name, part in parts.items()}) for k in range(shards)]

    first, rate = _rate(tf.function(step), _batches(data, size), size, seconds)
    _, eager = _rate(model.outcome, _batches(data, 1), 1, seconds)
    return _result(size, shards, first, rate, eager)
