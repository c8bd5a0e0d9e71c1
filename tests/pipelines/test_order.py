"""Which documents come when."""

import numpy as np
import pytest
import tensorflow as tf

from lemn_tf.pipelines.order import Drawing, Order, chunks

SIZES = np.random.default_rng(0).integers(1, 1000, 500)


def test_a_document_of_many_questions_has_several_rows(collection):
    rows = chunks(collection, 2)
    assert rows.tolist() == [[0, 0, 1], [0, 3, -1], [1, 2, 4]]


@pytest.mark.parametrize("seed", [None, 3])
def test_every_row_comes_once(seed):
    order = Order(SIZES, np.zeros(500, int), 4, seed)
    for epoch in range(2):
        assert sorted(order.epoch(epoch)) == list(range(500))


def test_epochs_differ_and_repeat_exactly():
    order = Order(SIZES, np.zeros(500, int), 4, 3)
    assert not np.array_equal(order.epoch(0), order.epoch(1))
    assert np.array_equal(order.epoch(1), Order(SIZES, np.zeros(500, int), 4, 3).epoch(1))


def test_like_lengths_come_together():
    rows = Order(SIZES, np.zeros(500, int), 10, 3).epoch(0).reshape(-1, 10)
    spread = np.ptp(SIZES[rows], axis=1).mean()
    assert spread < 0.2 * np.ptp(SIZES)


def test_weights_say_how_often_a_file_comes():
    sources = np.repeat([0, 1], [400, 100])
    rows = Order(SIZES, sources, 4, 3, weights=[1, 3]).epoch(0)
    assert 0.68 < (sources[rows] == 1).mean() < 0.82
    counts = np.bincount(rows[sources[rows] == 1] - 400, minlength=100)
    assert np.ptp(counts) <= 1


@pytest.mark.parametrize(("weights", "seed"), [([1], 1), ([1, -1], 1), ([0, 0], 1), ([1, 1], None)])
def test_bad_weights_are_refused(weights, seed):
    with pytest.raises(ValueError, match="expected a"):
        Order(SIZES, np.repeat([0, 1], 250), 4, seed, weights=weights)


def test_a_drawing_counts_its_batches():
    data = tf.data.Dataset.range(10)
    for options, batches in (({}, 3), ({"start": 2}, 1), ({"drop_remainder": True}, 2)):
        drawing = Drawing(4, **options)
        drawn = drawing.counted(drawing.batched(data.skip(drawing.begin)), 10)
        assert drawn.cardinality() == batches == len(list(drawn))
    endless = Drawing(4, repeat=True)
    assert endless.counted(endless.batched(data.repeat()), 10).cardinality() < 0


@pytest.mark.parametrize("options", [{"batch_size": 0}, {"batch_size": 1, "start": -1}])
def test_bad_drawings_are_refused(options):
    with pytest.raises(ValueError, match="expected batch_size >= 1, start >= 0"):
        Drawing(**options)
