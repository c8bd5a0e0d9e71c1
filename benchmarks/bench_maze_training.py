"""Frames a second of training agents in mazes: walking and learning, compiled.

    python benchmarks/bench_maze_training.py [--env imaze] [--reader mqn] [--policy st-lemn]

Compilation is not counted: an update whose sizes are new is left out. Processor time does not
depend on what else the machine does, but does depend on page faults: `--give-back` shows what
an update costs where the C library gives freed memory back to the system, as it does by itself.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
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
    spent = frames = walking = compiling = acting = worked = 0.0
    walk, known, number, faults, counted = learner._walk, 0, 0, 0, 0

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
        began, busy = time.perf_counter(), time.process_time()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
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
        worked, counted = worked + time.process_time() - busy, counted + 1
        faults += resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    return {
        "frames_per_second": round(frames / spent),
        "frames_per_processor_second": round(frames / worked),
        "page_faults_per_update": round(faults / counted),
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
    parser.add_argument("--give-back", action="store_true", help="do not hold on to freed memory")
    arguments = parser.parse_args()
    if arguments.threads:
        tf.config.threading.set_intra_op_parallelism_threads(arguments.threads)
        tf.config.threading.set_inter_op_parallelism_threads(arguments.threads)
    settings = maze_settings(arguments.env, arguments.reader, policy=arguments.policy)
    if not arguments.give_back:
        hold_memory()  # as every training does
    learner = Learner(settings.build(), settings.recipe)
    setting = {
        "env": arguments.env,
        "reader": arguments.reader,
        "policy": arguments.policy,
        "slots": settings.slots,
        "cores": arguments.threads or os.cpu_count(),
        "memory": "given back" if arguments.give_back else "held",
    }
    print(json.dumps(setting | measure(learner, updates(MapSupply(settings)), arguments.seconds)))


if __name__ == "__main__":
    main()
