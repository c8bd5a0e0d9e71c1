"""What operators watch, in Prometheus's text format and under TF Serving's names.

`GET /monitoring/prometheus/metrics` gives

- `:tensorflow:serving:request_count`, by model and status: requests to `predict`, and errors;
- `:tensorflow:serving:request_latency`, by model and entry point: microseconds of whole requests;
- `:tensorflow:serving:runtime_latency`, by model: microseconds of the calls that answered them;
- `:tensorflow:serving:batching:batch_size`, by model and signature: rows of those calls;
- `:tensorflow:serving:batching_session:wrapped_run_count`: how many calls there were.
"""

from __future__ import annotations

import bisect
import itertools
import threading
from collections.abc import Sequence

PATH = "/monitoring/prometheus/metrics"
"""Where TF Serving has them too, with `monitoring.config`."""
CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
"""Of the text format."""
_PREFIX = ":tensorflow:serving:"


def exponential(scale: float, growth: float, count: int) -> list[float]:
    """The upper bounds of buckets, each `growth` times the one before.

    Example:

    >>> exponential(10, 2, 3)
    [10.0, 20.0, 40.0]
    """
    return [scale * growth**power for power in (float(n) for n in range(count))]


class Counter:
    """Something that is counted, by labels.

    Args:
        name: without the prefix.
        labels: names of the labels.
    """

    kind = "counter"

    def __init__(self, name: str, labels: Sequence[str] = ()):
        self.name, self.labels = _PREFIX + name, labels
        self._cells: dict[tuple[str, ...], int] = {}
        self._lock = threading.Lock()

    def add(self, *values: str) -> None:
        """Counts one more for these values of the labels."""
        with self._lock:
            self._cells[values] = self._cells.get(values, 0) + 1

    def lines(self) -> list[str]:
        """In the text format."""
        with self._lock:
            cells = sorted(self._cells.items())
        return [f"{self.name}{_braces(self.labels, values)} {count}" for values, count in cells]


class Histogram:
    """How often a quantity was how large, by labels.

    Args:
        name: without the prefix.
        labels: names of the labels.
        bounds: upper bounds of the buckets; a last one without a bound is added.
    """

    kind = "histogram"

    def __init__(self, name: str, labels: Sequence[str], bounds: Sequence[float]):
        self.name, self.labels, self.bounds = _PREFIX + name, labels, bounds
        self._cells: dict[tuple[str, ...], tuple[list[int], list[float]]] = {}
        self._lock = threading.Lock()

    def add(self, quantity: float, *values: str) -> None:
        """Adds a quantity for these values of the labels."""
        bucket = bisect.bisect_left(self.bounds, quantity)
        with self._lock:
            if values not in self._cells:
                self._cells[values] = [0] * (len(self.bounds) + 1), [0.0]
            counts, total = self._cells[values]
            counts[bucket] += 1
            total[0] += quantity

    def lines(self) -> list[str]:
        """In the text format: buckets with all that is not above their bound, sum and count."""
        with self._lock:
            cells = sorted(
                (v, list(counts), total[0]) for v, (counts, total) in self._cells.items()
            )
        made = []
        bounds = [*(f"{bound:.6g}" for bound in self.bounds), "+Inf"]
        for values, counts, total in cells:
            for bound, below in zip(bounds, itertools.accumulate(counts), strict=True):
                braces = _braces((*self.labels, "le"), (*values, bound))
                made.append(f"{self.name}_bucket{braces} {below}")
            braces = _braces(self.labels, values)
            made.append(f"{self.name}_sum{braces} {total:.6f}")
            made.append(f"{self.name}_count{braces} {sum(counts)}")
        return made


class Metrics:
    """All that a server counts."""

    def __init__(self) -> None:
        times, sizes = exponential(10, 1.8, 33), exponential(1, 1.5, 20)
        self._requests = Counter("request_count", ("model_name", "status"))
        labels = ("model_name", "API", "entrypoint")
        self._latency = Histogram("request_latency", labels, times)
        self._runtime = Histogram("runtime_latency", ("model_name", "API", "runtime"), times)
        self._batches = Histogram("batching:batch_size", ("model_name", "op_name"), sizes)
        self._runs = Counter("batching_session:wrapped_run_count")

    def request(self, model: str, status: str, entrypoint: str, seconds: float) -> None:
        """Counts a request to `predict`.

        Args:
            model: its name; "" for one that is not here.
            status: name of the code that it ended with, such as "OK".
            entrypoint: "REST" or "GRPC".
            seconds: that it took.
        """
        self._requests.add(model, status)
        if status == "OK":
            self._latency.add(1e6 * seconds, model, "predict", entrypoint)

    def run(self, model: str, signature: str, rows: int, seconds: float) -> None:
        """Counts a call of a signature, which may have answered several requests."""
        self._runs.add()
        self._runtime.add(1e6 * seconds, model, "Predict", "TF1")
        self._batches.add(rows, model, signature)

    def text(self) -> str:
        """All of it in the text format."""
        parts = (self._requests, self._latency, self._runtime, self._batches, self._runs)
        lines = [line for one in parts for line in (f"# TYPE {one.name} {one.kind}", *one.lines())]
        return "\n".join(lines) + "\n"


def _braces(names: Sequence[str], values: Sequence[str]) -> str:
    return "{" + ",".join(f'{k}="{_escaped(v)}"' for k, v in zip(names, values, strict=True)) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
