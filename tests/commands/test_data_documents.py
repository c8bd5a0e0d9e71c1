"""`lemn data squad` and `lemn data triviaqa`."""

import json

from lemn_tf import cli
from lemn_tf.pipelines import archives, documents


def test_squad(tmp_path, capsys):
    asked = [
        {"id": "1", "question": "Where?", "answers": [{"text": "Italy", "answer_start": 8}]},
        {"id": "2", "question": "When?", "answers": [], "is_impossible": True},
    ]
    article = {"title": "Pisa", "paragraphs": [{"context": "Pisa in Italy.", "qas": asked}]}
    (tmp_path / "dev.json").write_text(json.dumps({"data": [article]}))
    out = tmp_path / "out"
    assert cli.main(["data", "squad", str(tmp_path / "dev.json"), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "wikipedia-dev.json: 1 documents, 1 questions, 1 left out" in said
    assert documents.read(out / "qa" / "wikipedia-dev.json", out / "evidence")[0].text


def test_a_bad_squad_file_is_one_line(tmp_path, capsys):
    (tmp_path / "bad.json").write_text("{}")
    out = tmp_path / "out"
    assert cli.main(["data", "squad", str(tmp_path / "bad.json"), "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("lemn: error: ")
    assert "bad.json: expected SQuAD's format" in said
    assert not out.exists()


def test_triviaqa_without_a_network_says_what_to_do(tmp_path, capsys, monkeypatch):
    url = (tmp_path / "no-such.tar.gz").as_uri()
    monkeypatch.setattr(archives, "TRIVIAQA", archives.TRIVIAQA._replace(url=url))
    out = tmp_path / "out"
    assert cli.main(["data", "triviaqa", "--download", "--out", str(out)]) == 2
    assert "lemn data squad FILE --out DIR" in capsys.readouterr().err
    assert list(out.iterdir()) == []
