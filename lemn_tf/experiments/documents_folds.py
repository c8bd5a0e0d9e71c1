"""What a slot should be judged by, tried by folds over the training documents.

Each variant is a ridge regression of how many questions a slot answers, from other descriptions of
the slot; the memory keeps the N slots it thinks most of. Documents of a fold are judged by a
regression over the others. Nothing here has seen the validation side.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from lemn_tf.experiments.documents_evidence import Evidence
from lemn_tf.experiments.documents_policy import ridge_weights, share_of, size_of
from lemn_tf.experiments.documents_words import OWN, PARAGRAPH
from lemn_tf.readers.standards import Standards

FOLDS = 5
Parts = Mapping[str, slice]
"""Where the parts of a view stand in the vectors of `Evidence`."""
Describe = Callable[[np.ndarray], np.ndarray]


def _before(x: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros_like(x[:1]), x[:-1]])


def _so_far(x: np.ndarray) -> np.ndarray:
    return np.cumsum(x, axis=0) / np.arange(1, len(x) + 1)[:, None]


class Variant(NamedTuple):
    """A description of slots.

    Attributes:
        view: parts of the reader's view.
        products: of how many of their main directions the products are added, see `Standards`.
        describe: from the standardised view of a document's slots `[T, E]` to `[T, D]`.
    """

    view: tuple[str, ...]
    products: int = 0
    describe: Describe = lambda x: x


VARIANTS = {
    "hand-made features": Variant(("hand",)),
    "and what is known on arrival": Variant(("hand", "slot")),
    "word vectors alone": Variant(("words",)),
    "all of them": Variant(OWN),
    "all but the place in the paragraph": Variant(OWN, 0, lambda x: x[:, :-PARAGRAPH]),
    "all, and those of the slot before": Variant(OWN, 0, lambda x: np.hstack([x, _before(x)])),
    "all, against their mean so far": Variant(OWN, 0, lambda x: np.hstack([x, x - _so_far(x)])),
    "all, and products of 8 main directions": Variant(OWN, 8),
    "all, and products of 16": Variant(OWN, 16),
    "MiniLM's vectors alone": Variant(("sentence",)),
    "all, and MiniLM's vectors": Variant((*OWN, "sentence")),
    "all, MiniLM's vectors, and products of 8 main directions": Variant((*OWN, "sentence"), 8),
    "all, MiniLM's vectors, and products of 16": Variant((*OWN, "sentence"), 16),
}
"""The descriptions; those with a part that the reader's view does not have are left out."""


def tried(
    documents: Sequence[Evidence], parts: Parts, slots: float, ridge: float, seed: int = 0
) -> dict[str, float]:
    """Answers in memory in percent of all questions, for each variant.

    Args:
        documents: the training side.
        parts: see `Parts`.
        slots: N, or a share of a document's slots if below 1.
        ridge: weight of the penalty.
        seed: of the folds.
    """
    fold = np.random.default_rng(seed).permutation(len(documents)) % FOLDS
    variants = {name: one for name, one in VARIANTS.items() if set(one.view) <= set(parts)}
    found = dict.fromkeys(variants, 0.0)
    for k, (name, variant) in itertools.product(range(FOLDS), variants.items()):
        learnt = [document for document, at in zip(documents, fold, strict=True) if at != k]
        held = [document for document, at in zip(documents, fold, strict=True) if at == k]
        columns = np.concatenate([np.r_[parts[part]] for part in variant.view])
        seen = np.concatenate([document.vectors[:, columns] for document in learnt])
        standards = Standards.of(seen, min(variant.products, len(columns)))

        def described(document, columns=columns, standards=standards, variant=variant):
            return variant.describe(standards(document.vectors[:, columns]).numpy())

        x = np.concatenate([described(document) for document in learnt])
        y = np.concatenate([share_of(document) for document in learnt])
        w = ridge_weights(x, y, ridge)
        for document in held:
            worth = described(document) @ w
            kept = np.argsort(-worth, kind="stable")[: size_of(document, slots)]
            found[name] += float(document.holds[:, kept].any(axis=1).sum())
    questions = sum(len(document.questions) for document in documents)
    return {name: round(100 * count / questions, 2) for name, count in found.items()}
