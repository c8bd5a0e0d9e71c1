"""`lemn report`: what is wrong is said at once, and a page comes of a run of any task."""

import keras
import numpy as np
import pytest

from lemn_tf import cli
from tests.experiments.conftest import corpus


def test_what_is_wrong_is_said(tmp_path, capsys):
    assert cli.main(["report", "babi-noisy-st-lemn-5", "--out", str(tmp_path / "r.txt")]) == 2
    assert "to end in .html" in capsys.readouterr().err
    assert cli.main(["report", "babi-noisy-st-lemn-5", "--out", str(tmp_path / "r.html")]) == 2
    assert "--data F" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_model_of_ones_own(own, tmp_path, capsys):
    model, x, y = own
    keras.saving.save_model(model, tmp_path / "mine.keras")
    np.savez(tmp_path / "samples.npz", x=x, y=y)
    given = ["report", str(tmp_path / "mine.keras"), "--data", str(tmp_path / "samples.npz")]
    assert cli.main([*given, "--slots", "2,3", "--out", str(tmp_path / "r.html")]) == 0
    assert "wrote" in capsys.readouterr().out
    text = (tmp_path / "r.html").read_text()
    assert "mine.keras" in text
    assert "<dt>samples</dt><dd>6</dd>" in text
    assert "probability lost a question" in text  # its loss came with it


@pytest.mark.slow
def test_a_maze_agent(tmp_path):
    out = tmp_path / "r.html"
    given = ["report", "imaze-mqn-st-lemn-4", "--lengths", "4", "--slots", "2,4"]
    assert cli.main([*given, "--out", str(out)]) == 0
    text = out.read_text()
    assert "episodes failed" in text
    assert "data:image/png;base64," in text
    assert "winnable" in text


@pytest.mark.slow
def test_a_model_of_documents(tmp_path):
    data = corpus(tmp_path)
    run, given = tmp_path / "run", ["--qa", data.qa, "--evidence", data.evidence]
    small = ["--updates", "4", "--epochs", "1", "--slots", "3", "--policy", "s-lemn"]
    trained = ["train", "documents", *given, "--embeddings", data.vectors, *small]
    assert not cli.main([*trained, "--out", str(run)])
    shown = ["report", str(run), "--data", data.qa, "--evidence", data.evidence, "--slots", "3"]
    assert not cli.main([*shown, "--out", str(tmp_path / "r.html")])
    text = (tmp_path / "r.html").read_text()
    assert "holds an answer" in text
    assert "What colour is the gate of" in text
