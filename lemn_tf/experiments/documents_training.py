"""Training over documents, stage after stage: the reader, then the policy, or both together.

A run is a folder: `config.json`, `reader.npz` (the trained reader), `model.keras` (all of it) and
`history.jsonl`. A run that was stopped goes on with the stage that was not finished.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os

import keras
import numpy as np
import tensorflow as tf

from lemn_tf import loop
from lemn_tf.experiments import documents
from lemn_tf.experiments import documents_evidence as evidence
from lemn_tf.experiments import documents_policy as policies
from lemn_tf.experiments import documents_reader as reading
from lemn_tf.experiments.documents import Told
from lemn_tf.experiments.documents_board import BoardedRun, InTraining, Looks
from lemn_tf.experiments.documents_table import (
    AWARE_QUESTIONS,
    AWARE_RATE,
    AWARE_RIDGE,
    RIDGE,
    spread,
)
from lemn_tf.experiments.minilm import Store
from lemn_tf.files import replacing
from lemn_tf.learning import ActorCritic, Hindsight
from lemn_tf.model import StreamReader
from lemn_tf.pipelines import records
from lemn_tf.pipelines import spans as pipeline
from lemn_tf.readers import LiteReader
from lemn_tf.seeing.boards import undisturbed

FURTHER_RATE = 1e-3
"""Learning rate of a reader that has learned before: half of what one begins with."""


def train(
    settings: documents.Settings, out: str | os.PathLike, told: Told = lambda text: None
) -> StreamReader:
    """Trains a model, or goes on with the run in `out`.

    Args:
        settings: how.
        out: folder of the run.
        told: called with lines to show.
    """
    data = documents.load(settings, told)  # before anything is written
    loop.hold_memory()
    run = BoardedRun(out, json.loads(json.dumps(dataclasses.asdict(settings))))
    model = documents.build(settings, data)
    store = None if settings.minilm is None else Store(settings.minilm)
    with undisturbed():
        run.subject = InTraining(model, data.collection, store)
    if settings.recipe == "paper":
        _train_jointly(model, settings, data, run, told)
    else:
        _train_reader(model.reader, settings, data, run, told)
        if model.learns:
            _train_policy(model, settings, data, run, told)
    with replacing(run.folder / "model.keras") as temporary:
        model.save(temporary)
    return model


def _train_reader(reader, settings, data, run, told) -> None:
    """Memories that hold the answer: drawn at random for half of the updates, then hard ones."""
    saved = run.folder / "reader.npz"
    if saved.exists():
        documents.load_weights(reader, saved)
        told(f"reader: taken from {saved}")
        return
    updates = settings.reading
    if not updates:
        return
    trainer = reading.SpanTrainer(reader)
    # To compile takes a minute, which a short training would not win back.
    fast = updates >= 500 and isinstance(reader, LiteReader)
    rate = FURTHER_RATE if settings.further else 2e-3
    trainer.compile(reading.optimizer(rate, updates), jit_compile=fast)
    trainer.optimizer.build(reader.trainable_variables)
    each = max(1, updates // 20)
    kept = [*reader.trainable_variables, reader.seeds.state, *trainer.optimizer.variables]
    saver = _Saver(kept, run)
    done = saver.restored() * each
    # All in one fit: Keras puts the averaged weights in the place of the others when one ends.
    if done < updates:
        trainer.fit(
            _memories(reader, settings, data, done).take(updates - done),
            steps_per_epoch=each,
            initial_epoch=done // each,
            epochs=-(-updates // each),
            callbacks=[saver, _Shown("reader", run, told), Looks(run, "reader", updates, done)],
            shuffle=False,
            verbose=0,
        )
    trainer.optimizer.finalize_variable_values(reader.trainable_variables)
    documents.save_weights(reader, saved)


def _known(batches: tf.data.Dataset, reader, settings, data) -> tf.data.Dataset:
    """Batches with the vectors of a language model that a reader needs."""
    if not reader.context_width:
        return batches
    store = Store(settings.minilm)
    return tf.data.Dataset.from_generator(
        lambda: evidence.with_context(batches, reader, data.collection, store),
        output_signature=evidence.spec_with_context(batches.element_spec, reader),
    )


def _memories(
    reader, settings: documents.Settings, data: documents.Data, start: int
) -> tf.data.Dataset:
    """Batches to train a reader with, from one update on: random memories, then hard ones."""
    half, size = settings.reading // 2, min(settings.slots, reading.SLOTS)

    def part(begin: int, hard: float) -> tf.data.Dataset:
        batches = _known(training_batches(settings, data, begin), reader, settings, data)
        return reading.with_memories(batches, size, hard, settings.seed, begin)

    hard = part(max(start, half), reading.HARD)
    return hard if start >= half else part(start, 0.0).take(half - start).concatenate(hard)


def training_batches(
    settings: documents.Settings, data: documents.Data, start: int = 0
) -> tf.data.Dataset:
    """Endless batches of four documents with up to eight questions each."""
    make = functools.partial(records.cached, settings.cache) if settings.cache else pipeline.dataset
    batches = make(
        data.collection,
        data.words,
        4,
        documents.layout_of(settings),
        idf=data.idf,
        weights=settings.weights,
        shuffle_seed=settings.seed,
        repeat=True,
        drop_remainder=True,
        start=start,
    )
    if "slot" not in settings.view:
        return batches
    return batches.map(functools.partial(evidence.with_arrival, before=settings.question_aware))


class _Shown(keras.callbacks.Callback):
    """Says and writes down how an epoch went."""

    def __init__(self, stage: str, run: loop.Run, told: Told):
        super().__init__()
        self.stage, self.run, self.told = stage, run, told

    def on_epoch_end(self, epoch, logs=None):
        numbers = {name: float(value) for name, value in (logs or {}).items()}
        update = int(self.model.optimizer.iterations.numpy())
        self.run.log({"stage": self.stage, "epoch": epoch, "update": update, **numbers})
        words = ", ".join(f"{name} {value:.3f}" for name, value in numbers.items())
        self.told(f"{self.stage}, {epoch + 1}: {words}")


class _Saver(keras.callbacks.Callback):
    """Keeps variables in the checkpoint of a run after every epoch."""

    def __init__(self, variables: list, run: loop.Run):
        super().__init__()
        self.variables, self.run = variables, run

    def restored(self) -> int:
        """Restores what was kept, if anything was; returns the number of epochs before it."""
        kept = self.run.load()
        if kept is None:
            return 0
        for number, variable in enumerate(self.variables):
            variable.assign(kept[str(number)])
        return int(kept["epochs"])

    def on_epoch_end(self, epoch, logs=None):
        values = {str(number): variable.numpy() for number, variable in enumerate(self.variables)}
        self.run.save({**values, "epochs": np.array(epoch + 1)})


def _train_policy(model, settings, data, run, told) -> None:
    """By hindsight credit, the reader as it is.

    A policy that does not know the question learns from where the answers are, and the reader is
    not asked. One that does goes by what the reader says of each slot, so a part of the documents
    is read with all their questions.
    """
    if not isinstance(model.reader, LiteReader):
        _train_behind(model, settings, data, run, told)
        return
    aware = settings.question_aware
    collection = spread(data.collection, AWARE_QUESTIONS if aware else None)
    store = None if settings.minilm is None else Store(settings.minilm)
    seen = evidence.gather(
        model.reader, collection, data.words, data.idf, read=aware, context=store
    )
    standards = policies.standards_of(seen, settings.products)
    model.reader.standardise(standards)
    ready = policies.standardised(seen, standards)
    weights = _of_each(settings, collection)
    if aware:
        said = np.concatenate([np.stack([d.best, d.total], axis=-1).reshape([-1, 2]) for d in seen])
        model.memory.encoder.matching.standardise(said)
        rows = policies.by_question(ready, ready)
        if weights is not None:
            weights = np.repeat(weights, [len(document.questions) for document in ready])
        ready = rows
    memory = policies.bare(model.memory.policy, ready[0].vectors.shape[-1], settings.slots)
    ridge = AWARE_RIDGE if aware else RIDGE
    policies.begin(memory.policy, ready, ridge=ridge, weights=weights)

    def taken() -> None:
        model.memory.policy.set_weights(memory.policy.get_weights())

    trainer = policies.train(
        memory,
        ready,
        epochs=settings.epochs,
        steps=settings.window,
        batch_size=64 if aware else 16,
        rate=AWARE_RATE if aware else 5e-4,
        weights=weights,
        seed=settings.seed,
        looked=lambda updates: [Looks(run, "policy", updates, before=taken)],
    )
    numbers = {name: float(m.result()) for name, m in trainer._meters.items()}
    updates = int(trainer.optimizer.iterations.numpy())
    run.log({"stage": "policy", "update": updates, **numbers})
    told(f"policy: answer in memory {100 * numbers['answer_in_memory']:.1f}% while training")
    taken()


def _of_each(settings, collection) -> np.ndarray | None:
    """The weight of each document, so that question files count as `settings.weights` says."""
    if settings.weights is None:
        return None
    sources = np.array([entry.source for entry in collection.entries])
    counts = np.bincount(sources, minlength=len(settings.weights))
    return (np.array(settings.weights) / np.maximum(counts, 1))[sources]


def _train_behind(model, settings, data, run, told) -> None:
    """A policy over a reader whose slots cannot be read apart: the reader runs in every update."""
    if settings.question_aware:
        raise ValueError("a question-aware policy is trained over the lite reader; got bidaf")
    model.reader.trainable = False
    layout = dataclasses.replace(documents.layout_of(settings), slots=settings.window or 60)
    updates = settings.epochs * max(1, len(data.collection) // 4)
    model.compile(
        keras.optimizers.Adam(3e-3, global_clipnorm=5.0),
        retention=Hindsight(discount=1.0, entropy=0.05, final_entropy=0.01),
        on_policy=0.0,
        on_subsets=0.0,
        jit_compile=False,
        updates=updates,
        seed=settings.seed,
    )
    batches = pipeline.dataset(
        data.collection,
        data.words,
        4,
        dataclasses.replace(layout, max_words=20 * layout.slots),
        idf=data.idf,
        shuffle_seed=settings.seed,
        repeat=True,
        drop_remainder=True,
    )
    model.fit(
        _episodes(batches, settings),
        steps_per_epoch=updates,
        callbacks=[_Shown("policy", run, told), Looks(run, "policy", updates)],
        shuffle=False,
        verbose=0,
    )
    model.reader.trainable = True


def _train_jointly(model, settings, data, run, told) -> None:
    """The paper's procedure: Adam 1e-4, +1 / -1 for each answer at the end of the document."""
    objective = ActorCritic(discount=1.0, reward="sign") if model.learns else None
    model.compile(
        keras.optimizers.Adam(1e-4, global_clipnorm=5.0),
        retention=objective,
        on_policy=1.0,
        on_subsets=0.0,
        jit_compile=False,
        updates=settings.updates,
        seed=settings.seed,
    )
    each = max(1, settings.updates // 10)
    model.fit(
        _episodes(training_batches(settings, data), settings),
        steps_per_epoch=each,
        epochs=-(-settings.updates // each),
        callbacks=[_Shown("joint", run, told), Looks(run, "joint", settings.updates)],
        shuffle=False,
        verbose=0,
    )


def _episodes(batches: tf.data.Dataset, settings: documents.Settings) -> tf.data.Dataset:
    """Batches as a `StreamReader` is trained on, without what only scoring needs."""
    names = ("items", "length", "questions", "ask_at", "answers")
    return batches.map(lambda batch: {name: batch[name] for name in names})
