"""Readers of documents: a training that was stopped ends as if it had not been."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from lemn_tf.experiments import documents, documents_training


@pytest.mark.slow
def test_a_reader_goes_on_where_it_was_stopped(towns, tmp_path):
    settings = documents.Settings(
        qa=(towns.qa,),
        evidence=(towns.evidence,),
        embeddings=towns.vectors,
        slots=3,
        updates=4,
        policy="fifo",
    )

    def stop(text):
        if text.startswith("reader, 3"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        documents_training.train(settings, tmp_path / "stopped", stop)
    assert not (tmp_path / "stopped" / "reader.npz").exists()
    for name in ("stopped", "whole"):
        documents_training.train(settings, tmp_path / name)
    with np.load(tmp_path / "stopped" / "reader.npz") as ours:
        with np.load(tmp_path / "whole" / "reader.npz") as theirs:
            for name in theirs.files:
                np.testing.assert_allclose(ours[name], theirs[name], atol=1e-6, err_msg=name)
        # The averaged weights are kept, not the last ones.
        with np.load(tmp_path / "whole" / "checkpoint.npz") as last:
            assert not np.allclose(ours["s"], last["0"])


def test_question_files_count_as_the_weights_say():
    """Of two files with three documents and one, the second counts twice as much."""
    entries = [SimpleNamespace(source=source) for source in (0, 0, 1, 0)]
    collection = SimpleNamespace(entries=entries)
    given = SimpleNamespace(weights=(1.0, 2.0))
    weights = documents_training._of_each(given, collection)
    np.testing.assert_allclose(weights / weights.sum(), [1 / 9, 1 / 9, 6 / 9, 1 / 9])
    assert documents_training._of_each(SimpleNamespace(weights=None), collection) is None


@pytest.mark.slow
def test_the_reader_of_a_finished_run_is_taken_with_its_words(towns, tmp_path):
    given = {"qa": (towns.qa,), "evidence": (towns.evidence,), "slots": 3}
    first = documents.Settings(**given, embeddings=towns.vectors, updates=4, policy="fifo")
    one = documents_training.train(first, tmp_path / "first")
    second = documents.Settings(
        **given, embeddings=None, reader_from=str(tmp_path / "first"), epochs=1, weights=(1.0,)
    )
    other = documents_training.train(second, tmp_path / "second")
    for ours, theirs in zip(
        one.reader.trainable_weights, other.reader.trainable_weights, strict=True
    ):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    assert one.vocabulary.words == other.vocabulary.words
    assert not (tmp_path / "second" / "reader.npz").exists()
    assert other.reader.mean.numpy().any()
    wrong = dataclasses.replace(second, reader="bidaf")
    with pytest.raises(ValueError, match="expected a reader of the kind 'bidaf'"):
        documents_training.train(wrong, tmp_path / "third")
    assert not (tmp_path / "third").exists()
