"""Question answering over documents: the settings of a run, its data, and a model for it.

`documents_training` trains it, `documents_scoring` scores it.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from lemn_tf import retention
from lemn_tf.experiments.documents_words import ARRIVAL
from lemn_tf.loop import save_arrays
from lemn_tf.model import StreamReader
from lemn_tf.pipelines import documents as files
from lemn_tf.pipelines import spans as pipeline
from lemn_tf.pipelines.embeddings import Embeddings, Words, read_vectors
from lemn_tf.readers import BiDAF, LiteReader
from lemn_tf.readers.words import WordReader
from lemn_tf.retention import RetentionPolicy
from lemn_tf.wordlist import WordList

READERS = ("lite", "bidaf")
Told = Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class Settings:
    """How a run over documents is made; written to its folder.

    Attributes:
        qa, evidence: question files in TriviaQA's format, and the folders of their documents.
        embeddings: word vectors, see `lemn_tf.pipelines.embeddings`.
        reader: "lite" or "bidaf".
        policy, slots: of the memory.
        question_aware: whether the policy knows the question from the beginning.
        recipe: "lemn" (the reader first, then the policy by hindsight credit) or "paper" (both
            together, +1 / -1 for the answer, on the first 800 words).
        updates: of the reader, 32 questions each.
        epochs: of the policy, over all documents.
        window: slots of a document that the policy learns from at a time; None for all of them.
        view: what the policy sees of a slot, see `WordReader`.
        weights: how often documents of each question file come, relative to the others.
        limit: read at most this many word vectors.
        cache: folder for encoded documents, so that texts are split and searched once only.
        reader_from: a run whose trained reader is taken instead of training one.
        seed: of everything random.
    """

    qa: tuple[str, ...]
    evidence: tuple[str, ...]
    embeddings: str
    reader: str = "lite"
    policy: str = "st-lemn"
    slots: int = 10
    question_aware: bool = False
    recipe: str = "lemn"
    updates: int = 4000
    epochs: int = 6
    window: int | None = 60
    view: tuple[str, ...] = ("hand", "words", "slot")
    weights: tuple[float, ...] | None = None
    limit: int | None = None
    cache: str | None = None
    reader_from: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.reader not in READERS:
            raise ValueError(f"unknown reader {self.reader!r}; known are {', '.join(READERS)}")
        if self.recipe not in ("lemn", "paper"):
            raise ValueError(f"unknown recipe {self.recipe!r}; known are lemn, paper")

    def make_policy(self) -> RetentionPolicy:
        """The untrained policy."""
        known = retention.find(self.policy).options()
        given: dict[str, Any] = {"units": 32, "hidden": 32, "skip": True}
        options = {name: value for name, value in given.items() if name in known}
        if self.question_aware:
            options["question_aware"] = True
        return retention.get(self.policy, **options)


@dataclasses.dataclass(frozen=True)
class Data:
    """Training data: what is read, the vocabulary, and how rare stems are."""

    collection: files.Collection
    words: Words
    vectors: Embeddings
    idf: np.ndarray


def load(settings: Settings, told: Told = lambda text: None) -> Data:
    """Reads the questions that can be trained on."""
    vectors = read_vectors(settings.embeddings, limit=settings.limit)
    words = Words(vectors.vocabulary)
    collection = files.read(settings.qa, settings.evidence, answers=True)
    told(collection.report())
    idf = pipeline.count_idf(collection, words)
    paper = settings.recipe == "paper"
    collection, counts = pipeline.select(
        collection, words, layout_of(settings), within=400 if paper else None
    )
    told(", ".join(f"{number:,} questions {name}" for name, number in counts.items()))
    if not counts["kept"]:
        raise ValueError(
            f"{', '.join(settings.qa)}: expected questions whose answer is in their document, "
            "found none"
        )
    return Data(collection, words, vectors, idf)


def layout_of(settings: Settings) -> pipeline.Layout:
    """How documents are cut: the paper's recipe reads the first 800 words, 40 slots."""
    if settings.recipe == "paper":
        return pipeline.Layout(max_words=800, slots=40, first_only=True)
    return pipeline.Layout()


def build(settings: Settings, data: Data) -> StreamReader:
    """An untrained model."""
    keras.utils.set_random_seed(settings.seed)
    size, width = data.words.size, data.vectors.vectors.shape[1]
    slot = ARRIVAL if "slot" in settings.view else 0
    cls = LiteReader if settings.reader == "lite" else BiDAF
    reader = cls(size, width, view=settings.view, slot=slot)
    reader.set_table(data.vectors.table(data.words))
    known = WordList(data.words.vocabulary, data.words.buckets)
    known.set_idf(data.idf)
    return StreamReader(reader, settings.slots, settings.make_policy(), known)


def save_weights(reader: WordReader, path: str | os.PathLike) -> None:
    """Writes the weights of a reader by name, without its word vectors."""
    named = {name: weight.numpy() for name, weight in _named(reader).items() if name != "table"}
    save_arrays(path, **named)


def load_weights(reader: WordReader, path: str | os.PathLike) -> None:
    """Takes the weights that `save_weights` wrote; those of the view may be other ones."""
    with np.load(path, allow_pickle=False) as file:
        for name, weight in _named(reader).items():
            if name in file.files and file[name].shape == tuple(weight.shape):
                weight.assign(file[name])
            elif weight.trainable and not name.startswith("view/"):
                raise ValueError(
                    f"{path}: expected weights {name} of shape {tuple(weight.shape)}, found "
                    f"{file[name].shape if name in file.files else 'none'}"
                )


def _named(reader: WordReader) -> dict[str, keras.Variable]:
    """The weights of a reader by the name of their layer and their own."""
    named = {}
    for weight in reader.weights:
        owner, own = weight.path.split("/")[-2:]
        named[own if owner == reader.name else f"{owner}/{own}"] = weight
    if len(named) != len(reader.weights):
        raise ValueError(f"expected weights of {reader.name} to have names of their own")
    return named
