"""Question files, record by record."""

import json

import pytest

from lemn_tf.pipelines import qa_files
from lemn_tf.pipelines.qa_files import QaFile


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "qa.json"

    def write(text, encoding="utf-8"):
        path.write_bytes(text.encode(encoding))
        return QaFile(path)

    return write


@pytest.mark.parametrize("chunk", [1, 7, 64, 1 << 20])
@pytest.mark.parametrize("indent", [None, 4])
def test_records_and_header_come_back_whatever_the_chunks(file, monkeypatch, chunk, indent):
    monkeypatch.setattr(qa_files, "CHUNK", chunk)
    data = {
        "Split": "train",
        "Data": [{"n": k, "text": 'a "q" \\ é “x” {[' * k, "list": [1.5, True]} for k in range(9)],
        "Domain": "Web",
        "Version": 1.25,
    }
    for ascii_only in (True, False):
        read = file(json.dumps(data, indent=indent, ensure_ascii=ascii_only))
        assert list(read) == data["Data"]
        assert read.header == {"Split": "train", "Domain": "Web", "Version": 1.25}
        assert list(read) == data["Data"]  # and once more


def test_a_byte_order_mark_is_no_harm(file):
    assert list(file('\ufeff{"Data": [{"a": 1}]}')) == [{"a": 1}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the end of the file"),
        ("[]", "an object with Data"),
        ('{"Data": []}', "at least one record"),
        ('{"Domain": "Web"}', "at least one record"),
        ('{"Data": {}}', "a list as Data"),
        ('{"Data": [{"a": 1}, {"a": }]}', r"record 1 .*Expecting value at character 26"),
        ('{"Data": [{"a": 1}, {"a": "b', "record 1 .*Unterminated"),
        ('{"Data": [{"a": 1}', "record 0 .*a comma or ]"),
        ('{"Data": [{"a": 1}] "Domain"', "a comma or }"),
        ('{"Data": [3]}', "record 0 .*an object, got 3"),
    ],
)
def test_a_broken_file_is_named_with_the_place(file, text, message):
    read = file(text)
    with pytest.raises(ValueError, match=message) as error:
        list(read)
    assert str(read.path) in str(error.value)


def test_a_broken_record_is_reported_before_the_rest_is_read(file, monkeypatch):
    monkeypatch.setattr(qa_files, "CHUNK", 100)
    read = file('{"Data": [{"a" 1}' + ", {}" * 10_000 + "]}")
    with pytest.raises(ValueError, match="record 0"):
        list(read)
    assert len(read._text) < 300


def test_other_encodings_are_refused(file):
    with pytest.raises(ValueError, match="expected UTF-8, got byte 0xe9"):
        list(file('{"Data": [{"a": "é"}]}', encoding="latin-1"))
