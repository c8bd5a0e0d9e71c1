"""Runs a recipe: phase after phase of `model.fit`, with checkpoints that resume exactly.

A run is a folder:

    config.json      how it was made
    history.jsonl    one line an epoch: phase, episodes so far, every metric
    model.keras      the best model by validation accuracy so far
    checkpoint.npz   weights, optimizer and position, written whole or not at all
    reader-K.npz     the reader as phase K left it, for other runs to start from
    logs/            for TensorBoard

Which episodes a batch holds and every random draw are functions of the seed and the number of the
update. So a run that was stopped and resumed gives the same numbers as one that was not.
"""

from __future__ import annotations

import dataclasses
import io
import json
import math
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from lemn_tf.files import replacing, write_atomically
from lemn_tf.learning import Objective
from lemn_tf.model import StreamReader
from lemn_tf.recipes import Phase

EPOCH = 8_000
"""Episodes between two validations."""


class Interrupted(Exception):
    """Ctrl-C: everything is saved, and the message says how to go on."""


@dataclasses.dataclass
class Progress:
    """Where a run stands: the phase, the updates done in it, and the best validation so far."""

    phase: int = 0
    update: int = 0
    best: float = -math.inf
    seconds: float = 0.0


class Run:
    """A folder with a run in it.

    Args:
        folder: made if missing.
        config: how the run is made; a folder with another config is refused.
    """

    def __init__(self, folder: str | os.PathLike, config: dict):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.checkpoint = self.folder / "checkpoint.npz"
        path = self.folder / "config.json"
        text = json.dumps(config, indent=1, sort_keys=True)
        if path.exists():
            found, wanted = json.loads(path.read_text()), json.loads(text)
            changed = sorted(k for k in {*found, *wanted} if found.get(k) != wanted.get(k))
            if changed:
                raise ValueError(
                    f"{folder} holds a run made with other settings ({', '.join(changed)} differ): "
                    "choose another folder, or the same settings to resume"
                )
        write_atomically(path, text.encode())

    def save(
        self, model: keras.Model, optimizer: keras.optimizers.Optimizer, progress: Any
    ) -> None:
        """Writes a checkpoint: all weights, the optimizer, and the fields of `progress`."""
        arrays = {f"weight/{i}": w for i, w in enumerate(model.get_weights())}
        arrays |= {f"optimizer/{i}": v.numpy() for i, v in enumerate(optimizer.variables)}
        arrays |= {f"progress/{k}": np.asarray(v) for k, v in vars(progress).items()}
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
        write_atomically(self.checkpoint, buffer.getvalue())

    def save_reader(self, model: StreamReader, phase: int) -> None:
        """Keeps the reader as a phase left it: `reader_after` reads it."""
        buffer = io.BytesIO()
        np.savez(buffer, *model.reader.get_weights())
        write_atomically(self.folder / f"reader-{phase}.npz", buffer.getvalue())

    def load(self) -> dict[str, np.ndarray] | None:
        if not self.checkpoint.exists():
            return None
        with np.load(self.checkpoint, allow_pickle=False) as file:
            return dict(file)

    def log(self, line: dict) -> None:
        with open(self.folder / "history.jsonl", "a") as file:
            file.write(json.dumps(line) + "\n")

    def keep_history(self, when: Callable[[dict], bool]) -> None:
        """Drops the other lines: those behind the checkpoint will be written again."""
        path = self.folder / "history.jsonl"
        if path.exists():
            # A process killed while writing may have left the last line without its end.
            whole = [line for line in path.read_text().splitlines() if line.endswith("}")]
            kept = [line + "\n" for line in whole if when(json.loads(line))]
            write_atomically(path, "".join(kept).encode())


def reader_after(folder: str | os.PathLike, phase: int) -> list[np.ndarray]:
    """The weights of the reader of a run as the phase of that number left it."""
    path = Path(folder) / f"reader-{phase}.npz"
    if not path.is_file():
        raise ValueError(f"{folder} holds no reader of a finished phase {phase}: expected {path}")
    with np.load(path, allow_pickle=False) as file:
        return [file[name] for name in file.files]


def slots_of(phase: Phase, own: int) -> int:
    """The size of the memory while a phase trains a model with so many slots of its own."""
    slots = max(phase.slots or 0, own)
    return slots if phase.at_most is None else min(slots, phase.at_most)


def train(
    model: StreamReader,
    recipe: Sequence[Phase],
    batches: Callable[[int, Phase, int], tf.data.Dataset],
    valid: tf.data.Dataset,
    objectives: Callable[[Phase], Sequence[Objective]],
    run: Run | None = None,
    seed: int = 0,
    shards: int = 1,
    jit_compile: bool = True,
    callbacks: Callable[[Phase, int], Sequence[keras.callbacks.Callback]] = lambda *_: (),
    agent: Callable[[Sequence[Objective], int | None], Any] = lambda *_: None,
    watch: str = "accuracy",
) -> Progress:
    """Trains `model` by `recipe`; resumes if `run` holds a checkpoint.

    Args:
        model: trained in place; in the end it holds the weights that validated best.
        recipe: the phases, see `lemn_tf.recipes`.
        batches: from the phase's number, the phase and a number n to an endless dataset that
            starts with batch n.
        valid: what the best weights are chosen on.
        objectives: from a phase to the objectives it names.
        run: where to keep checkpoints and history; None keeps nothing.
        seed: of everything random.
        shards: see `StreamReader.compile`.
        jit_compile: compile with XLA.
        callbacks: from a phase and its number to further Keras callbacks.
        agent: from the objectives of a phase, and the slots it trains with, to who drives its
            updates, see `StreamReader.compile`.
        watch: the metric of validation by which the best weights are chosen; the larger the
            better, unless its name ends in "loss" or "error".

    Returns:
        Where the run stands: finished.
    """
    progress, saved = Progress(), run and run.load()
    if saved:
        fields = {f.name: f.type for f in dataclasses.fields(Progress)}
        values = {name: saved[f"progress/{name}"].item() for name in fields}
        progress = Progress(**values)
        model.set_weights([saved[f"weight/{i}"] for i in range(len(model.weights))])
        done = (progress.phase, progress.update)
        run.keep_history(lambda line: (line["phase_index"], line["update"]) <= done)
    best = model.get_weights()
    if saved and (run.folder / "model.keras").exists():
        best = keras.saving.load_model(run.folder / "model.keras", compile=False).get_weights()

    def start_phase(phase: Phase) -> int:
        updates = max(1, phase.episodes // phase.batch_size)
        rate = phase.learning_rate
        if phase.final_rate != 1.0:
            rate = keras.optimizers.schedules.CosineDecay(rate, updates, phase.final_rate)
        chosen, slots = tuple(objectives(phase)), slots_of(phase, model.memory.slots)
        model.compile(
            keras.optimizers.Adam(rate, global_clipnorm=phase.clip),
            retention=chosen or None,
            agent=agent(chosen, slots) if chosen else None,
            on_policy=phase.on_policy,
            on_subsets=phase.on_subsets,
            keep_share=phase.keep_share,
            window=phase.window,
            linear=phase.linear,
            acting=phase.acting,
            slots=slots,
            seed=seed * 1009 + progress.phase,
            updates=updates,
            shards=shards,
            jit_compile=jit_compile,
        )
        model.optimizer.build(model.trainable_variables)
        return updates

    sign = -1.0 if watch.endswith(("loss", "error")) else 1.0
    learning = min((i for i, p in enumerate(recipe) if p.objectives), default=len(recipe) - 1)
    while progress.phase < len(recipe):
        phase = recipe[progress.phase]
        updates = start_phase(phase)
        if saved and progress.update:
            for i, variable in enumerate(model.optimizer.variables):
                variable.assign(saved[f"optimizer/{i}"])
        saved = None
        epoch = max(1, min(EPOCH // phase.batch_size, updates))
        extra = list(callbacks(phase, progress.phase))
        while progress.update < updates:
            goal = min(updates, (progress.update // epoch + 1) * epoch)
            began, data = time.time(), batches(progress.phase, phase, progress.update)
            try:
                history = model.fit(
                    data,
                    steps_per_epoch=goal - progress.update,
                    initial_epoch=progress.update // epoch,
                    epochs=progress.update // epoch + 1,
                    validation_data=valid,
                    callbacks=extra,
                    shuffle=False,  # the data set has its own order
                    verbose=0,
                ).history
            except KeyboardInterrupt:
                done, model.stop_training = int(model.optimizer.iterations.numpy()), True
                for callback in extra:
                    callback.on_train_end()
                if run is None:
                    raise
                where = f"after update {done} of {updates}; saved"
                if done < goal:
                    progress.update = done
                    progress.seconds += time.time() - began
                    run.save(model, model.optimizer, progress)
                else:  # an epoch that was not validated is trained again
                    where = f"while validating; saved as of update {progress.update} of {updates}"
                raise Interrupted(
                    f"stopped in phase {phase.name!r} {where} in {run.folder}: "
                    "run the same command again to go on"
                ) from None
            progress.seconds += time.time() - began
            progress.update = goal
            found = sign * _watched(history, watch)
            better = found >= progress.best and progress.phase >= learning
            if better:
                progress.best, best = found, model.get_weights()
            if run is not None:
                line = {k: float(v[-1]) for k, v in history.items()}
                run.log(
                    {
                        "phase": phase.name,
                        "phase_index": progress.phase,
                        "update": goal,
                        "episodes": goal * phase.batch_size,
                        "seconds": round(progress.seconds, 1),
                        **line,
                    }
                )
                if better:
                    with replacing(run.folder / "model.keras") as temporary:
                        model.save(temporary)
                run.save(model, model.optimizer, progress)
        if run is not None:
            run.save_reader(model, progress.phase)
        progress.phase, progress.update = progress.phase + 1, 0
    model.set_weights(best)
    return progress


def _watched(history: dict[str, list[float]], watch: str) -> float:
    """The last value of a metric of validation."""
    if f"val_{watch}" not in history:
        known = sorted(name[4:] for name in history if name.startswith("val_"))
        raise ValueError(f"no metric {watch!r} to watch; validation gives {', '.join(known)}")
    return float(history[f"val_{watch}"][-1])
