"""Question answering over documents: the settings of a run, its data, and a model for it.

`documents_training` trains it, `documents_scoring` scores it.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from lemn_tf import retention, runs
from lemn_tf.experiments.documents_words import ARRIVAL, OWN, words_of
from lemn_tf.experiments.minilm import DIMENSIONS
from lemn_tf.loop import save_arrays
from lemn_tf.model import StreamReader
from lemn_tf.pipelines import documents as files
from lemn_tf.pipelines import spans as pipeline
from lemn_tf.pipelines.embeddings import Words, read_vectors
from lemn_tf.readers import BiDAF, LiteReader
from lemn_tf.readers.words import WordReader
from lemn_tf.retention import RetentionPolicy
from lemn_tf.wordlist import WordList

READERS = {"lite": LiteReader, "bidaf": BiDAF}
PRODUCTS = 16
"""Main directions of a slot's view whose products policies see: chosen by folds over documents."""
Told = Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class Settings:
    """How a run over documents is made; written to its folder.

    Attributes:
        qa, evidence: question files in TriviaQA's format, and the folders of their documents.
        embeddings: word vectors, see `lemn_tf.pipelines.embeddings`; None with `reader_from`.
        reader: "lite" or "bidaf".
        policy, slots: of the memory.
        question_aware: whether the policy knows the question from the beginning.
        recipe: "lemn" (the reader first, then the policy by hindsight credit) or "paper" (both
            together, +1 / -1 for the answer, on the first 800 words).
        updates: of the reader, 32 questions each.
        epochs: of the policy, over all documents.
        window: slots of a document that the policy learns from at a time; None for all of them.
        view: what the policy sees of a slot, see `WordReader`.
        minilm: folder for MiniLM's vectors.
        minilm_for: who sees them: "policy" (of slots), "reader" (of words), or "both".
        weights: how often documents of each question file come, relative to the others.
        limit: read at most this many word vectors.
        cache: folder for encoded documents, so that texts are split and searched once only.
        reader_from: a run or preset whose trained reader, with its words, is taken.
        further: updates by which that reader learns on from these documents; 0 leaves it as it is.
        seed: of everything random.
    """

    qa: tuple[str, ...]
    evidence: tuple[str, ...]
    embeddings: str | None = None
    reader: str = "lite"
    policy: str = "st-lemn"
    slots: int = 10
    question_aware: bool = False
    recipe: str = "lemn"
    updates: int = 4000
    epochs: int = 6
    window: int | None = 60
    view: tuple[str, ...] = OWN
    minilm: str | None = None
    minilm_for: str = "policy"
    weights: tuple[float, ...] | None = None
    limit: int | None = None
    cache: str | None = None
    reader_from: str | None = None
    further: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.reader not in READERS:
            raise ValueError(f"unknown reader {self.reader!r}; known are {', '.join(READERS)}")
        if self.recipe not in ("lemn", "paper"):
            raise ValueError(f"unknown recipe {self.recipe!r}; known are lemn, paper")
        if self.embeddings is None and self.reader_from is None:
            raise ValueError("expected word vectors, or a run or preset to take the reader from")
        if self.further and (self.reader_from is None or self.recipe != "lemn"):
            raise ValueError(
                "only a reader that is taken from a run or preset learns further, by our recipe"
            )
        if self.minilm_for not in ("policy", "reader", "both"):
            raise ValueError(
                f"MiniLM's vectors are for policy, reader or both; got {self.minilm_for!r}"
            )
        if self.minilm is not None and (self.recipe, self.reader) != ("lemn", "lite"):
            raise ValueError("MiniLM's vectors are for the lite reader and policies by our recipe")

    @property
    def reading(self) -> int:
        """Updates of the reader by itself."""
        return self.updates if self.reader_from is None else self.further

    @property
    def products(self) -> int:
        """Of how many directions the policy sees products, which do not help one that knows the
        question."""
        return 0 if self.question_aware else PRODUCTS

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
    """Training data: what is read, the vocabulary, and how rare stems are.

    Attributes:
        collection, words, idf: see `pipelines.spans.dataset`.
        table: word vectors by id.
        reader: the trained one that is taken, or None.
    """

    collection: files.Collection
    words: Words
    idf: np.ndarray
    table: np.ndarray
    reader: WordReader | None = None


def load(settings: Settings, told: Told = lambda text: None) -> Data:
    """Reads the questions that can be trained on, and what is known about words."""
    reader: WordReader | None = None
    if settings.reader_from is not None:
        model = runs.load_reader(settings.reader_from)
        words, idf = words_of(model)
        reader, table = model.reader, model.reader.table.numpy()
        if not isinstance(reader, READERS[settings.reader]):
            raise ValueError(
                f"{settings.reader_from}: expected a reader of the kind {settings.reader!r}; got "
                f"{type(reader).__name__}"
            )
        told(f"reader: taken from {settings.reader_from}")
    else:
        vectors = read_vectors(str(settings.embeddings), limit=settings.limit)
        words = Words(vectors.vocabulary)
        table = vectors.table(words)
    collection = files.read(settings.qa, settings.evidence, answers=True)
    told(collection.report())
    if reader is None:
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
    return Data(collection, words, idf, table, reader)


def layout_of(settings: Settings) -> pipeline.Layout:
    """How documents are cut: the paper's recipe reads the first 800 words, 40 slots."""
    if settings.recipe == "paper":
        return pipeline.Layout(max_words=800, slots=40, first_only=True)
    return pipeline.Layout()


def build(settings: Settings, data: Data) -> StreamReader:
    """A model with an untrained policy, and an untrained reader unless there is one to take."""
    keras.utils.set_random_seed(settings.seed)
    shown = settings.minilm_for if settings.minilm else ""
    view = (*settings.view, "sentence") if shown in ("policy", "both") else settings.view
    context = DIMENSIONS if shown in ("reader", "both") else 0
    known = WordList(data.words.vocabulary, data.words.buckets)
    known.set_idf(data.idf)
    reader = data.reader
    if reader is None:
        known_of = {"context": context} if context else {}
        reader = READERS[settings.reader](*data.table.shape, **known_of)
        reader.set_table(data.table)
    before = settings.question_aware and "slot" in view
    reader = viewing(reader, view, settings.products, before, context)
    return StreamReader(reader, settings.slots, settings.make_policy(), known)


def _widths(view: Sequence[str]) -> dict[str, int]:
    """How wide what comes with an entry is, for the parts of a view."""
    wide = {"slot": ARRIVAL, "sentence": DIMENSIONS}
    return {name: size if name in view else 0 for name, size in wide.items()}


def viewing(
    reader: WordReader,
    view: Sequence[str],
    products: int = 0,
    before: bool = False,
    context: int = 0,
) -> WordReader:
    """The same trained reader, with another view for policies.

    Args:
        reader: the reader.
        view, products, before: see `WordReader`.
        context: what words are described by, if the reader was not given it before: it then has no
            say until the reader learns on.
    """
    own: dict[str, Any] = {
        "view": tuple(view),
        "products": products,
        "before": before,
        **_widths(view),
    }
    own["context"] = context or reader.context_width
    config = {**reader.get_config(), **own}
    made = type(reader).from_config(config)
    given = _named(reader)
    for name, weight in _named(made).items():
        if name in given and given[name].shape == weight.shape:
            weight.assign(given[name])
        elif name in ("mix/kernel", "join/kernel"):  # their last rows are for what is new
            known = given[name].numpy()
            weight.assign(np.pad(known, [(0, weight.shape[0] - len(known)), (0, 0)]))
    return made


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
