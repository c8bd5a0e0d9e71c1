"""Texts of random words, as the pipeline of documents gives them."""

import numpy as np
import pytest
import tensorflow as tf


def texts(lead: list[int], length: int, seed: int = 0, vocabulary: int = 20) -> dict:
    """A dict over `[*lead, length]`; some texts end early."""
    random = np.random.default_rng(seed)
    shape = [*lead, length]
    live = np.arange(length) < random.integers(length // 2, length + 1, lead)[..., None]

    def whole(most, *more):
        drawn = random.integers(1, most, [*shape, *more])
        return tf.constant(drawn * live.reshape([*shape, *[1] * len(more)]), tf.int32)

    def real(*more):
        drawn = random.random([*shape, *more]) * live.reshape([*shape, *[1] * len(more)])
        return tf.constant(drawn, tf.float32)

    return {
        "words": whole(vocabulary),
        "chars": whole(256, 16),
        "shape": whole(5),
        "suffix": whole(7),
        "punctuation": whole(4, 2),
        "stem": whole(vocabulary),
        "idf": real(),
        "features": real(6),
    }


@pytest.fixture
def documents() -> dict:
    """Three documents of seven slots of six words, with two questions each."""
    random = np.random.default_rng(3)
    slot, start, more = (random.integers(0, most, [3, 2, 4]) for most in (7, 3, 3))
    answers = np.stack([slot, start, more], axis=-1)
    answers[0, 0, 2:] = -1
    answers[1, 1, 1:] = -1
    answers[:, :, 3] = -1
    return {
        "items": texts([3, 7], 6),
        "length": tf.constant([7, 5, 6]),
        "questions": texts([3, 2], 4, seed=1),
        "ask_at": tf.constant([[7, 7], [5, 5], [6, -1]]),
        "answers": tf.constant(answers, tf.int32),
    }
