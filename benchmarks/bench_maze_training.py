"""Frames a second of training agents in mazes: walking and learning, compiled.

    python benchmarks/bench_maze_training.py [--env imaze] [--reader mqn] [--policy st-lemn]

Compilation is not counted: an update whose sizes are new is left out.
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
    parser.add_argument("--env", choices=("imaze", "single-indicator"), default="imaze")
    parser.add_argument("--reader", choices=("mqn", "frmqn"), default="mqn")
    parser.add_argument("--policy", default="st-lemn")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long to measure")
    parser.add_argument("--threads", type=int, default=0, help="0 for all cores")
    arguments = parser.parse_args()

    import tensorflow as tf

    from lemn_tf.experiments.mazes import MapSupply, agent_settings
    from lemn_tf.navigation.learning import Learner
    from lemn_tf.pipelines.frames import updates

    if arguments.threads:
        tf.config.threading.set_intra_op_parallelism_threads(arguments.threads)
        tf.config.threading.set_inter_op_parallelism_threads(arguments.threads)
    settings = agent_settings(arguments.env, arguments.reader, policy=arguments.policy)
    learner, stream = Learner(settings.build(), settings.recipe), updates(MapSupply(settings))
    spent, frames, update, compiling, acting = 0.0, 0.0, 0, 0.0, 0.0
    walk, known = learner._walk, 0

    def timed(*inputs):
        nonlocal acting
        began = time.perf_counter()
        result = walk(*inputs)
        int(result[1])
        acting = time.perf_counter() - began
        return result

    learner._walk = timed
    walking = 0.0
    courses = iter(stream)
    while spent < arguments.seconds:
        began = time.perf_counter()
        starts, course = next(courses)
        shown = learner.update(course, starts, (0, update), 0.0)
        took = time.perf_counter() - began
        update += 1
        programs = walk.experimental_get_tracing_count()
        programs += learner._learn.experimental_get_tracing_count()
        if programs > known:
            known, compiling = programs, compiling + took
            continue
        spent, frames, walking = spent + took, frames + shown["frames"], walking + acting
    print(
        json.dumps(
            {
                "env": arguments.env,
                "reader": arguments.reader,
                "policy": arguments.policy,
                "slots": settings.slots,
                "cores": arguments.threads or os.cpu_count(),
                "frames_per_second": round(frames / spent),
                "walking_share": round(walking / spent, 3),
                "updates": update,
                "programs": known,
                "compiling_seconds": round(compiling, 1),
            }
        )
    )


if __name__ == "__main__":
    main()
