"""How much faster two workers train than one: the same updates, in turn, again and again.

    python benchmarks/bench_workers.py [--workers 2] [--updates 20] [--rounds 3] [--batch 32]

One process computes all shards of each batch on one core, and then as many workers as asked for
compute them on a core each (`lemn train ... --workers`). They take turns, so that what else the
machine does falls on all alike. On a busy machine look at the processor time: it shows what the
work costs, and how much of it each worker is spared, however long they wait for a core. What it
cannot show is the time that workers wait for each other.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import statistics
import subprocess
import sys
import time

from lemn_tf.cli import QUICKER

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
for kind in ("INTRAOP", "INTEROP"):
    os.environ.setdefault(f"TF_NUM_{kind}_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", QUICKER)


def work(core: int, batch: int, shards: int) -> None:
    """A worker: makes as many updates as each line of standard input says, and tells the cost."""
    with contextlib.suppress(AttributeError, OSError):  # not on every system, or no such core
        os.sched_setaffinity(0, {core})
    import keras
    import tensorflow as tf

    from lemn_tf.experiments import speed
    from lemn_tf.learning import Hindsight
    from lemn_tf.learning.workers import ALONE, VARIABLE, Cluster

    workers = Cluster() if VARIABLE in os.environ else ALONE
    model, data = speed.prepare("st-lemn", 5, batch)
    model.compile(
        keras.optimizers.Adam(3e-3, global_clipnorm=40.0),
        retention=Hindsight(),
        updates=10_000,
        shards=shards,
        workers=workers,
    )
    step, batches = tf.function(model.train_step, autograph=False), speed.batches(data, batch)
    for line in sys.stdin:
        began, worked = time.perf_counter(), time.process_time()
        for _ in range(int(line)):
            step(next(batches))
        cost = {"wall": time.perf_counter() - began, "processor": time.process_time() - worked}
        print(json.dumps(cost), flush=True)


class Crew:
    """Workers that train together.

    Args:
        count: how many; one trains alone.
        batch, shards: of every update.
    """

    def __init__(self, count: int, batch: int, shards: int):
        from lemn_tf.experiments.crew import free_ports
        from lemn_tf.learning.workers import VARIABLE, write_config

        addresses = [f"127.0.0.1:{port}" for port in free_ports(count)]
        self.processes = []
        for rank in range(count):
            told = {VARIABLE: write_config(addresses, rank)} if count > 1 else {}
            command = [sys.executable, __file__, "--core", str(rank)]
            self.processes.append(
                subprocess.Popen(
                    [*command, "--batch", str(batch), "--shards", str(shards)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    env={**os.environ, **told},
                )
            )

    def begin(self, updates: int) -> None:
        """Begins to make updates."""
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write(f"{updates}\n")
            process.stdin.flush()

    def end(self) -> list[dict[str, float]]:
        """What the updates cost each worker, once they are made."""
        answers = [process.stdout.readline() for process in self.processes if process.stdout]
        return [json.loads(answer) for answer in answers]

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


def measured(crew: Crew, updates: int) -> list[dict[str, float]]:
    """What updates cost each worker of a crew while the others wait."""
    crew.begin(updates)
    return crew.end()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--shards", type=int)
    parser.add_argument("--core", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    shards = given.shards or given.workers
    if given.core is not None:
        work(given.core, given.batch, shards)
        return
    load = os.getloadavg()[0]
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, load {load:.1f}")
    crews = [Crew(count, given.batch, shards) for count in (1, given.workers)]
    try:
        for crew in crews:
            crew.begin(2)  # compiles
        for crew in crews:
            crew.end()
        ratios: dict[str, list[float]] = {"wall": [], "processor": []}
        for _ in range(given.rounds):
            one, several = (measured(crew, given.updates) for crew in crews)
            for kind, found in ratios.items():
                longest = max(cost[kind] for cost in several)
                found.append(one[0][kind] / longest)
                rates = [given.updates * given.batch / spent for spent in (one[0][kind], longest)]
                print(
                    f"{kind}: 1 worker {rates[0]:,.0f} episodes/s, {given.workers} workers "
                    f"{rates[1]:,.0f}: {found[-1]:.2f} times",
                    flush=True,
                )
        for kind, found in ratios.items():
            every = ", ".join(f"{ratio:.2f}" for ratio in found)
            print(f"{kind}: median {statistics.median(found):.2f} times ({every})")
    finally:
        for crew in crews:
            crew.close()


if __name__ == "__main__":
    main()
