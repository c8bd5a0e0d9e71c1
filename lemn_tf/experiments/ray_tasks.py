"""Jobs as tasks of Ray, on this machine or on a cluster.

A task runs its command in the worker itself, so it dies with the worker. Ray then starts it again
on another one, and it goes on from its checkpoint. Every node needs this version of lemn_tf and
sees the folders of the driver under the same paths, as on any shared file system: what a job
leaves are files, exactly those of a local process.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from typing import Any

from lemn_tf.experiments.scheduling import MODULE, Job, Scheduler, variables

HERE = "local"
"""The address that stands for a cluster of this machine alone, which is started and ended here."""
RETRIES = 5
"""How often a task is started again whose worker or node was lost."""


def run_job(job: Job, folder: str, environment: dict[str, str]) -> int:
    """Runs a job in this process, a worker of Ray that has done nothing before; its exit code."""
    os.environ.update(environment)
    os.chdir(folder)
    with open(job.log, "ab") as log:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    sys.argv = [MODULE, *job.arguments]
    try:
        runpy.run_module(MODULE, run_name="__main__")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


class RayTasks(Scheduler):
    """Jobs as tasks of Ray, a core each.

    Args:
        address: of a cluster, as `ray.init` takes it; `HERE` for one of this machine.
        jobs: how many at a time, on this machine; a cluster runs as many as it has cores for.
        programs: folder for compiled XLA programs, which jobs share.
    """

    def __init__(self, address: str, jobs: int, programs: Path):
        import ray  # an extra, needed only with --ray

        self._ray = ray
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if address == HERE:
            options |= {"num_cpus": jobs, "include_dashboard": False}
            options["_system_config"] = {"worker_niceness": 0}  # as a local process has it
        try:
            ray.init(address=address, **options)
        except ConnectionError as error:
            raise ValueError(f"no Ray cluster at {address!r}: {error}") from None
        self.width = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self.queue = sys.maxsize  # Ray knows best where there is room
        self._environment = variables(programs, one_thread=True)
        # A worker runs one job: the next has a TensorFlow of its own.
        self._task = ray.remote(num_cpus=1, max_calls=1, max_retries=RETRIES)(run_job)
        self._running: dict[Any, Job] = {}

    def start(self, job: Job) -> None:
        absolute = job._replace(log=job.log.absolute())
        task = self._task.options(name=job.name).remote(absolute, os.getcwd(), self._environment)
        self._running[task] = absolute

    def ended(self) -> dict[str, bool]:
        if not self._running:
            return {}
        tasks = list(self._running)
        over, _ = self._ray.wait(tasks, num_returns=len(tasks), timeout=0)
        return {self._running[task].name: self._went_well(task) for task in over}

    def _went_well(self, task: Any) -> bool:
        job = self._running.pop(task)
        try:
            return self._ray.get(task) == 0
        except self._ray.exceptions.RayError as error:
            with open(job.log, "a") as log:
                log.write(f"Ray gave up: {error}\n")
            return False

    def stop(self, seconds: float) -> None:
        for task in self._running:
            self._ray.cancel(task)
        tasks = list(self._running)
        self._ray.wait(tasks, num_returns=len(tasks), timeout=seconds) if tasks else None

    def close(self) -> None:
        self._ray.shutdown()
