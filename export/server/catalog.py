"""Which models there are, and which of their versions are loaded: follows the folders.

    models/babi/1/saved_model.pb          a model `babi` with the versions 1 and 2;
    models/babi/2/saved_model.pb          requests that name no version get 2

A new version is loaded and warmed up beside the old one and only then takes over; the old one is
freed when its last request is done. A folder that cannot be loaded leaves everything as it was.
"""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Mapping
from concurrent import futures
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lemn_tf.export.errors import not_found, shorten
from lemn_tf.export.folders import find_models, fingerprint, versions
from lemn_tf.export.limits import Limits
from lemn_tf.export.loaded import LoadedModel, LoadedSignature
from lemn_tf.export.server.batching import Batcher, Tell
from lemn_tf.export.server.gate import Gate
from lemn_tf.export.server.metrics import Metrics
from lemn_tf.export.server.signing import StateKey
from lemn_tf.export.tensors import Arrays

log = logging.getLogger("lemn_tf.server")

_THREADS = 128  # for calls of models, and for what is long to read or to write


@dataclass
class Version:
    """A loaded version with its batchers, and how many requests are using it."""

    model: LoadedModel
    batchers: dict[str, Batcher]
    lock: threading.Lock
    key: StateKey | None = None
    users: int = 0
    retired: bool = False

    def submit(
        self,
        signature: LoadedSignature,
        arrays: Arrays,
        deadline: float | None,
        tell: Tell,
        ticket: Any,
    ) -> None:
        """Has a request run, see `Batcher.submit`; `sealed` has what its caller is to get.

        Args:
            signature: one of the model's.
            arrays: checked inputs.
            deadline: `time.monotonic()` after which nobody wants the answer.
            tell: is called with entries that have a result.
            ticket: is kept with the entry.
        """
        opened = self._opened(signature, arrays)
        self.batchers[signature.name].submit(opened, deadline, tell, ticket)

    async def run_from_loop(
        self, signature: LoadedSignature, arrays: Arrays, deadline: float | None
    ) -> tuple[Arrays, int]:
        """As `submit`, for an event loop: the outputs, and how many requests shared the call."""
        opened = self._opened(signature, arrays)
        outputs, batch = await self.batchers[signature.name].run_from_loop(opened, deadline)
        return self.sealed(signature, outputs), batch

    def _opened(self, signature: LoadedSignature, arrays: Arrays) -> Arrays:
        return self.key.open(self.model, signature, arrays) if self.key else arrays

    def sealed(self, signature: LoadedSignature, outputs: Arrays) -> Arrays:
        """The outputs with their states signed, if this server does that."""
        return self.key.seal(signature, outputs) if self.key else outputs

    def __enter__(self) -> Version:
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()

    def release(self) -> None:
        """Ends a lease; the last one of a retired version frees the model."""
        with self.lock:
            self.users -= 1
            free = self.retired and not self.users
        if free:
            self.model.close()


@dataclass
class Status:
    """What became of one version: LOADING, AVAILABLE, UNLOADING or END, as TF Serving says it."""

    state: str
    error: str = ""


@dataclass
class Shelf:
    """One model: where its versions lie, which are loaded, and what became of each."""

    name: str
    base: Path
    loaded: dict[int, Version] = field(default_factory=dict)
    status: dict[int, Status] = field(default_factory=dict)
    seen: dict[int, tuple] = field(default_factory=dict)  # fingerprints at the last look
    failed: dict[int, tuple] = field(default_factory=dict)  # fingerprints that did not load


class Catalog:
    """The models under one folder.

    Args:
        path: a SavedModel, a folder of numbered versions, or a folder of such folders.
        name: of the model, if there is only one; the folder's name if not given.
        labels: label to version, e.g. `{"stable": 1}`; labelled versions stay loaded.
        keep: how many of the newest versions stay loaded.
        batch_rows: rows in one batch.
        poll: seconds between looks at the folders; 0 for never.
        threads: that one operation may use, 0 for as many as there are cores; small models are
            fastest with 1.
        limits: on what one request may ask for.
        key: to sign packed states with; None leaves them unsigned.
    """

    def __init__(
        self,
        path: str | Path,
        name: str | None = None,
        labels: Mapping[str, int] | None = None,
        keep: int = 2,
        batch_rows: int = 64,
        poll: float = 1.0,
        threads: int = 1,
        limits: Limits | None = None,
        key: StateKey | None = None,
    ):
        if keep < 1:
            raise ValueError(f"expected to keep at least 1 version; got keep={keep}")
        self.labels = dict(labels or {})
        self.keep, self.batch_rows, self.poll, self.threads = keep, batch_rows, poll, threads
        self.limits, self._gate, self._key = limits or Limits(), Gate(), key
        self.metrics = Metrics()
        self.pool = futures.ThreadPoolExecutor(_THREADS, thread_name_prefix="work")
        found = find_models(Path(path), name)
        self.models = {name: Shelf(name, base) for name, base in found.items()}
        self._lock, self._stop = threading.Lock(), threading.Event()
        for model in self.models.values():
            self._refresh(model, wait_until_stable=False)
            if not model.loaded:
                problems = "; ".join(f"{v}: {s.error}" for v, s in model.status.items())
                raise ValueError(f"{model.base}: no version of {model.name!r} loads ({problems})")
        self._check_labels()
        self._watcher = threading.Thread(target=self._watch, name="versions", daemon=True)
        if poll:
            self._watcher.start()

    def _check_labels(self) -> None:
        """Raises unless every label names a version that is loaded."""
        there = {number for model in self.models.values() for number in model.loaded}
        for label, number in self.labels.items():
            if number not in there:
                raise ValueError(
                    f"label {label}={number}: there is no version {number} that loads; "
                    f"there are {sorted(there)}"
                )

    def lease(self, name: str, version: int | None = None, label: str = "") -> Version:
        """The version that a request means, which stays loaded until it is released."""
        with self._lock:
            chosen = self._find(name, version, label)
            chosen.users += 1
        return chosen

    def model(self, name: str) -> Shelf:
        """The model called `name`; an empty name means the only one."""
        if not name and len(self.models) == 1:
            return next(iter(self.models.values()))
        if name not in self.models:
            raise not_found(f"no model {shorten(name)}; there are {sorted(self.models)}")
        return self.models[name]

    def count(self, name: str, status: str, entrypoint: str, seconds: float) -> None:
        """Counts a request to `predict`, see `Metrics.request`; an unknown name counts as ""."""
        known = name if name in self.models else ""
        if not name and len(self.models) == 1:
            known = next(iter(self.models))
        self.metrics.request(known, status, entrypoint, seconds)

    def _find(self, name, version, label) -> Version:
        model = self.model(name)
        if label:
            if label not in self.labels:
                raise not_found(f"no label {shorten(label)}; there are {sorted(self.labels)}")
            version = self.labels[label]
        if version is None:
            version = max(model.loaded)
        if version not in model.loaded:
            raise not_found(
                f"model {model.name!r} has no version {version} loaded; "
                f"there are {sorted(model.loaded)}"
            )
        return model.loaded[version]

    def statuses(self, name: str, version: int | None = None, label: str = "") -> dict[int, Status]:
        """Version to status, newest first; only the one that was asked for, if any."""
        with self._lock:
            model = self.model(name)
            if label:
                version = self._find(name, version, label).model.version
            if version is not None and version not in model.status:
                raise not_found(
                    f"model {model.name!r} has no version {version}; "
                    f"there are {sorted(model.status)}"
                )
            wanted = sorted(model.status, reverse=True) if version is None else [version]
            return {number: model.status[number] for number in wanted}

    def close(self) -> None:
        """Stops watching and frees every model; calls that are still under way are cut off."""
        self._stop.set()
        if self._watcher.is_alive():
            self._watcher.join()
        self._gate.close()
        self.pool.shutdown(wait=False, cancel_futures=True)
        for model in self.models.values():
            for number, version in list(model.loaded.items()):
                self._retire(model, number)
                version.model.close()

    # -- versions come and go ---------------------------------------------------------------------

    def _watch(self) -> None:
        while not self._stop.wait(self.poll):
            for model in self.models.values():
                try:
                    self._refresh(model)
                except Exception:
                    log.exception("looking for versions of %s failed", model.name)

    def _refresh(self, model: Shelf, wait_until_stable: bool = True) -> None:
        """Loads what is new and frees what is no longer wanted."""
        prints = {number: fingerprint(path) for number, path in versions(model.base).items()}
        labelled = set(self.labels.values()) & prints.keys()
        good = 0  # versions that load, from the newest; for broken ones, older ones stay
        for number in sorted(prints, reverse=True):
            if good >= self.keep and number not in labelled:
                continue
            still_written = wait_until_stable and model.seen.get(number) != prints[number]
            failed = model.failed.get(number) == prints[number]
            if number not in model.loaded and not failed and not still_written:
                self._load(model, number, prints[number])
            good += number in model.loaded
        model.seen = prints
        present = sorted(number for number in model.loaded if number in prints)
        wanted = set(present[-self.keep :]) | labelled or set(model.loaded)
        for number in sorted(model.loaded.keys() - wanted):
            self._retire(model, number)

    def _load(self, model: Shelf, number: int, print_: tuple) -> None:
        path = versions(model.base)[number]
        with self._lock:
            model.status[number] = Status("LOADING")
        try:
            loaded = LoadedModel(path, model.name, number, self.threads, self.limits)
            warmed = loaded.warm_up()
        except Exception as error:
            model.failed[number] = print_
            # Callers are told what went wrong, but not where on this machine.
            said = f"{type(error).__name__}: {error}".replace(str(path), f"{model.name}/{number}")
            said = said.replace(str(model.base), model.name)[:1000]
            with self._lock:
                model.status[number] = Status("END", said)
            log.error("loading %s version %d failed: %s", model.name, number, error)
            return
        for key, signature in loaded.signatures.items():
            signature.on_run = functools.partial(self.metrics.run, model.name, key)
        batchers = {
            k: Batcher(s, self.pool, self.batch_rows, self._gate)
            for k, s in loaded.signatures.items()
        }
        with self._lock:
            model.loaded[number] = Version(loaded, batchers, self._lock, self._key)
            model.status[number] = Status("AVAILABLE")
        log.info("loaded %s version %d (%d warm-up requests)", model.name, number, warmed)

    def _retire(self, model: Shelf, number: int) -> None:
        with self._lock:
            version = model.loaded.pop(number)
            version.retired = True
            free = not version.users
            model.status[number] = Status("END")
        log.info("unloaded %s version %d", model.name, number)
        if free:
            version.model.close()
