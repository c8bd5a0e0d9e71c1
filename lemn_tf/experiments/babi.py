"""bAbI stories: their batches, a model for them, its training and its score."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import keras
import numpy as np
import tensorflow as tf

from lemn_tf import evaluation, recipes, retention, runs, training
from lemn_tf.callbacks import RetentionBoard
from lemn_tf.episode import Episode
from lemn_tf.experiments.babi_settings import BabiSettings
from lemn_tf.experiments.competence import Examined, Journal, attempts
from lemn_tf.learning.workers import ALONE, Workers
from lemn_tf.loop import FILES, Run, differing, run_loop
from lemn_tf.model import StreamReader
from lemn_tf.pipelines import babi
from lemn_tf.pipelines.renaming import groups_of, renamed
from lemn_tf.pipelines.roles import find_roles, read_roles
from lemn_tf.readers import MemN2N
from lemn_tf.recipes import Phase
from lemn_tf.text import Vocabulary

BUCKETS = 3
"""How many lengths the streams of a file are padded to; each needs an XLA program."""


class Stories:
    """Encoded stories, ready to be batched in any order.

    Args:
        path: a file in bAbI's text format.
        vocabulary: maps words to ids; None builds one from this file.
        store_questions: see `BabiSettings`.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        vocabulary: Vocabulary | None = None,
        store_questions: bool = False,
    ):
        stories = babi.read_stories(path)
        if vocabulary is None:
            vocabulary = Vocabulary.from_texts(
                babi.texts(stories), babi.answers(stories), example=babi.example(stories)
            )
        self.stories, self.vocabulary = stories, vocabulary
        self.arrays = babi.encode(stories, vocabulary, store_questions)
        if not (self.arrays["ask_at"] >= 0).any():
            raise ValueError(f"{path}: expected stories with questions, found no question in them")
        self.sentence_length = self.arrays["items"].shape[-1]

    @cached_property
    def roles(self) -> list[list[str]]:
        """Words that can change places: as found, unless others are put here."""
        return find_roles(self.stories)

    def groups(self) -> list[list[int]]:
        """Ids of the words that can change places; see `lemn_tf.pipelines.renaming`."""
        words = ["", "", *self.vocabulary.words]  # ids 0 and 1 are no words
        return groups_of(words, self.roles)

    def batches(self, batch_size: int, **options) -> tf.data.Dataset:
        """See `lemn_tf.pipelines.babi.dataset`."""
        return babi.dataset(self.arrays, batch_size, **options)


def build(settings: BabiSettings, vocabulary: Vocabulary, sentence_length: int) -> StreamReader:
    """An untrained model."""
    keras.utils.set_random_seed(settings.seed)
    reader = MemN2N(
        vocabulary.size, sentence_length, units=settings.units, rectified=settings.rectified
    )
    policy = settings.policy
    given = {"hidden": settings.width, "shuffle": settings.shuffle}
    known = retention.find(policy).options()
    options = {name: given[name] for name in given if name in known and given[name] is not None}
    if options:
        policy = retention.get(policy, **options)
    return StreamReader(reader, settings.slots, policy, vocabulary)


def train_model(
    settings: BabiSettings,
    out: str | os.PathLike | None = None,
    shards: int = 1,
    callbacks: Callable[[Phase, int], Sequence[keras.callbacks.Callback]] = lambda *_: (),
    jit_compile: bool = True,
    workers: Workers = ALONE,
) -> StreamReader:
    """Trains a model, or goes on with the run in `out`.

    Args:
        settings: how.
        out: folder of the run; None keeps nothing.
        shards, jit_compile: see `StreamReader.compile`.
        callbacks: see `lemn_tf.training.PhaseTrainee`.
        workers: the processes that train together. This is the chief; the others call `assist`.
    """
    if out is None:
        with tempfile.TemporaryDirectory() as folder:
            return train_model(settings, folder, shards, callbacks, jit_compile, workers)
    data = _training_stories(settings)
    valid = Stories(settings.valid, data.vocabulary, settings.store_questions)
    if settings.rename and any(phase.rename for phase in settings.phases()):
        said = "; ".join(", ".join(role) for role in data.roles) or "none found"
        print(f"words that change places while training: {said}", file=sys.stderr, flush=True)
    config = _config(settings, shards)
    run = Run(out, config)
    journal = Journal(Path(out), attempts(settings))
    exam = valid.batches(256, buckets=1)
    options = {"folder": out, "callbacks": callbacks, "jit_compile": jit_compile}
    while True:
        made = {"config": json.dumps(config), "attempt": journal.attempt}
        workers.tell({name: np.asarray(value) for name, value in made.items()})
        trainee = _trainee(journal.settings, data, exam, shards=shards, workers=workers, **options)
        run_loop(trainee, run)
        if trainee.error is None or not trainee.failed:
            workers.tell({})
            return trainee.model
        journal.failed(trainee.error)


def assist(
    settings: BabiSettings, workers: Workers, shards: int = 1, jit_compile: bool = True
) -> None:
    """Does a worker's part in a training that the chief runs with `train_model`, to its end.

    Args:
        settings: how, as the chief has it; files may be in other places.
        workers: the processes that train together.
        shards, jit_compile: see `StreamReader.compile`.
    """
    data, config = _training_stories(settings), _config(settings, shards)
    trainee = None
    for told in iter(workers.hear, {}):
        if trainee is None or "config" in told:
            differs = differing(json.loads(str(told["config"])), config)
            if differs:
                raise ValueError(f"the chief trains with other settings: {differs} differ")
            trainee = _trainee(
                attempts(settings)[int(told["attempt"])],
                data,
                valid=tf.data.Dataset.range(0),  # the chief alone validates
                shards=shards,
                jit_compile=jit_compile,
                workers=workers,
            )
        else:
            trainee.follow(told)


def _training_stories(settings: BabiSettings) -> Stories:
    data = Stories(settings.train, store_questions=settings.store_questions)
    if settings.roles is not None:
        data.roles = read_roles(settings.roles, data.vocabulary.words)
    return data


def _trainee(
    settings: BabiSettings, data: Stories, valid: tf.data.Dataset, **options: Any
) -> Examined:
    """A new model and all that trains it; options are those of `PhaseTrainee`."""
    model = build(settings, data.vocabulary, data.sentence_length)
    if settings.start_from is not None:
        begin_with(model, settings.start_from)
    elif settings.reader_from is not None:
        last = recipes.reader_phases(settings.chosen) - 1
        model.reader.set_weights(training.reader_after(settings.reader_from, last))
    item = tf.TensorSpec(data.arrays["items"].shape[2:], tf.int32)
    return Examined(
        model,
        settings.phases(),
        partial(_batches, data, settings),
        valid,
        seed=settings.seed,
        agent=lambda chosen, slots: agent_for(model, chosen, item, slots, settings.driver),
        settings=settings,
        **options,
    )


def begin_with(model: StreamReader, name: str | os.PathLike) -> None:
    """Gives a model the weights of a trained one, which may differ from it only in its slots.

    Args:
        model: the one to be trained.
        name: a preset, a run or a `.keras` file.
    """
    first = runs.load_reader(name)
    wanted, came = _kind(model), _kind(first)
    differ = [f"{k} {wanted[k]}, got {came.get(k)}" for k in wanted if wanted[k] != came.get(k)]
    if differ:
        raise ValueError(f"{name}: expected a model with {'; '.join(differ)}")
    theirs, ours = (getattr(one.vocabulary, "words", ()) for one in (first, model))
    if list(theirs) != list(ours):
        strange = sorted({*theirs} ^ {*ours})
        raise ValueError(
            f"{name}: expected a model that knows the words of the stories and no others, but "
            f"they differ in {', '.join(strange[:5])}"
        )
    model.set_weights(first.get_weights())


def _kind(model: StreamReader) -> dict[str, Any]:
    """What a model is made of, its words aside."""
    policy, reader = model.memory.policy, model.reader
    kind = {"policy": policy.name, "reader": type(reader).__name__}
    for whose, part in (("policy's", policy), ("reader's", reader)):
        for name, value in part.get_config().items():
            if name not in ("name", "trainable", "dtype", "vocabulary_size"):
                kind[f"{whose} {name}"] = value
    return kind


def _config(settings: BabiSettings, shards: int) -> dict[str, Any]:
    """How a run is made, as its folder keeps it."""
    given = dataclasses.asdict(settings)
    config = {
        FILES: {name: given.pop(name) for name in ("train", "valid", "roles")},
        **given,
        "phases": [dataclasses.asdict(phase) for phase in settings.phases()],
        "shards": shards,
        "train_digest": _digest(settings.train),
        "valid_digest": _digest(settings.valid),
        "roles_digest": settings.roles and _digest(settings.roles),
    }
    return json.loads(json.dumps(config))


def _digest(path: str | os.PathLike) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _batches(
    data: Stories, settings: BabiSettings, index: int, phase: Phase, start: int
) -> tf.data.Dataset:
    """The batches of a phase from number `start` on; every story occurs `rollouts` times."""
    seed = int(np.random.SeedSequence([settings.seed, index]).generate_state(1)[0] >> 1)
    ready = data.batches(
        phase.batch_size // phase.rollouts,
        buckets=BUCKETS,
        shuffle_seed=seed,
        repeat=True,
        drop_remainder=True,
        start=start,
    )
    groups = data.groups() if settings.rename and phase.rename else []
    ready = renamed(ready, groups, data.vocabulary.size, seed, start)
    return ready if phase.rollouts == 1 else ready.map(partial(repeated, times=phase.rollouts))


def boards(
    settings: BabiSettings, out: str | os.PathLike
) -> Callable[[Phase, int], list[keras.callbacks.Callback]]:
    """What shows a training in TensorBoard: one board, `logs/` in the run's folder, for all phases.

    Returns:
        A function from a phase and its number to callbacks, for `train_model`.
    """
    phases = settings.phases()
    updates = [max(1, phase.episodes // phase.batch_size) for phase in phases]

    def valid(model: StreamReader) -> tf.data.Dataset:
        data = Stories(settings.valid, model.vocabulary, settings.store_questions)
        return data.batches(64, buckets=1)

    config = {**dataclasses.asdict(settings), "recipe": settings.chosen}
    board = RetentionBoard(valid, folder=Path(out) / "logs", hparams=config)
    return lambda phase, index: [board.in_phase(phase.name, index, sum(updates[:index]))]


def agent_for(model: StreamReader, chosen, item, slots: int | None, driver: bool):
    """The agent of TF-Agents that drives the training; None where TF-Agents is not installed.

    The model then trains itself, by the same loss and with the same numbers.

    Args:
        model: the one to train.
        chosen: its objectives.
        item: spec of one item.
        slots: of the memory while training.
        driver: let a driver of TF-Agents read the streams.
    """
    try:
        from lemn_tf import agents

        agent = agents.ActorCriticAgent(model, chosen, item=item, slots=slots)
    except ImportError as error:
        if driver:
            raise ValueError(f"--driver needs TF-Agents, which is not installed: {error}") from None
        print(
            "lemn: TF-Agents is not installed, so the model trains itself: the same loss and "
            "numbers, without the agent",
            file=sys.stderr,
        )
        return None
    return agents.Driven(agent, model) if driver else agent


def repeated(episode: dict[str, tf.Tensor], times: int) -> dict[str, tf.Tensor]:
    """A batch with every stream `times` times, side by side."""
    return {name: tf.repeat(value, times, axis=0) for name, value in episode.items()}


def score(
    model: StreamReader,
    path: str | os.PathLike,
    slots: int | None = None,
    store_questions: bool = False,
    renamings: int = 0,
    jit_compile: bool = False,
) -> dict:
    """Asks a model every question of a file.

    Args:
        model: a trained one.
        path: a file in bAbI's text format.
        slots, jit_compile: see `lemn_tf.evaluation.rates`.
        store_questions: see `BabiSettings`.
        renamings: read every story this many times, each time with names exchanged at random:
            chance then matters less when a file has few stories.

    Returns:
        What `lemn_tf.evaluation.rates` returns, and how the file was read.
    """
    data = Stories(path, model.vocabulary, store_questions)
    batches = data.batches(256, buckets=BUCKETS)
    if renamings:
        if not data.groups():
            raise ValueError(f"{path}: expected words that can change places, found none known")
        size = data.vocabulary.size
        batches = renamed(batches.repeat(renamings), data.groups(), size, seed=0)
    return {
        **evaluation.rates(model, batches, slots, jit_compile),
        "store_questions": store_questions,
        "renamings": renamings,
        "data": Path(path).name,
        "stories": len(data.stories),
    }


class Recollection(NamedTuple):
    """A question, what the model answered, and what its memory held: the ids of facts, in order."""

    story: babi.Story
    question: babi.Question
    answer: str
    kept: list[int]


def recollections(
    model: StreamReader, path: str | os.PathLike, count: int = 3
) -> list[Recollection]:
    """Questions whose facts a sliding window has lost, one from each story, with the answers.

    Args:
        model: a trained one.
        path: a file in bAbI's text format.
        count: how many.
    """
    data = Stories(path, model.vocabulary)
    batch = cast(Episode, {key: tf.constant(array[:64]) for key, array in data.arrays.items()})
    _, kept = model.act(batch)
    guesses = tf.argmax(model.answer(batch, kept).logits, axis=-1)
    answers = data.vocabulary.text(guesses[..., None]).numpy()
    found: list[Recollection] = []
    for s, story in enumerate(data.stories[: len(answers)]):
        for q, question in enumerate(story.questions):
            oldest = question.asked_after - min(question.support, default=0)
            if oldest > 2 * model.memory.slots and len(found) < count:
                held = sorted(fact for fact in kept[s, q].numpy().tolist() if fact >= 0)
                found.append(Recollection(story, question, answers[s, q].decode(), held))
                break
    return found
