"""Workers: processes that train one model together, each on its own shards of every batch.

A batch is cut into shards, and the gradient of an update is the mean of theirs. Which process
computes a shard does not matter, because its random draws depend on its number. So every worker
takes some of the shards, all add up their results, and each makes the same update:

    found = [gradients(parts[number], number) for number in workers.share(shards)]
    mean = workers.sum(add_up(found)) / shards      # an all-reduce; nothing for a worker alone
    optimizer.apply(mean)                           # the same on every worker

The first worker, the chief, runs the training: it alone validates, decides and writes files. It
tells the others where each stretch begins, and they train with it.

`TF_CONFIG` says who the workers are, as for any distributed TensorFlow:

    {"cluster": {"worker": ["10.0.0.1:2222", "10.0.0.2:2222"]},
     "task": {"type": "worker", "index": 0}}
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import socket
import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

Nest = Any
VARIABLE = "TF_CONFIG"
"""The environment variable that says who the workers are."""
PATIENCE = 120.0
"""Seconds that workers wait for each other at the beginning."""
LOST = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.InternalError,
)
"""What TensorFlow raises when it waits for a worker that is gone."""


class WorkerLost(ConnectionError):
    """A worker that is needed was lost, or never started."""


class Workers:
    """One process that trains alone; `Cluster` is one of several.

    Attributes:
        rank: the number of this process; 0 is the chief.
        count: how many there are.
    """

    rank = 0
    count = 1

    def share(self, shards: int) -> range:
        """The numbers of the shards that this worker computes."""
        if shards % self.count:
            raise ValueError(f"expected shards that {self.count} workers can share, got {shards}")
        each = shards // self.count
        return range(self.rank * each, (self.rank + 1) * each)

    def sum(self, nest: Nest) -> Nest:
        """Tensors of floats, added up over all workers."""
        return nest

    def tell(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Called by the chief: sends arrays to all others, who `hear` them."""

    def hear(self) -> dict[str, np.ndarray]:
        """What the chief sends next."""
        raise ValueError("a worker that trains alone has no chief")

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Raises `WorkerLost` if another worker is lost while the block runs."""
        yield


ALONE = Workers()
"""No other workers."""


class Cluster(Workers):
    """The workers that `TF_CONFIG` names; waits for all of them.

    TensorFlow must not have been used in this process before.
    """

    def __init__(self) -> None:
        addresses, self.rank = read_config(os.environ[VARIABLE])
        self.count = len(addresses)
        meet(addresses, self.rank, PATIENCE)
        kind = tf.distribute.experimental.CommunicationImplementation.RING
        options = tf.distribute.experimental.CommunicationOptions(implementation=kind)
        self._strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)

    def sum(self, nest: Nest) -> Nest:
        leaves = [tf.convert_to_tensor(leaf) for leaf in tf.nest.flatten(nest)]
        joined = tf.concat([tf.reshape(tf.cast(leaf, tf.float32), [-1]) for leaf in leaves], axis=0)
        parts = tf.split(self._reduced(joined), [tf.size(leaf) for leaf in leaves])
        summed = [
            tf.cast(tf.reshape(part, tf.shape(leaf)), leaf.dtype)
            for part, leaf in zip(parts, leaves, strict=True)
        ]
        return tf.nest.pack_sequence_as(nest, summed)

    def _reduced(self, tensor: tf.Tensor) -> tf.Tensor:
        def reduce(value: tf.Tensor) -> tf.Tensor:
            context = tf.distribute.get_replica_context()
            # The reduction needs the device of its tensor, which a new one has.
            return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.identity(value))

        return self._strategy.run(reduce, args=(tensor,))

    def tell(self, arrays: Mapping[str, np.ndarray]) -> None:
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)  # type: ignore[arg-type]
        content = np.frombuffer(buffer.getvalue(), np.uint8).astype(np.int32)
        with self.together():
            self._reduced(tf.constant([content.size]))
            self._reduced(tf.constant(content))

    def hear(self) -> dict[str, np.ndarray]:
        with self.together():
            size = self._reduced(tf.constant([0]))
            content = self._reduced(tf.zeros(size, tf.int32))
        buffer = io.BytesIO(content.numpy().astype(np.uint8).tobytes())
        with np.load(buffer, allow_pickle=False) as file:
            return dict(file)

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        try:
            yield
        except LOST as error:
            found = re.search(r"aborted by: (.+)", error.message or "")
            cause = found[1] if found else type(error).__name__
            raise WorkerLost(
                f"worker {self.rank + 1} of {self.count} lost contact with another one ({cause})"
            ) from None


def read_config(text: str) -> tuple[list[str], int]:
    """The addresses of all workers and the number of this one, from the text of `TF_CONFIG`.

    Example:

    >>> read_config(write_config(["a:1", "b:1"], 1))
    (['a:1', 'b:1'], 1)
    """
    try:
        config = json.loads(text)
        addresses, task = config["cluster"]["worker"], config["task"]
        rank = task["index"]
        if [*config["cluster"]] == ["worker"] == [task["type"]] and addresses[rank:]:
            return addresses, rank
    except (ValueError, KeyError, TypeError):
        pass
    example = write_config(["HOST:PORT", "HOST:PORT"], 0)
    raise ValueError(f"{VARIABLE}: expected workers only, such as {example}; got {text!r}")


def write_config(addresses: list[str], rank: int) -> str:
    """The text of `TF_CONFIG` for the worker of that number."""
    return json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": rank}})


def meet(addresses: list[str], rank: int, seconds: float) -> None:
    """Waits until every worker is there, or raises: TensorFlow itself would wait for an hour."""
    host, _, port = addresses[0].rpartition(":")
    deadline = time.monotonic() + seconds
    try:
        if rank == 0:
            _await(int(port), len(addresses) - 1, deadline)
        else:
            _arrive(host, int(port), rank, deadline)
    except TimeoutError:
        others = "all other workers" if rank == 0 else f"the chief at {addresses[0]}"
        raise WorkerLost(
            f"worker {rank + 1} of {len(addresses)} waited {seconds:.0f} s for {others}, in vain"
        ) from None


def _await(port: int, others: int, deadline: float) -> None:
    """The chief's part: waits until every other worker has called, then answers all at once."""
    calls: dict[bytes, socket.socket] = {}
    with contextlib.ExitStack() as stack:
        with socket.create_server(("", port)) as server:
            while len(calls) < others:
                server.settimeout(max(deadline - time.monotonic(), 0.01))
                call = stack.enter_context(server.accept()[0])
                call.settimeout(max(deadline - time.monotonic(), 0.01))
                calls[call.recv(8)] = call
        for call in calls.values():
            call.sendall(b"go")


def _arrive(host: str, port: int, rank: int, deadline: float) -> None:
    """The other workers' part: calls the chief until it answers."""
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        try:
            with socket.create_connection((host, port), timeout=left) as call:
                call.sendall(b"%d" % rank)
                if call.recv(2) == b"go":
                    return
        except ConnectionError:  # nobody listens yet
            time.sleep(0.1)
