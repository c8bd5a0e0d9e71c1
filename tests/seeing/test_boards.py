"""What is written for TensorBoard: one event file, with all of it."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from lemn_tf.seeing.boards import Board, tables
from lemn_tf.seeing.trace import Asked, Trace

LATER = "regret/drops needed later"


def events(folder):
    """Tags of everything written, with their steps and values; there is one file."""
    (path,) = folder.rglob("events.*")
    found = {}
    for event in tf.compat.v1.train.summary_iterator(str(path)):
        for value in event.summary.value:
            found.setdefault(value.tag, []).append((event.step, value))
    return found


def test_one_file_with_all_of_it(trace, tmp_path):
    board = Board(tmp_path, {"slots": 2, "recipe": {"rate": 0.1}})
    board.phase("reader", 0, 0)
    board.scalars({"loss": 1.0, "val_loss": 2.0, "phase": "reader", "update": 3}, 10)
    board.results({"st-lemn": 10.0, "fifo": 40.0, "oracle": 0.0}, 10)
    board.memory([trace], 10)
    board.close()
    found = events(tmp_path)
    assert {"training/loss", "validation/loss", "phase", "phases", "life-lines", "memory"} <= set(
        found
    )
    assert {"error/st-lemn", "error/fifo", "error/oracle", "age of evicted items"} <= set(found)
    assert "custom_scalars__config__" in found
    info = found["_hparams_/session_start_info"][0][1].metadata.plugin_data.content
    assert str(tmp_path).encode() in info  # what the run is called beside others
    assert not {"training/update", "training/phase"} & set(found)
    assert [step for step, _ in found["validation/loss"]] == [10]
    histogram = tf.make_ndarray(found["age of evicted items"][0][1].tensor)
    assert histogram[:, 2].sum() == 2
    picture = tf.make_ndarray(found["life-lines"][0][1].tensor)
    assert tf.io.decode_png(picture[2]).shape[-1] in (3, 4)
    (_, recall), (_, regretted) = found["regret/needed items found"] + found[LATER]
    assert (tf.make_ndarray(recall.tensor), tf.make_ndarray(regretted.tensor)) == (75.0, 1.0)


def test_no_regret_is_shown_where_nobody_knows_what_was_needed(trace, tmp_path):
    unlabelled = [
        dataclasses.replace(line, support=(), costs={}) if isinstance(line, Asked) else line
        for line in trace
    ]
    board = Board(tmp_path)
    board.memory([Trace(unlabelled)], 10)
    board.close()
    found = events(tmp_path)
    assert "life-lines" in found
    assert not [tag for tag in found if tag.startswith("regret")]


def test_a_look_at_a_subject_beside_the_rules(subject, tmp_path):
    board = Board(tmp_path, recall=True)
    before = np.random.get_state()[1].copy()
    board.look(subject, 7)
    board.close()
    np.testing.assert_array_equal(before, np.random.get_state()[1])
    found = events(tmp_path)
    layout = found["custom_scalars__config__"][0][1].tensor.string_val[0]
    assert b"error/.*" in layout
    assert b"in memory/.*" in layout
    errors = {tag: tf.make_ndarray(found[tag][0][1].tensor) for tag in found if tag[:6] == "error/"}
    assert errors["error/fifo"] == pytest.approx(subject.score("fifo")["result"])
    assert set(errors) == {f"error/{name}" for name in ("st-lemn", "fifo", "lru", "oracle")}
    kept = {
        tag: tf.make_ndarray(found[tag][0][1].tensor) for tag in found if tag[:9] == "in memory"
    }
    assert kept["in memory/fifo"] == pytest.approx(subject.score("fifo")["recall"])
    assert len(kept) == len(errors)
    assert {"life-lines", "memory", "age of evicted items", LATER} <= set(found)
    assert {step for values in found.values() for step, _ in values} == {0, 7}


def test_memory_at_the_questions(trace):
    text = tables(trace)
    assert "**Where is the milk? garden** (wrong: home), after 4 items" in text
    assert "| 1 | Mary went home. | 0.40 | ✓ |" in text
