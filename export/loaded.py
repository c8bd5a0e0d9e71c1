"""One version of one model: its signatures, and running them on NumPy arrays.

The graph is loaded into a session and each signature becomes a session callable, as TF Serving
does; the eager route, `tf.saved_model.load`, takes longer for each call on small models.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2, meta_graph_pb2

from lemn_tf.export import messages, protos, tensors
from lemn_tf.export.errors import Code, ServingError, invalid, shorten
from lemn_tf.export.tensors import Arrays

DEFAULT = "serving_default"
"""The signature that a request without a name means."""
WARM_UP = Path("assets.extra", "tf_serving_warmup_requests")
_MOST_WARM_UPS = 1000
_CODES = {code.value: code for code in Code}


class LoadedSignature:
    """A named function of a model.

    Attributes:
        name: as callers know it.
        inputs, outputs: name to `Spec`.
        batches: whether requests may be joined: every tensor has a first dimension of any size.
    """

    def __init__(self, name: str, definition: meta_graph_pb2.SignatureDef, session):
        self.name = name
        self.definition = definition
        self.inputs = {k: tensors.Spec.of(k, definition.inputs[k]) for k in definition.inputs}
        self.outputs = {k: tensors.Spec.of(k, definition.outputs[k]) for k in definition.outputs}
        specs = [*self.inputs.values(), *self.outputs.values()]
        self.batches = bool(self.inputs) and all(spec.rows for spec in specs)
        self._session, self._callable, self._lock = session, None, threading.Lock()

    def _prepared(self):
        with self._lock:
            if self._callable is None:
                options = config_pb2.CallableOptions(
                    feed=[spec.tensor for spec in self.inputs.values()],
                    fetch=[spec.tensor for spec in self.outputs.values()],
                )
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
        sizes = {name: array.shape[0] for name, array in arrays.items()}
        rows = min(sizes.values())
        if rows != max(sizes.values()):
            most = max(sizes, key=sizes.__getitem__)
            least = min(sizes, key=sizes.__getitem__)
            raise invalid(
                f"all inputs must have the same number of rows; got {sizes[least]} in input "
                f"{least!r} and {sizes[most]} in input {most!r}"
            )
        return rows

    def __call__(self, arrays: Arrays) -> Arrays:
        """Runs the signature on arrays that have been checked."""
        run = self._callable or self._prepared()
        try:
            results = run(*[arrays[name] for name in self.inputs])
        except tf.errors.OpError as error:
            raise from_tensorflow(error, f"signature {self.name!r}") from error
        return dict(zip(self.outputs, results, strict=True))


def from_tensorflow(error: tf.errors.OpError, where: str) -> ServingError:
    """What the graph said, without the list of nodes behind it.

    Args:
        error: raised by TensorFlow.
        where: the signature that was run.
    """
    message = (error.message or type(error).__name__).split("\n\t [[")[0]
    message = " ".join(message.removeprefix("Graph execution error:").split())
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
    """

    def __init__(self, path: str | os.PathLike, name: str = "", version: int = 1, threads: int = 1):
        self.path, self.name, self.version = Path(path), name, version
        if not (self.path / "saved_model.pb").is_file():
            raise FileNotFoundError(f"{self.path}: expected a SavedModel; found no saved_model.pb")
        graph = tf.Graph()
        # Small graphs run fastest on the thread that asks, without hand-over between operations.
        # Rewriting the graph first doubles the time to load and gains nothing measurable here.
        config = tf.compat.v1.ConfigProto(
            inter_op_parallelism_threads=-1, intra_op_parallelism_threads=threads
        )
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
        self.signatures = {
            key: LoadedSignature(key, definition, self._session)
            for key, definition in loaded.signature_def.items()
            if not key.startswith("__")
        }

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
            signature({k: protos.decode(v, specs[k]) for k, v in request.inputs.items()})
            count += 1
        return count

    def close(self) -> None:
        """Frees the model; nothing may be running in it."""
        self._session.close()
