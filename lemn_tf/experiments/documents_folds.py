"""What a slot should be judged by, tried by folds over the training documents.

Each variant is a ridge regression of how many questions a slot answers, from other descriptions of
the slot; the memory keeps the N slots it thinks most of. Documents of a fold are judged by a
regression over the others. Nothing here has seen the validation side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lemn_tf.experiments.documents_evidence import Evidence
from lemn_tf.experiments.documents_policy import ridge_weights, share_of, size_of, standardised

FOLDS = 5
Parts = Mapping[str, slice]
"""Where the parts of a view stand in the vectors of `Evidence`."""
Describe = Callable[[np.ndarray, Parts], np.ndarray]


def _only(*names: str) -> Describe:
    return lambda x, parts: np.concatenate([x[:, parts[name]] for name in names], axis=-1)


def _before(x: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros_like(x[:1]), x[:-1]])


def _after(x: np.ndarray) -> np.ndarray:
    return np.concatenate([x[1:], np.zeros_like(x[:1])])


def _squares(x: np.ndarray) -> np.ndarray:
    i, j = np.triu_indices(x.shape[1])
    return x[:, i] * x[:, j]


VARIANTS: dict[str, Describe] = {
    "hand-made features": _only("hand"),
    "and what is known on arrival": _only("hand", "slot"),
    "word vectors alone": _only("words"),
    "all of them": lambda x, parts: x,
    "all, and those of the slot before": lambda x, parts: np.hstack([x, _before(x)]),
    "all, and those of both neighbours": lambda x, parts: np.hstack([x, _before(x), _after(x)]),
    "all, against their mean so far": lambda x, parts: np.hstack(
        [x, x - np.cumsum(x, axis=0) / np.arange(1, len(x) + 1)[:, None]]
    ),
    "all, and products of hand-made ones": lambda x, parts: np.hstack(
        [x, _squares(_only("hand", "slot")(x, parts))]
    ),
}
"""Descriptions of the slots of a document `[T, D]`, from their standardised vectors `[T, E]`."""


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
    found = dict.fromkeys(VARIANTS, 0.0)
    for k in range(FOLDS):
        learnt = [document for document, at in zip(documents, fold, strict=True) if at != k]
        held = [document for document, at in zip(documents, fold, strict=True) if at == k]
        y = np.concatenate([share_of(document) for document in learnt])
        seen, unseen = (standardised(part, learnt) for part in (learnt, held))
        for name, describe in VARIANTS.items():
            x = np.concatenate([describe(document.vectors, parts) for document in seen])
            w = ridge_weights(x, y, ridge)
            for document in unseen:
                worth = describe(document.vectors, parts) @ w
                kept = np.argsort(-worth, kind="stable")[: size_of(document, slots)]
                found[name] += float(document.holds[:, kept].any(axis=1).sum())
    questions = sum(len(document.questions) for document in documents)
    return {name: round(100 * count / questions, 2) for name, count in found.items()}
