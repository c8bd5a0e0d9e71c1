"""Trains a `StreamReader` by a recipe: phase after phase of `model.compile` and `model.fit`.

The episodes of a batch and every random draw depend only on the seed and the number of the update,
so a run resumes exactly (see `lemn_tf.loop`). Besides the usual files, the run's folder holds
`reader-K.npz`, the reader after phase K, for other runs to start from.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from lemn_tf.learning import ActorCritic, Hindsight, Objective
from lemn_tf.learning.workers import ALONE, Workers
from lemn_tf.loop import Trainee, save_arrays
from lemn_tf.model import StreamReader
from lemn_tf.recipes import Phase

EPOCH = 8_000
"""Episodes between two validations."""
GOAL = "goal"
"""What the chief sends other workers besides the arrays of a checkpoint: where a stretch ends."""


class PhaseTrainee(Trainee):
    """A model and the phases that train it, for `lemn_tf.loop.run_loop`.

    Args:
        model: trained in place.
        recipe: the phases, see `lemn_tf.recipes`.
        batches: function from the phase's number, the phase and a number n to an endless dataset
            that starts with batch n.
        valid: data for choosing the best weights.
        folder: where to save the readers of finished phases; None saves none.
        seed: of everything random.
        shards: see `StreamReader.compile`.
        jit_compile: compile with XLA.
        callbacks: function from a phase and its number to further Keras callbacks.
        agent: function from the objectives of a phase and the slots it trains with to the agent
            that drives its updates, see `StreamReader.compile`.
        watch: the validation metric that chooses the best weights; larger is better, unless its
            name ends in "loss" or "error".
        workers: the processes that train this together. The chief alone gives the trainee to
            `run_loop`; the others `follow` what it tells them.
    """

    def __init__(
        self,
        model: StreamReader,
        recipe: Sequence[Phase],
        batches: Callable[[int, Phase, int], tf.data.Dataset],
        valid: tf.data.Dataset,
        folder: str | os.PathLike | None = None,
        seed: int = 0,
        shards: int = 1,
        jit_compile: bool = True,
        callbacks: Callable[[Phase, int], Sequence[keras.callbacks.Callback]] = lambda *_: (),
        agent: Callable[[Sequence[Objective], int], Any] = lambda *_: None,
        watch: str = "accuracy",
        workers: Workers = ALONE,
    ):
        super().__init__(model, {"phase": 0, "update": 0})
        self.recipe, self.batches, self.valid = tuple(recipe), batches, valid
        self.folder = None if folder is None else Path(folder)
        self.seed, self.shards, self.jit_compile = seed, shards, jit_compile
        self.make_callbacks, self.make_agent, self.watch = callbacks, agent, watch
        self.workers = workers
        learning = [i for i, phase in enumerate(self.recipe) if phase.objectives]
        self._choose_from = min(learning, default=len(self.recipe) - 1)
        self._goal, self._compiled = 0, -1

    @property
    def phase(self) -> Phase:
        """The phase that training is in."""
        return self.recipe[self.position["phase"]]

    @property
    def updates(self) -> int:
        """Updates of the phase."""
        return max(1, self.phase.episodes // self.phase.batch_size)

    @property
    def optimizer(self) -> keras.optimizers.Optimizer:
        return self.model.optimizer

    @property
    def finished(self) -> bool:
        last = self.position["phase"] == len(self.recipe) - 1
        return last and self.position["update"] >= self.updates

    def where(self) -> str:
        update = self.position["update"]
        return f"update {update:,} of {self.updates:,} in phase {self.phase.name!r}"

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.position["phase"] = int(arrays["progress/phase"])
        if self._compiled != self.position["phase"]:
            self._compile()  # each phase has its own optimizer
        super().restore(arrays)

    def _compile(self) -> None:
        """Compiles the model for the phase."""
        phase, rate = self.phase, self.phase.learning_rate
        if phase.final_rate != 1.0:
            rate = keras.optimizers.schedules.CosineDecay(rate, self.updates, phase.final_rate)
        objectives, slots = objectives_of(phase), slots_of(phase, self.model.memory.slots)
        self.model.compile(
            keras.optimizers.Adam(rate, global_clipnorm=phase.clip),
            retention=objectives or None,
            agent=self.make_agent(objectives, max(slots)) if objectives else None,
            on_policy=phase.on_policy,
            on_subsets=phase.on_subsets,
            keep_share=phase.keep_share,
            window=phase.window,
            linear=phase.linear,
            acting=phase.acting,
            slots=slots,
            seed=self.seed * 1009 + self.position["phase"],
            updates=self.updates,
            shards=self.shards,
            jit_compile=self.jit_compile,
            workers=self.workers,
        )
        self.model.optimizer.build(self.model.trainable_variables)
        self.callbacks = list(self.make_callbacks(phase, self.position["phase"]))
        self._compiled = self.position["phase"]

    def advance(self) -> dict[str, Any]:
        self._goal = 0
        if self.position["update"] >= self.updates:
            self.position.update(phase=self.position["phase"] + 1, update=0)
        if self._compiled != self.position["phase"]:
            self._compile()
        phase, index, update = self.phase, self.position["phase"], self.position["update"]
        goal = min(self.updates, (update // self._epoch + 1) * self._epoch)
        self.workers.tell(self.arrays() | {GOAL: np.asarray(goal)})
        self._goal = goal
        history = self._fit(validation_data=self.valid, callbacks=self.callbacks)
        self.position["update"] = self._goal
        if self._goal == self.updates and self.folder is not None:
            save_arrays(reader_file(self.folder, index), *self.model.reader.get_weights())
        return {
            "phase": phase.name,
            "phase_index": index,
            "update": self._goal,
            "episodes": self._goal * phase.batch_size,
            **{name: float(values[-1]) for name, values in history.items()},
        }

    @property
    def _epoch(self) -> int:
        """Updates between two validations."""
        return max(1, min(EPOCH // self.phase.batch_size, self.updates))

    def _fit(self, **options: Any) -> dict[str, list[float]]:
        """Trains from the present position to the goal; returns the history."""
        update = self.position["update"]
        epoch = update // self._epoch
        with self.workers.together():
            return self.model.fit(
                self.batches(self.position["phase"], self.phase, update),
                steps_per_epoch=self._goal - update,
                initial_epoch=epoch,
                epochs=epoch + 1,
                shuffle=False,  # the data set has its own order
                verbose=0,
                **options,
            ).history

    def follow(self, told: dict[str, np.ndarray]) -> None:
        """Trains a stretch with the chief, which said where it begins and ends."""
        self.restore(told)
        self._goal = int(told[GOAL])
        self._fit(callbacks=self.callbacks)

    def rank(self, line: dict[str, Any]) -> tuple[float, ...] | None:
        if f"val_{self.watch}" not in line:
            known = sorted(name[4:] for name in line if name.startswith("val_"))
            raise ValueError(
                f"no metric {self.watch!r} to watch; validation gives {', '.join(known)}"
            )
        if line["phase_index"] < self._choose_from:  # a policy has yet to learn
            return None
        value = line[f"val_{self.watch}"]
        return (-value if self.watch.endswith(("loss", "error")) else value,)

    def settle(self) -> bool:
        if not self._goal:
            return False
        done, self.model.stop_training = int(self.model.optimizer.iterations.numpy()), True
        for callback in self.callbacks:
            callback.on_train_end()
        if done >= self._goal:  # an epoch without validation is trained again
            return False
        if self.workers.count > 1:  # a worker was lost: half an update may have been made
            return False
        self.position["update"] = done
        return True


def reader_file(folder: str | os.PathLike, phase: int) -> Path:
    """Where a run saves its reader when the phase of that number ends."""
    return Path(folder) / f"reader-{phase}.npz"


def reader_after(folder: str | os.PathLike, phase: int) -> list[np.ndarray]:
    """The weights of a run's reader after the phase of that number."""
    path = reader_file(folder, phase)
    if not path.is_file():
        raise ValueError(f"{folder} holds no reader of a finished phase {phase}: expected {path}")
    with np.load(path, allow_pickle=False) as file:
        return [file[name] for name in file.files]


def slots_of(phase: Phase, own: int) -> tuple[int, ...]:
    """The sizes of the memory while a phase trains a model that has `own` slots."""
    slots = max(phase.slots or 0, own)
    return phase.sizes or (slots if phase.at_most is None else min(slots, phase.at_most),)


def objectives_of(phase: Phase) -> tuple[Objective, ...]:
    """The objectives that a phase names; the first of them has the entropy bonus."""
    made: list[Objective] = []
    for name in phase.objectives:
        common: dict[str, Any] = {"discount": phase.discount, "entropy": 0.0}
        if not made:
            common |= {"entropy": phase.entropy, "final_entropy": phase.final_entropy}
        if name == "hindsight":
            made.append(Hindsight(**common))
        elif name == "a2c":
            made.append(ActorCritic(reward=phase.reward, rollouts=phase.rollouts, **common))
        else:
            raise ValueError(f"unknown objective {name!r}; known are hindsight, a2c")
    return tuple(made)
