"""Summaries on one scale, and the products of their main directions."""

import numpy as np
import pytest

from lemn_tf.readers.standards import Standards


def summaries(count: int = 500) -> np.ndarray:
    random = np.random.default_rng(0)
    mixed = random.normal(size=(count, 3)) @ random.normal(size=(3, 6)) * [1, 5, 0.1, 2, 3, 1]
    mixed += np.array([9, 0, 0, 0, 0, -4])
    return np.hstack([mixed, np.full([count, 1], 7.0)])


def test_all_of_it_has_mean_0_and_features_variance_1():
    given = summaries()
    e = Standards.of(given, products=3)(given).numpy()
    assert e.shape == (500, 7 + 6)
    np.testing.assert_allclose(e.mean(axis=0), 0.0, atol=1e-4)
    np.testing.assert_allclose(e[:, :6].std(axis=0), 1.0, atol=1e-4)
    assert not e[:, 6].any()  # what never varies says nothing


def test_products_are_those_of_uncorrelated_directions():
    given = summaries()
    standards = Standards.of(given, products=3)
    z = (given - standards.mean) * standards.scale
    p = z @ standards.axes
    np.testing.assert_allclose(p.T @ p / len(p), np.eye(3), atol=1e-4)
    expected = [p[:, i] * p[:, j] - (i == j) for i in range(3) for j in range(i, 3)]
    e = standards(given).numpy()
    np.testing.assert_allclose(e[:, 7:], np.stack(expected, axis=-1), atol=1e-4)
    assert standards.width == e.shape[-1]


def test_none_are_the_features_alone():
    given = summaries()
    standards = Standards.of(given)
    e = standards(given[None]).numpy()
    assert e.shape == (1, 500, 7)
    assert standards.width == 7


def test_no_more_directions_than_features():
    with pytest.raises(ValueError, match="at most 7 directions, the width of a summary; got 8"):
        Standards.of(summaries(), products=8)
