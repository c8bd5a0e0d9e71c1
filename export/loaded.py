"""One version of one model: its signatures, and running them on NumPy arrays.

The graph is loaded into a session and each signature becomes a session callable, as TF Serving
does; the eager route, `tf.saved_model.load`, takes longer for each call on small models.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2, meta_graph_pb2

from lemn_tf.export import messages, protos, tensors
from lemn_tf.export.errors import Code, ServingError, invalid, late, shorten
from lemn_tf.export.limits import Limits
from lemn_tf.export.loops import has_loop
from lemn_tf.export.tensors import Arrays

DEFAULT = "serving_default"
"""The signature that a request without a name means."""
WARM_UP = Path("assets.extra", "tf_serving_warmup_requests")
_MOST_WARM_UPS = 1000
_LONGEST_WARM_UP = 600.0  # seconds
_MOST_KINDS = 1024
_QUICK = 0.05  # seconds
_HELPERS = 8  # threads for calls whose time is watched
_NODES = re.compile(r"\{\{function_node \S+?\}\} ?")
_CODES = {code.value: code for code in Code}


class LoadedSignature:
    """A named function of a model.

    Attributes:
        name: as callers know it.
        inputs, outputs: name to `Spec`.
        batches: whether requests may be joined: every tensor has a first dimension of any size.
        loops: whether there is a loop in it, so that a call may take any time.
    """

    def __init__(
        self,
        name: str,
        definition: meta_graph_pb2.SignatureDef,
        session: tf.compat.v1.Session,
        loops: bool = True,
        limits: Limits | None = None,
    ):
        self.name, self.definition, self.loops, self.limits = name, definition, loops, limits
        inputs, outputs = definition.inputs, definition.outputs
        self.inputs = {k: tensors.Spec.of(k, inputs[k], limits) for k in inputs}
        self.outputs = {k: tensors.Spec.of(k, outputs[k]) for k in outputs}
        specs = [*self.inputs.values(), *self.outputs.values()]
        self.batches = bool(self.inputs) and all(spec.rows for spec in specs)
        self._session, self._lock = session, threading.Lock()
        self._callable: Callable[..., list[np.ndarray]] | None = None
        self._feeds = [spec.tensor for spec in self.inputs.values()]
        self._fetches = [spec.tensor for spec in self.outputs.values()]
        self._took: dict[tuple, float] = {}  # seconds of the last call, by shapes
        self.on_run: Callable[[int, float], None] | None = None  # told rows and seconds of calls
        self._streams = [s for s in self.inputs.values() if None in (s.shape or ())[1:]]

    def _prepared(self) -> Callable[..., list[np.ndarray]]:
        with self._lock:
            if self._callable is None:
                options = config_pb2.CallableOptions(feed=self._feeds, fetch=self._fetches)
                options.run_options.inter_op_thread_pool = -1  # the thread that asks
                # The public `make_callable` goes through `Session.run`: twice the time a call.
                self._callable = self._session._make_callable_from_options(options)
            return self._callable

    def check_names(self, names: Mapping) -> None:
        """Raises INVALID_ARGUMENT unless `names` are exactly the inputs."""
        if names.keys() != self.inputs.keys():
            missing = sorted(self.inputs.keys() - names.keys())
            extra = sorted(names.keys() - self.inputs.keys())
            raise invalid(
                f"signature {self.name!r} takes the inputs {sorted(self.inputs)}; "
                f"missing {missing}, unknown {shorten(extra, 300)}"
            )

    def rows(self, arrays: Arrays) -> int:
        """The batch size of a request; raises INVALID_ARGUMENT if its inputs disagree."""
        if not self.batches:
            return 1
        counts = {array.shape[0] for array in arrays.values()}
        if len(counts) > 1:
            sizes = {name: array.shape[0] for name, array in arrays.items()}
            most = max(sizes, key=sizes.__getitem__)
            least = min(sizes, key=sizes.__getitem__)
            raise invalid(
                f"all inputs must have the same number of rows; got {sizes[least]} in input "
                f"{least!r} and {sizes[most]} in input {most!r}"
            )
        return counts.pop()

    def steps(self, arrays: Arrays) -> int:
        """The largest size, but for the rows, of a dimension where any size fits."""
        most = 1
        for spec in self._streams:
            assert spec.shape is not None
            sizes = zip(arrays[spec.name].shape[1:], spec.shape[1:], strict=True)
            most = max(most, *(size for size, want in sizes if want is None))
        return most

    def __call__(self, arrays: Arrays, deadline: float | None = None) -> Arrays:
        """Runs the signature.

        Args:
            arrays: inputs that have been checked.
            deadline: `time.monotonic()` at which the call is given up.
        """
        self._check_answer(arrays)
        values = [arrays[name] for name in self.inputs]
        start = time.monotonic()
        try:
            if deadline is None or not self.loops:
                results = (self._callable or self._prepared())(*values)
            else:
                results = self._watched(values, deadline)
        except tf.errors.OpError as error:
            raise from_tensorflow(error, f"signature {self.name!r}") from error
        if self.on_run is not None:
            self.on_run(self.rows(arrays), time.monotonic() - start)
        return dict(zip(self.outputs, results, strict=True))

    def _watched(self, values: list[np.ndarray], deadline: float) -> list[np.ndarray]:
        """A call that ends at the deadline, unless calls of its shapes are known to be quick.

        TensorFlow can only watch the time from another thread than the one that works: that costs
        a hand-over, so it is not done where the shapes say how often the loop goes round.
        """
        kind = tuple([value.shape for value in values])
        start = time.monotonic()
        if self._streams and self._took.get(kind, _QUICK) < _QUICK:
            results = (self._callable or self._prepared())(*values)
        else:
            left = max(int(1e3 * (deadline - start)), 1)
            options = config_pb2.RunOptions(timeout_in_ms=left)
            feeds = dict(zip(self._feeds, values, strict=True))
            results = self._session.run(self._fetches, feeds, options)
        if len(self._took) > _MOST_KINDS:
            self._took = {}
        self._took[kind] = time.monotonic() - start
        return results

    def _check_answer(self, arrays: Arrays) -> None:
        """Raises RESOURCE_EXHAUSTED if the numbers of the answer alone would be too large."""
        if self.limits is None or not self.batches:
            return
        rows, steps = self.rows(arrays), self.steps(arrays)
        each_row, each_step = self._answer_bytes
        size = rows * (each_row + steps * each_step)
        if size > self.limits.answer_bytes:
            raise ServingError(
                Code.RESOURCE_EXHAUSTED,
                f"signature {self.name!r}: the answer would have {size} bytes or more; "
                f"at most {self.limits.answer_bytes} are given",
            )

    @functools.cached_property
    def _answer_bytes(self) -> tuple[int, int]:
        """Bytes of the numbers in an answer, for each row, and more for each step of a row."""
        sizes = [0, 0]
        for spec in self.outputs.values():
            shape = (spec.shape or ())[1:]
            sizes[None in shape] += math.prod(n or 1 for n in shape) * spec.dtype.itemsize
        return sizes[0], sizes[1]


def from_tensorflow(error: tf.errors.OpError, where: str) -> ServingError:
    """What the graph said, without the list of nodes behind it.

    Args:
        error: raised by TensorFlow.
        where: the signature that was run.
    """
    if isinstance(error, tf.errors.DeadlineExceededError):
        return late(f"{where}: not done before the deadline")
    message = (error.message or type(error).__name__).split("\n\t [[")[0]
    message = _NODES.sub("", message).removeprefix("Graph execution error:")
    message = " ".join(message.split())
    code = _CODES.get(error.error_code, Code.INTERNAL)
    return ServingError(code, f"{where}: {message}")


@contextlib.contextmanager
def _quiet():
    """Hides the advice to use the eager loader, which is meant for other uses than this."""
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel("ERROR")
    try:
        yield
    finally:
        logger.setLevel(level)


class LoadedModel:
    """A loaded SavedModel.

    Args:
        path: the SavedModel's folder.
        name: of the model.
        version: of the model.
        threads: that one operation may use, 0 for as many as there are cores. TensorFlow has one
            pool for the process: the first model that is loaded decides.
        limits: on what a request may ask for; None for no limits.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        name: str = "",
        version: int = 1,
        threads: int = 1,
        limits: Limits | None = None,
    ):
        self.path, self.name, self.version = Path(path), name, version
        if not (self.path / "saved_model.pb").is_file():
            raise FileNotFoundError(f"{self.path}: expected a SavedModel; found no saved_model.pb")
        graph = tf.Graph()
        # Small graphs run fastest on the thread that asks, without hand-over between operations;
        # only calls whose time is watched use the pool. Rewriting the graph first doubles the time
        # to load and gains nothing measurable here.
        config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=threads)
        config.session_inter_op_thread_pool.add(num_threads=_HELPERS, global_name="lemn_tf")
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        config.graph_options.optimizer_options.opt_level = -1
        self._session = tf.compat.v1.Session(graph=graph, config=config)
        try:
            with graph.as_default(), _quiet():
                loaded = tf.compat.v1.saved_model.loader.load(
                    self._session, [tf.saved_model.SERVING], os.fspath(self.path)
                )
        except BaseException:
            self._session.close()
            raise
        self.signatures = {}
        for key, definition in loaded.signature_def.items():
            if not key.startswith("__"):
                loops = has_loop(loaded.graph_def, [x.name for x in definition.outputs.values()])
                self.signatures[key] = LoadedSignature(
                    key, definition, self._session, loops, limits
                )

    def signature(self, name: str = "") -> LoadedSignature:
        """The signature called `name`, or the default one."""
        name = name or DEFAULT
        if name not in self.signatures:
            raise ServingError(
                Code.FAILED_PRECONDITION,
                f"no signature {shorten(name)}; this model has {sorted(self.signatures)}",
            )
        return self.signatures[name]

    def run(self, signature: str, arrays: Mapping[str, np.ndarray]) -> Arrays:
        """Checks the inputs and runs one signature."""
        target = self.signature(signature)
        target.check_names(arrays)
        checked = {name: target.inputs[name].check(value) for name, value in arrays.items()}
        target.rows(checked)
        return target(checked)

    def warm_up(self) -> int:
        """Runs the requests in `assets.extra/tf_serving_warmup_requests`; returns how many."""
        path = self.path / WARM_UP
        if not path.is_file():
            return 0
        count = 0
        for record in tf.data.TFRecordDataset(os.fspath(path)).take(_MOST_WARM_UPS):
            log = messages.PredictionLog.FromString(record.numpy())
            request = log.predict_log.request
            signature = self.signature(request.model_spec.signature_name)
            signature.check_names(request.inputs)
            specs = signature.inputs
            arrays = {k: protos.decode(v, specs[k]) for k, v in request.inputs.items()}
            signature(arrays)
            if signature.loops:  # both ways of running it
                signature(arrays, time.monotonic() + _LONGEST_WARM_UP)
            count += 1
        return count

    def close(self) -> None:
        """Frees the model; nothing may be running in it."""
        self._session.close()
