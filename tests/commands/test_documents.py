"""`lemn train documents`, `evaluate` and `compare`, from files to scores."""

import importlib.util
import json
from pathlib import Path

import pytest

from lemn_tf.cli import main
from lemn_tf.experiments import triviaqa_scoring

spec = importlib.util.spec_from_file_location(
    "towns", Path(__file__).parents[1] / "experiments" / "conftest.py"
)
towns = importlib.util.module_from_spec(spec)
spec.loader.exec_module(towns)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return towns.corpus(tmp_path_factory.mktemp("towns"))


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
    assert told["exact_match"] == round(official.exact_match, 3)
    assert told["f1"] == round(official.f1, 3)
    assert official.common == 36
    assert not main(["evaluate", str(run), *asked, "--policy", "salient", "--slots", "99"])
    assert "in memory for 100.0% of 36 questions" in capsys.readouterr().out


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


def test_what_is_wrong_is_said(data, tmp_path, capsys):
    preset = "babi-noisy-st-lemn-5"
    assert main(["evaluate", preset, "--qa", data.qa])
    assert "--evidence" in capsys.readouterr().err
    assert main(["evaluate", preset, "--qa", data.qa, "--evidence", data.evidence])
    assert "expected a model of documents" in capsys.readouterr().err
    assert main(train(data, tmp_path / "x", "--policy", "best"))
    assert "unknown policy 'best'" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
