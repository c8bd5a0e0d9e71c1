"""A model of documents as a subject: its drops are judged by labels and by what they cost."""

import numpy as np
import pytest

from lemn_tf.readers.base import Reader
from lemn_tf.seeing import recording
from lemn_tf.seeing.regret import judge
from lemn_tf.seeing.subjects_documents import DocumentSubject
from lemn_tf.seeing.validating import Watched
from tests.experiments.conftest import corpus, span_model

LITTLE = 0.005


@pytest.fixture(scope="module")
def subject(tmp_path_factory):
    """An untrained reader over two documents; to it, little matters much."""
    data = corpus(tmp_path_factory.mktemp("documents"), documents=2)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(recording, "MATTERS", LITTLE)
        yield DocumentSubject(span_model(data).with_policy("fifo", slots=5), data.qa, data.evidence)


@pytest.fixture(scope="module")
def traces(subject):
    return subject.traces(range(subject.count))


def test_drops_cost_what_they_would_have_added(subject, traces, monkeypatch):
    best = subject.model.reader.best

    def anew(self, policy, hindsight):
        return recording.examine(self.model, hindsight, lambda answer: best(answer)._asdict())

    monkeypatch.setattr(DocumentSubject, "_examine", anew)
    monkeypatch.setattr(type(subject.model.reader), "flipped", Reader.flipped)
    slow = DocumentSubject(subject.model, subject.qa, subject.evidence)
    pairs = zip(traces[0].questions(), slow.traces([0])[0].questions(), strict=True)
    count = 0
    for one, read in pairs:  # every slot was put back and the memory read again
        wanted = {item: worth for item, worth in read.costs.items() if worth > LITTLE + 1e-4}
        assert wanted.keys() <= one.costs.keys()
        found = [one.costs[item] for item in wanted]
        np.testing.assert_allclose(found, list(wanted.values()), atol=1e-4)
        count += len(wanted)
    assert count > 0


def test_a_board_over_documents(subject):
    batch = next(iter(subject._rows))[0]
    watched = Watched(subject.model, batch)
    errors = watched.errors()
    assert errors.keys() == {"fifo", "lru"}
    assert all(0 <= error <= 100 for error in errors.values())
    (trace,) = watched.traces()
    first = next(trace.steps())
    assert first.text.startswith("the gate of")
    assert next(trace.questions()).text.startswith("what colour is the gate of")


def test_a_question_needs_one_place(subject, traces):
    for question in (question for trace in traces for question in trace.questions()):
        assert len(question.support) == 1
        if question.support[0] not in question.ids:
            assert question.missed == question.support
    verdict = judge(traces)
    assert 0 < verdict.recall < 100
    assert 0 < verdict.cost < 1
    assert verdict.regretted
    assert judge(subject.each()).cost is None  # not asked for
