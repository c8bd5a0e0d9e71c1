"""SQuAD's files turned into TriviaQA's."""

import json

import pytest

from lemn_tf.pipelines import documents, squad


def article(title, *paragraphs):
    return {
        "title": title,
        "paragraphs": [
            {
                "context": context,
                "qas": [
                    {
                        "id": f"{title}{number}{k}",
                        "question": f"What is {answer}?",
                        "answers": [{"text": answer, "answer_start": 0}] if answer else [],
                    }
                    for k, answer in enumerate(answers)
                ],
            }
            for number, (context, answers) in enumerate(paragraphs)
        ],
    }


@pytest.fixture
def file(tmp_path):
    def write(*articles, name="train-v1.1.json"):
        path = tmp_path / name
        path.write_text(json.dumps({"data": articles, "version": "1.1"}), encoding="utf-8")
        return path

    return write


def test_what_is_written_can_be_read(file, tmp_path):
    path = file(
        article("Pisa / Italy", ("Pisa is in Italy.", ["Italy", ""]), ("It leans.", ["leans"])),
        article("Zürich", ("é " * 30, ["é"]), ("Banks.", ["Banks", "the"])),
    )
    qa, *counts = squad.convert(path, tmp_path / "out", words=10)
    assert qa == tmp_path / "out" / "qa" / "wikipedia-train.json"
    assert counts == [3, 4, 2]
    collection = documents.read(qa, tmp_path / "out" / "evidence", answers=True)
    names = ["Pisa_Italy__000.txt", "Zürich__000.txt", "Zürich__001.txt"]
    assert [document.name for document in collection] == names
    assert collection[0].text == "Pisa is in Italy.\n\nIt leans."
    assert [question.aliases for question in collection[0].questions] == [("Italy",), ("leans",)]


def test_two_parts_lie_side_by_side(file, tmp_path):
    squad.convert(file(article("A", ("a b", ["b"])), name="train.json"), tmp_path)
    squad.convert(file(article("B", ("b c", ["c"])), name="dev.json"), tmp_path)
    assert len(list((tmp_path / "qa").iterdir())) == 2
    assert len(list((tmp_path / "evidence" / "wikipedia").iterdir())) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected SQuAD's format"),
        ("[]", "expected SQuAD's format"),
        ('{"data": []}', "expected questions with answers"),
        ('{"data": [{"title": "x"}]}', "article 0: expected SQuAD's format, got KeyError"),
        ('{"data": [3]}', "article 0"),
    ],
)
def test_a_bad_file_is_named_and_nothing_written(tmp_path, text, message):
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        squad.convert(tmp_path / "bad.json", tmp_path / "out")
    assert "bad.json" in str(error.value)
    assert not (tmp_path / "out").exists()
