"""`lemn export`."""

import pytest

from lemn_tf import cli, runs


@pytest.fixture
def run(tmp_path):
    """A run with a small model in it."""
    from lemn_tf import StreamReader, Vocabulary
    from lemn_tf.readers.memn2n import MemN2N

    words = ["mary", "went", "home"]
    reader = MemN2N(len(words) + 2, sentence_length=4)
    model = StreamReader(reader, slots=2, policy="fifo", vocabulary=Vocabulary(words))
    model.save(tmp_path / "model.keras")
    return tmp_path


def test_a_run_becomes_a_model_to_serve(run, tmp_path, capsys):
    out = tmp_path / "models" / "small" / "3"
    arguments = ["export", str(run), "--out", str(out), "--description", "Goes home."]
    assert cli.main(arguments) == 0
    said, silence = capsys.readouterr()
    assert silence.startswith("writing the signatures of ")
    assert said.startswith(f"{out}: 2 slots, fifo, fingerprint ")
    assert "observe_packed" in said
    assert "Goes home." in (out / "CARD.md").read_text()
    assert (out / "assets.extra" / "tf_serving_warmup_requests").is_file()


def test_what_is_there_stays(exported, monkeypatch, capsys):
    monkeypatch.setattr(runs, "load", None)  # refused before any work
    before = (exported / "saved_model.pb").read_bytes()
    assert cli.main(["export", "run", "--out", str(exported)]) == 2
    assert "exists: choose another place, or say --overwrite" in capsys.readouterr().err
    assert (exported / "saved_model.pb").read_bytes() == before


@pytest.mark.parametrize("out", ["m/one", "1.5", "models/babi/"])
def test_a_version_is_a_number(out, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["export", "babi-noisy-st-lemn-5", "--out", out])
    assert stop.value.code == 2
    assert "a number for the version" in capsys.readouterr().err


@pytest.mark.slow
def test_the_card_of_a_preset_says_where_it_comes_from(tmp_path):
    out = tmp_path / "babi" / "1"
    assert cli.main(["export", "babi-noisy-st-lemn-5", "--out", str(out), "--no-warmup"]) == 0
    card = (out / "CARD.md").read_text()
    assert "% wrong on the authors' validation file" in card
    assert "Trained by hindsight credit, on generated stories" in card
