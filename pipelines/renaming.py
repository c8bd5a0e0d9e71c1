"""Renaming: stories in which people, things and places have changed names.

"Mary took the milk" and "John took the apple" are the same event with other names. If people,
things or places exchange names throughout a story, questions and answers included, the story stays
true. Training on such stories keeps a policy from learning the given ones by heart. `roles` reads
or finds which words may replace each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import tensorflow as tf


def groups_of(words: Sequence[str], roles: Iterable[Sequence[str]]) -> list[list[int]]:
    """The positions in `words` of the members of each role; roles with fewer than two are left out.

    Example:

    >>> groups_of(["apple", "john", "mary"], [["john", "mary", "sandra"], ["apple", "milk"]])
    [[1, 2]]
    """
    place = {word: i for i, word in enumerate(words)}
    groups = [[place[word] for word in role if word in place] for role in roles]
    return [group for group in groups if len(group) > 1]


def renamed(
    dataset: tf.data.Dataset,
    groups: Sequence[Sequence[int]],
    vocabulary_size: int,
    seed: int,
    start: int = 0,
) -> tf.data.Dataset:
    """Renames every story of every batch at random within the groups.

    Args:
        dataset: batches as `lemn_tf.pipelines.babi.dataset` gives them.
        groups: ids of words that may replace each other.
        vocabulary_size: number of ids.
        seed: of the names; the renaming of batch n depends only on seed and n.
        start: the number of the first batch.
    """
    if not groups:
        return dataset
    kind = np.arange(vocabulary_size)
    for members in groups:
        kind[list(members)] = min(members)
    order = np.argsort(kind, kind="stable")  # words by kind: place -> word
    place = np.argsort(order)  # word -> place

    def rename(number, batch):
        shape = [tf.shape(batch["items"])[0], vocabulary_size]
        chance = tf.random.stateless_uniform(shape, [seed, number])
        # Sorting by kind and a random number shuffles the words of each kind among its places.
        other = tf.argsort(kind.astype(np.float32) + 0.999 * chance)
        name = tf.gather(other, place, axis=1)  # [B, V]: word -> its new name
        known = {key: tf.maximum(batch[key], 0) for key in ("items", "questions", "answers")}
        new = {key: tf.gather(name, ids, batch_dims=1) for key, ids in known.items()}
        new["answers"] = tf.where(batch["answers"] < 0, batch["answers"], new["answers"])
        return {**batch, **new}

    return dataset.enumerate(start).map(rename)
