"""A training over documents in TensorBoard."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf import loop
from lemn_tf.experiments import documents, documents_training
from lemn_tf.experiments.documents_board import BoardedRun, InTraining, few
from lemn_tf.experiments.documents_reading import Reading
from lemn_tf.pipelines import documents as files
from lemn_tf.seeing.subjects_documents import DocumentSubject
from tests.experiments.conftest import span_model

LINES = [
    {"stage": "reader", "epoch": 0, "update": 10, "loss": 3.0},
    {"stage": "reader", "epoch": 1, "update": 20, "loss": 2.0},
    {"stage": "policy", "update": 4, "answer_in_memory": 0.5},
]


def events(folder):
    """Tags of everything written, with their steps and values; there is one file."""
    (path,) = (folder / "logs").iterdir()
    found = {}
    for event in tf.compat.v1.train.summary_iterator(str(path)):
        for value in event.summary.value:
            found.setdefault(value.tag, []).append((event.step, tf.make_ndarray(value.tensor)))
    return found


def test_stages_are_phases_of_one_curve(tmp_path):
    run = BoardedRun(tmp_path, {"slots": 3})
    for line in LINES:
        run.log(line)
    run.board.close()
    assert run.history() == LINES
    found = events(tmp_path)
    assert found["training/loss"] == [(10, 3.0), (20, 2.0)]
    assert found["training/answer_in_memory"] == [(24, 0.5)]
    assert [step for step, _ in found["phase"]] == [0, 20]
    assert b"policy begins at step 20" in found["phases"][1][1]
    assert "training/epoch" not in found


def test_a_run_that_goes_on_counts_on(tmp_path):
    first = BoardedRun(tmp_path, {"slots": 3})
    first.log(LINES[0])
    first._lock.close()
    second = BoardedRun(tmp_path, {"slots": 3})
    assert second.stages == ["reader"]
    second.log(LINES[2])
    assert (second.began, second.step) == (10, 14)


def test_an_older_history_counts_epochs(tmp_path):
    (tmp_path / "history.jsonl").write_text('{"stage": "reader", "epoch": 1}\n')
    assert BoardedRun(tmp_path, {}).step == 2


@pytest.fixture(scope="module")
def data(towns):
    return Reading(span_model(towns), files.read(towns.qa, towns.evidence)).collection


@pytest.mark.slow
@pytest.mark.parametrize("aware", [False, True])
def test_a_look_agrees_with_an_evaluation(towns, data, aware):
    model = span_model(towns, "s-lemn", question_aware=aware)
    subject = InTraining(model, data)
    whole = DocumentSubject(model, towns.qa, towns.evidence)
    assert subject.rules() == whole.rules()
    for rule in (None, *subject.rules()[2:]):
        ours, theirs = subject.score(rule), whole.score(rule)
        assert ours["count"] == theirs["count"] == 36
        assert ours["recall"] == pytest.approx(theirs["recall"], abs=1e-3)
        # an answer that matches may also stand where none was marked
        assert ours["result"] >= theirs["result"] - 1e-3
    (trace,) = subject.traces([0], hindsight=False)
    assert next(trace.steps()).text.startswith("The gate of")


def test_few_documents_are_looked_at(data):
    some = few(dataclasses.replace(data, entries=data.entries * 4))
    assert [entry.name for entry in some.entries][::7] == ["doc0.txt", "doc5.txt"]
    assert len(some) == 8


def trained(towns, out, monkeypatch, looks, **more):
    """A small training's weights, and the next random number."""
    if not looks:
        monkeypatch.setattr(BoardedRun, "look", lambda *_: None)
    given = {"qa": (towns.qa,), "evidence": (towns.evidence,), "embeddings": towns.vectors}
    settings = documents.Settings(**given, slots=3, epochs=3, updates=4, **more)
    model = documents_training.train(settings, out)
    return [*model.get_weights(), keras.random.normal([3]), np.random.random(3)]


@pytest.mark.slow
@pytest.mark.parametrize("more", [{}, {"question_aware": True}, {"recipe": "paper"}])
def test_looking_changes_no_numbers(towns, tmp_path, monkeypatch, more):
    ours = trained(towns, tmp_path / "looks", monkeypatch, True, **more)
    theirs = trained(towns, tmp_path / "none", monkeypatch, False, **more)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)
    found = events(tmp_path / "looks")
    steps = [step for step, _ in found["error/st-lemn"]]
    history = loop.history(tmp_path / "looks")
    assert steps[0] == 0
    assert steps[-1] == history[-1]["update"] + (4 if len(found["phase"]) > 1 else 0)
    assert steps == sorted(steps)
    assert len(steps) > 2
    rules = {"overlap"} if more.get("question_aware") else {"distinct-salient", "oracle"}
    shown = {"fifo", "lru", "st-lemn"} | rules
    assert {f"{tag}/{name}" for name in shown for tag in ("error", "in memory")} <= set(found)
    assert {"life-lines", "memory", "age of evicted items"} <= set(found)
    none = {tag for tag in events(tmp_path / "none") if tag.startswith(("error", "life"))}
    assert not none
