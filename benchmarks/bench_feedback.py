"""FRMQN's gradient over whole episodes, against differentiating the loop of its single steps.

    python benchmarks/bench_feedback.py [--batch 32] [--steps 50]

Both are compiled, take turns in one run, and are counted in processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

from lemn_tf.readers.mqn import FRMQN

SLOTS = 5


def ways(batch: int, steps: int) -> dict[str, Callable[[], list[tf.Tensor]]]:
    """Compiled functions that give the same gradients, by name."""
    reader, generator = FRMQN(), np.random.default_rng(0)

    def normal(*shape: int) -> tf.Tensor:
        return tf.constant(generator.normal(size=shape), tf.float32) * 0.3

    query = normal(batch, steps, 4 * reader.units)
    codes = normal(batch, steps, SLOTS, 2 * reader.units)
    ids = tf.broadcast_to(tf.range(SLOTS, dtype=tf.int64), [batch, steps, SLOTS])
    weights = [reader.recurrent.kernel.value, reader.recurrent.bias.value]

    def loop() -> tf.Tensor:
        outputs = tf.TensorArray(tf.float32, steps, element_shape=[batch, reader.units])

        def step(t, carry, outputs):
            seen = reader.glance(query[:, t], codes[:, t], ids[:, t], carry)
            return t + 1, seen.carry, outputs.write(t, seen.output)

        start = (0, tuple(tf.zeros([batch, reader.units]) for _ in range(3)), outputs)
        *_, outputs = tf.while_loop(lambda t, *_: t < steps, step, start, maximum_iterations=steps)
        return tf.transpose(outputs.stack(), [1, 0, 2])

    def at_once() -> tf.Tensor:
        return reader.unroll(query, codes, ids)[0]

    def gradient(run: Callable[[], tf.Tensor]) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch([query, codes])
            loss = tf.reduce_sum(run() ** 2)
        return tape.gradient(loss, [query, codes, *weights])

    def compiled(run: Callable[[], tf.Tensor]) -> Callable[[], list[tf.Tensor]]:
        return tf.function(lambda: gradient(run), autograph=False, jit_compile=True)

    return {"loop": compiled(loop), "at_once": compiled(at_once)}


def main() -> None:
    """Prints one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=10)
    arguments = parser.parse_args()
    both = ways(arguments.batch, arguments.steps)
    for one, other in zip(*(way() for way in both.values()), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-2, atol=1e-3)
    spent: dict[str, list[float]] = {name: [] for name in both}
    for _ in range(arguments.rounds):
        for name, way in both.items():
            began = time.process_time()
            way()
            spent[name].append(time.process_time() - began)
    median = {name: float(np.median(values)) for name, values in spent.items()}
    result = {f"{name}_ms": round(1000 * value, 1) for name, value in median.items()}
    print(json.dumps({**result, "ratio": round(median["loop"] / median["at_once"], 2)}))


if __name__ == "__main__":
    main()
