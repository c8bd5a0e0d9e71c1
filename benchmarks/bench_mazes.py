"""How fast mazes are made, drawn and walked, on one core.

    python benchmarks/bench_mazes.py [--seconds 1.0] [--json]

Rendering is measured with both kernels in the same run, in turns, so that the ratio between them
holds whatever else the machine is doing.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from lemn_tf.mazes import MazeVectorEnv, Scene, build, imazes, random_mazes, raycast, render_batch

BATCH = 64


def rate(work: Callable[[], int], seconds: float) -> float:
    """Things done per second, over at least `seconds`."""
    done, start = 0, time.perf_counter()
    while (spent := time.perf_counter() - start) < seconds:
        done += work()
    return done / spent


def rendering(mazes, seconds: float, rounds: int = 5) -> dict[str, float]:
    """Frames a second of both kernels at 32 x 32, batch 64: the median of rounds in turns."""
    world, scene = build(mazes), Scene.of(mazes)
    rng = np.random.default_rng(0)
    batches = []
    for _ in range(16):
        poses = rng.integers(len(world), size=BATCH)
        batches.append((world.maze[poses], world.cell[poses], world.heading[poses]))

    def work(backend: str) -> int:
        for batch in batches:
            render_batch(scene, *batch, backend=backend)
        return BATCH * len(batches)

    backends = ["numba", "numpy"] if raycast.has_numba() else ["numpy"]
    for backend in backends:
        work(backend)  # compile, warm up
    rates: dict[str, list[float]] = {backend: [] for backend in backends}
    for _ in range(rounds):
        for backend in backends:
            rates[backend].append(rate(functools.partial(work, backend), seconds / rounds))
    return {backend: float(np.median(values)) for backend, values in rates.items()}


def stepping(mazes, seconds: float) -> float:
    """Steps a second of the vector environment with 64 agents, frames in colour included."""
    envs = MazeVectorEnv(build(mazes), BATCH)
    envs.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, 3, (100, BATCH))

    def work() -> int:
        for action in actions:
            envs.step(action)
        return actions.size

    return rate(work, seconds)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each measurement")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()

    start = time.perf_counter()
    mazes = random_mazes(1000)
    result = {"generate_maps_per_s": 1000 / (time.perf_counter() - start)}
    build(mazes[:1])  # compile
    start = time.perf_counter()
    world = build(mazes)
    result |= {
        "build_1000_mazes_s": time.perf_counter() - start,
        "poses": len(world),
        "distinct_frames": len(world.frames),
    }
    for name, maps in (("random", mazes[:100]), ("imaze", imazes([5, 7, 9]))):
        speeds = rendering(maps, args.seconds)
        for backend, value in speeds.items():
            result[f"render_{name}_{backend}_frames_per_s"] = value
        if "numba" in speeds:
            result[f"render_{name}_ratio"] = speeds["numba"] / speeds["numpy"]
    result["vector_env_steps_per_s"] = stepping(imazes([5, 7, 9]), args.seconds)
    if args.json:
        print(json.dumps({key: round(value, 3) for key, value in result.items()}))
        return
    for key, value in result.items():
        print(f"{key:34s} {value:12,.0f}" if value >= 100 else f"{key:34s} {value:12.2f}")


if __name__ == "__main__":
    main()
