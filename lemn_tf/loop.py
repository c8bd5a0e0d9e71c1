"""The loop of every training run, whatever it trains: validate, keep the best, checkpoint, resume.

A run is a folder:

    config.json      how it was made
    history.jsonl    one line for each validation
    checkpoint.npz   weights, optimizer and position, written whole or not at all
    model.*          the model that validated best so far

What is trained is a `Trainee`: it supplies the steps, and the loop does the rest.

    while not trainee.finished:
        line = trainee.advance()                # trains up to the next validation, and validates
        if trainee.rank(line) >= best: ...      # saves the model
        run.log(line)
        run.save(trainee.arrays(), ...)         # the next process goes on from here

If each step of a trainee depends on nothing but its seed and its number, a run that was stopped and
resumed gives the same numbers as one that was not.
"""

from __future__ import annotations

import abc
import ctypes
import dataclasses
import fcntl
import io
import json
import math
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np

from lemn_tf.files import parsed, replacing, write_atomically
from lemn_tf.learning.workers import WorkerLost

HISTORY = "history.jsonl"
FILES = "files"
"""The key in a config for paths as given; only the contents of the files must match."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C stopped a run; the message says what is saved and how to go on."""


class Run:
    """The folder of a run.

    Args:
        folder: made if missing.
        config: how the run is made; a folder with another config (`FILES` aside) is refused.
    """

    def __init__(self, folder: str | os.PathLike, config: dict[str, Any]):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._checkpoint = self.folder / "checkpoint.npz"
        self._history = self.folder / HISTORY
        self._claim()
        path = self.folder / "config.json"
        text = json.dumps(config, indent=1, sort_keys=True)
        if path.exists():
            changed = differing(parsed(path, path.read_bytes()), json.loads(text))
            if changed:
                raise ValueError(
                    f"{folder} holds a run made with other settings ({', '.join(changed)} differ): "
                    "choose another folder, or the same settings to resume"
                )
        write_atomically(path, text)

    def _claim(self) -> None:
        """Locks the folder for this process; the system unlocks it when the process ends."""
        self._lock = open(self.folder / ".lock", "w")  # noqa: SIM115 (held as long as the run)
        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ValueError(
                f"another process is training in {self.folder}: wait for it, or choose another "
                "folder"
            ) from None

    def save(self, arrays: dict[str, np.ndarray]) -> None:
        """Writes the checkpoint."""
        save_arrays(self._checkpoint, **arrays)

    def load(self) -> dict[str, np.ndarray] | None:
        """The arrays of the checkpoint; None if there is none."""
        if not self._checkpoint.exists():
            return None
        try:
            with np.load(self._checkpoint, allow_pickle=False) as file:
                arrays = dict(file)
            if not arrays:
                raise ValueError("nothing in it")
            return arrays
        except Exception as error:  # a damaged zip file can fail in many ways
            raise ValueError(
                f"{self._checkpoint} is damaged ({error}): remove it to train from the beginning, "
                "or choose another folder"
            ) from error

    def log(self, line: dict[str, Any]) -> None:
        """Adds a line to the history."""
        with open(self._history, "a") as file:
            file.write(json.dumps(line) + "\n")

    def history(self) -> list[dict[str, Any]]:
        """The lines of the history."""
        return history(self.folder)

    def keep_history(self, count: int) -> None:
        """Drops all lines but the first `count`: what came after will be written again."""
        kept = [json.dumps(line) + "\n" for line in self.history()[:count]]
        write_atomically(self._history, "".join(kept))


def history(folder: str | os.PathLike) -> list[dict[str, Any]]:
    """The lines of a run's history; none without a run.

    A killed process may leave an unfinished last line, which is left out.
    """
    path = Path(folder) / HISTORY
    lines = path.read_bytes().splitlines() if path.exists() else []
    if lines and not lines[-1].endswith(b"}"):
        del lines[-1]
    return [parsed(path, line) for line in lines]


def differing(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The keys in which two configs of runs differ, `FILES` aside."""
    keys = {*one, *other} - {FILES}
    return sorted(key for key in keys if one.get(key) != other.get(key))


def is_claimed(folder: str | os.PathLike) -> bool:
    """Whether a process is training in a folder at this moment."""
    path = Path(folder) / ".lock"
    if not path.exists():
        return False
    with open(path, "a") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def save_arrays(path: str | os.PathLike, *arrays: np.ndarray, **named: np.ndarray) -> None:
    """Does what `np.savez` does, whole or not at all."""
    buffer = io.BytesIO()
    np.savez(buffer, *arrays, **named)  # type: ignore[arg-type]
    write_atomically(path, buffer.getvalue())


class Trainee(abc.ABC):
    """What a run trains.

    Args:
        model: its weights are trained, and in the end are those that validated best.
        position: whole numbers that say how far training is, such as `{"update": 0}`; `advance`
            increases them, and checkpoints keep them.
    """

    file = "model.keras"
    """Name of the file for the best model."""

    def __init__(self, model: keras.Model, position: dict[str, int]):
        self.model, self.position = model, position

    @property
    @abc.abstractmethod
    def optimizer(self) -> keras.optimizers.Optimizer:
        """The optimizer in use; checkpoints keep its variables."""

    @property
    @abc.abstractmethod
    def finished(self) -> bool:
        """Whether training is at its end."""

    @abc.abstractmethod
    def advance(self) -> dict[str, Any]:
        """Trains up to the next validation, validates, and returns the line for the history."""

    @abc.abstractmethod
    def rank(self, line: dict[str, Any]) -> tuple[float, ...] | None:
        """How good the validation in a line is (larger is better); None if it does not count."""

    @abc.abstractmethod
    def where(self) -> str:
        """The position in words, such as "60 of 90 frames"."""

    def settle(self) -> bool:
        """Called when `advance` was stopped: whether training can go on from exactly here.

        Ctrl-C or a lost worker stops it. If False, the run goes on from its last validation.
        """
        return False

    def save(self, path: Path) -> None:
        """Saves the model."""
        self.model.save(path)

    def saved_weights(self, path: Path) -> list[np.ndarray]:
        """The weights of a model that `save` wrote."""
        return keras.saving.load_model(path, compile=False).get_weights()

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything needed to go on, as arrays."""
        arrays = {f"weight/{i}": w for i, w in enumerate(self.model.get_weights())}
        arrays |= {f"optimizer/{i}": v.numpy() for i, v in enumerate(self.optimizer.variables)}
        return arrays | {f"progress/{k}": np.asarray(v) for k, v in self.position.items()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restores what `arrays` returned."""
        self.position |= {name: int(arrays[f"progress/{name}"]) for name in self.position}
        self.model.set_weights([arrays[f"weight/{i}"] for i in range(len(self.model.weights))])
        for i, variable in enumerate(self.optimizer.variables):
            variable.assign(arrays[f"optimizer/{i}"])


@dataclasses.dataclass
class Standing:
    """The progress of a run: seconds spent, the best rank so far, and lines in its history."""

    seconds: float = 0.0
    best: tuple[float, ...] = (-math.inf,)
    lines: int = 0

    def arrays(self) -> dict[str, np.ndarray]:
        """As arrays for the checkpoint."""
        return {f"progress/{name}": np.asarray(value) for name, value in vars(self).items()}

    @classmethod
    def restored(cls, arrays: dict[str, np.ndarray], lines: int) -> Standing:
        """From the arrays; `lines` is for older checkpoints, which do not say how many."""
        best = np.atleast_1d(arrays["progress/best"]).tolist()
        lines = int(arrays.get("progress/lines", lines))
        return cls(float(arrays["progress/seconds"]), tuple(best), lines)


def hold_memory() -> None:
    """Makes the C library keep freed memory for the next update.

    Each update allocates and frees the same large buffers. By default they go back to the system
    each time and return as zeroed pages, with one page fault each: a fifth of the time of a maze
    update.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # of glibc
    if mallopt is not None:
        mallopt(-4, 0)  # M_MMAP_MAX: no buffer gets its own mapping
        mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD: nothing goes back to the system


def run_loop(
    trainee: Trainee, run: Run | None = None, show: Callable[[dict[str, Any]], None] | None = None
) -> Standing:
    """Trains to the end; goes on where `run` stopped.

    Args:
        trainee: what is trained; in the end its model has the weights that validated best.
        run: where to keep checkpoints, history and the best model; None keeps nothing.
        show: called with every line of the history.

    Raises:
        Interrupted: on Ctrl-C, if there is a `run`.
        WorkerLost: another worker was lost; its message says the same.
    """
    hold_memory()
    standing, weights = _begin(trainee, run)
    kept, began = trainee.where(), time.time()
    before = _stop_on_sigterm()
    try:
        while not trainee.finished:
            began, line = time.time(), trainee.advance()
            standing.seconds += time.time() - began
            rank = trainee.rank(line)
            better = rank is not None and rank >= standing.best
            if rank is not None and better:
                standing.best, weights = rank, trainee.model.get_weights()
            line["seconds"] = round(standing.seconds, 1)
            if math.isfinite(standing.best[0]):
                line["best"] = standing.best[0]
            if show is not None:
                show(line)
            if run is not None:
                _keep(run, trainee, standing, line, better)
                kept = trainee.where()
    except (KeyboardInterrupt, WorkerLost) as end:
        if run is None:
            raise
        stopped = trainee.where()
        if trainee.settle():
            standing.seconds += time.time() - began
            run.save(trainee.arrays() | standing.arrays())
            kept = stopped = trainee.where()
        since = "" if kept == stopped else f" as of {kept}"
        said = (
            f"stopped after {stopped}; saved{since} in {run.folder}: "
            "run the same command again to go on"
        )
        if isinstance(end, WorkerLost):
            raise WorkerLost(f"{end}; {said}") from None
        raise Interrupted(said) from None
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)
    trainee.model.set_weights(weights)
    return standing


def _begin(trainee: Trainee, run: Run | None) -> tuple[Standing, list[np.ndarray]]:
    """Restores the run's checkpoint; returns its standing and the best weights so far."""
    weights = trainee.model.get_weights()
    saved = run.load() if run is not None else None
    if run is None:
        return Standing(), weights
    if saved is None:
        run.keep_history(0)  # from a process that was killed before its first checkpoint
        return Standing(), weights
    trainee.restore(saved)
    standing = Standing.restored(saved, len(run.history()))
    run.keep_history(standing.lines)
    if (run.folder / trainee.file).exists():
        weights = trainee.saved_weights(run.folder / trainee.file)
    return standing, weights


def _stop_on_sigterm() -> Any:
    """Makes SIGTERM stop a run like Ctrl-C; returns the previous handler, or None if it cannot."""
    if threading.current_thread() is not threading.main_thread():
        return None  # only the main thread may handle signals

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    return signal.signal(signal.SIGTERM, stop)


def _keep(
    run: Run, trainee: Trainee, standing: Standing, line: dict[str, Any], better: bool
) -> None:
    """Writes the results of a validation: its line, a new best model, the checkpoint."""
    run.log(line)
    standing.lines += 1
    if better:
        with replacing(run.folder / trainee.file) as temporary:
            trainee.save(temporary)
    run.save(trainee.arrays() | standing.arrays())
