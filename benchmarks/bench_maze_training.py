"""Frames a second of training agents in mazes: walking and learning, compiled.

    python benchmarks/bench_maze_training.py [--env imaze] [--reader mqn] [--policy st-lemn]

Compilation is not counted: an update whose sizes are new is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

from lemn_tf.experiments.mazes import MapSupply, maze_settings
from lemn_tf.loop import hold_memory
from lemn_tf.navigation.learning import Learner
from lemn_tf.pipelines.frames import updates


def measure(learner: Learner, courses: tf.data.Dataset, seconds: float) -> dict[str, float]:
    """Updates an agent for so many seconds, compilation not counted."""
    spent = frames = walking = compiling = acting = 0.0
    walk, known, number = learner._walk, 0, 0

    def timed(*inputs: Any) -> Any:
        nonlocal acting
        began = time.perf_counter()
        result = walk(*inputs)
        int(result[1])
        acting = time.perf_counter() - began
        return result

    learner._walk = timed
    stream = iter(courses)
    while spent < seconds:
        began = time.perf_counter()
        starts, course = next(stream)
        shown = learner.update(course, starts, (0, number), 0.0)
        took = time.perf_counter() - began
        number += 1
        programs = walk.experimental_get_tracing_count()
        programs += learner._learn.experimental_get_tracing_count()
        if programs > known:
            known, compiling = programs, compiling + took
            continue
        spent, frames, walking = spent + took, frames + shown["frames"], walking + acting
    return {
        "frames_per_second": round(frames / spent),
        "walking_share": round(walking / spent, 3),
        "updates": number,
        "programs": known,
        "compiling_seconds": round(compiling, 1),
    }


def main() -> None:
    """Prints one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", choices=("imaze", "single-indicator"), default="imaze")
    parser.add_argument("--reader", choices=("mqn", "frmqn"), default="mqn")
    parser.add_argument("--policy", default="st-lemn")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long to measure")
    parser.add_argument("--threads", type=int, default=0, help="0 for all cores")
    arguments = parser.parse_args()
    if arguments.threads:
        tf.config.threading.set_intra_op_parallelism_threads(arguments.threads)
        tf.config.threading.set_inter_op_parallelism_threads(arguments.threads)
    settings = maze_settings(arguments.env, arguments.reader, policy=arguments.policy)
    hold_memory()  # as every training does
    learner = Learner(settings.build(), settings.recipe)
    setting = {
        "env": arguments.env,
        "reader": arguments.reader,
        "policy": arguments.policy,
        "slots": settings.slots,
        "cores": arguments.threads or os.cpu_count(),
    }
    print(json.dumps(setting | measure(learner, updates(MapSupply(settings)), arguments.seconds)))


if __name__ == "__main__":
    main()
