"""FRMQN's gradient over whole episodes, against differentiating the loop of its single steps.

    python benchmarks/bench_feedback.py [--batch 32] [--steps 50]

Both are compiled, take turns in one run, and are counted in processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def main() -> None:
    """Prints one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=10)
    arguments = parser.parse_args()

    import numpy as np
    import tensorflow as tf

    from lemn_tf.readers.mqn import FRMQN

    reader, batch, steps, slots = FRMQN(), arguments.batch, arguments.steps, 5
    generator = np.random.default_rng(0)

    def normal(*shape):
        return tf.constant(generator.normal(size=shape), tf.float32) * 0.3

    query, codes = (
        normal(batch, steps, 4 * reader.units),
        normal(batch, steps, slots, 2 * reader.units),
    )
    ids = tf.broadcast_to(tf.range(slots, dtype=tf.int64), [batch, steps, slots])
    weights = [reader.recurrent.kernel.value, reader.recurrent.bias.value]

    def by_loop():
        outputs = tf.TensorArray(tf.float32, steps, element_shape=[batch, reader.units])

        def step(t, carry, outputs):
            seen = reader.glance(query[:, t], codes[:, t], ids[:, t], carry)
            return t + 1, seen.carry, outputs.write(t, seen.output)

        start = (0, tuple(tf.zeros([batch, reader.units]) for _ in range(3)), outputs)
        *_, outputs = tf.while_loop(lambda t, *_: t < steps, step, start, maximum_iterations=steps)
        return tf.transpose(outputs.stack(), [1, 0, 2])

    def gradient(run):
        with tf.GradientTape() as tape:
            tape.watch([query, codes])
            loss = tf.reduce_sum(run() ** 2)
        return tape.gradient(loss, [query, codes, *weights])

    ways = {
        "loop": tf.function(lambda: gradient(by_loop), autograph=False, jit_compile=True),
        "at_once": tf.function(
            lambda: gradient(lambda: reader.unroll(query, codes, ids)[0]),
            autograph=False,
            jit_compile=True,
        ),
    }
    for one, other in zip(*(way() for way in ways.values()), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-2, atol=1e-3)
    spent = {name: [] for name in ways}
    for _ in range(arguments.rounds):
        for name, way in ways.items():
            began = time.process_time()
            way()
            spent[name].append(time.process_time() - began)
    median = {name: float(np.median(values)) for name, values in spent.items()}
    result = {f"{name}_ms": round(1000 * value, 1) for name, value in median.items()}
    print(json.dumps({**result, "ratio": round(median["loop"] / median["at_once"], 2)}))


if __name__ == "__main__":
    main()
