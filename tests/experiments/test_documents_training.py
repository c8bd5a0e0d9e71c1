"""Readers of documents: a training that was stopped ends as if it had not been."""

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
