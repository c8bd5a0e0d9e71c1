"""Variants of what a slot is judged by, tried by folds."""

import dataclasses

import numpy as np

from lemn_tf.experiments import documents_folds as folds
from tests.experiments.test_documents_policy import documents

PARTS = {"hand": slice(0, 2), "words": slice(2, 3), "slot": slice(3, 4)}


def test_what_tells_is_found_and_what_does_not_is_not():
    """A slot answers if its first feature, a hand-made one, is large."""
    found = folds.tried(documents(40), PARTS, slots=4, ridge=1.0)
    assert found["hand-made features"] > found["word vectors alone"] + 20
    assert abs(found["all of them"] - found["hand-made features"]) < 5


def test_what_tells_together_is_found_by_products():
    """A slot answers if two features of it have the same sign."""
    random = np.random.default_rng(0)
    made = []
    for document in documents(40):
        vectors = random.normal(size=(20, 20)).astype(np.float32) * [3, 2.5, *[1] * 18]
        told = vectors[:, 0] * vectors[:, 1] > 4
        holds = np.broadcast_to(told, [3, 20])
        made.append(dataclasses.replace(document, vectors=vectors, holds=holds))
    parts = {"hand": slice(0, 10), "words": slice(10, 18), "slot": slice(18, 20)}
    found = folds.tried(made, parts, slots=4, ridge=1.0)
    assert found["all, and products of 16"] > found["all of them"] + 10


def test_variants_of_parts_that_are_not_there_are_left_out():
    documents_with = [
        dataclasses.replace(document, vectors=np.hstack([document.vectors, document.vectors]))
        for document in documents(10)
    ]
    parts = {"hand": slice(0, 8), "sentence": slice(0, 8)}
    found = folds.tried(documents_with, parts, slots=4, ridge=1.0)
    assert set(found) == {"hand-made features", "MiniLM's vectors alone"}


def test_a_slot_can_be_told_by_its_neighbour():
    moved = [
        dataclasses.replace(document, vectors=np.roll(document.vectors, -1, axis=0))
        for document in documents(40)
    ]
    found = folds.tried(moved, PARTS, slots=4, ridge=1.0)
    assert found["all, and those of the slot before"] > found["all of them"] + 20
