"""Variants of what a slot is judged by, tried by folds."""

import dataclasses

import numpy as np

from lemn_tf.experiments import documents_folds as folds
from tests.experiments.test_documents_policy import documents

PARTS = {"hand": slice(0, 2), "words": slice(2, 3), "slot": slice(3, 4)}


def test_what_tells_is_found_and_what_does_not_is_not():
    """A slot answers if its first feature, a hand-made one, is large."""
    found = folds.tried(documents(40), PARTS, slots=4, ridge=1.0)
    assert set(found) == set(folds.VARIANTS)
    assert found["hand-made features"] > found["word vectors alone"] + 20
    assert abs(found["all of them"] - found["hand-made features"]) < 5


def test_a_slot_can_be_told_by_its_neighbour():
    moved = [
        dataclasses.replace(document, vectors=np.roll(document.vectors, -1, axis=0))
        for document in documents(40)
    ]
    found = folds.tried(moved, PARTS, slots=4, ridge=1.0)
    assert found["all, and those of the slot before"] > found["all of them"] + 20
