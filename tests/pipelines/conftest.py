"""Tiny files in TriviaQA's format."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lemn_tf.pipelines import documents

TEXTS = {
    "Pisa.txt": "The tower of Pisa leans. It stands in “Pisa”, a town in Italy's north-west.\n"
    "Pisa has 90,000 people (2019) and AC/DC played there in 1996. Italy is a country.",
    "Zürich.txt": "Zürich is the largest city of Switzerland. The Beatles never came to Zürich. "
    "The mayor said: the city of banks, lakes and trams welcomes everybody, in June and in July.",
}


def record(number: int, question: str, aliases: list[str], *names: str, **more: Any) -> dict:
    """A record of a question file; fields of `more` are added."""
    return {
        "Question": question,
        "QuestionId": f"tc_{number}",
        "Answer": {
            "Value": aliases[0],
            "Aliases": aliases,
            "NormalizedAliases": [alias.lower() for alias in aliases],
        },
        "EntityPages": [{"Filename": name} for name in names],
        "SearchResults": [],
        **more,
    }


RECORDS = [
    record(1, "Where is Pisa?", ["Italy", "Republic of Italy"], "Pisa.txt"),
    record(2, "Who played in Pisa?", ["ac dc"], "Pisa.txt"),
    record(3, "Who never came to Zurich?", ["beatles", "fab four"], "Zürich.txt"),
    record(4, "In what year?", ["1996"], "Pisa.txt"),
    record(5, "Where did nobody go?", ["nowhere"], "Zürich.txt", "Nowhere.txt"),
]


def write(folder: Path, records: list[dict], **header: Any) -> tuple[Path, Path]:
    """Writes a question file and its evidence; returns both paths."""
    evidence = folder / "evidence"
    (evidence / "wikipedia").mkdir(parents=True, exist_ok=True)
    for name, text in TEXTS.items():
        (evidence / "wikipedia" / name).write_text(text, encoding="utf-8")
    header = {"Domain": "Wikipedia", "Split": "dev", "VerifiedEval": False, **header}
    qa = folder / "qa.json"
    qa.write_text(json.dumps({"Data": records, **header}), encoding="utf-8")
    return qa, evidence


def written(folder: Path) -> SimpleNamespace:
    """Question file and evidence folder of five questions, and what to write others with."""
    qa, evidence = write(folder, RECORDS)

    def other(records: list[dict], name: str = "other", **header: Any) -> Path:
        return write(folder / name, records, **header)[0]

    return SimpleNamespace(qa=qa, evidence=evidence, record=record, write=other, texts=TEXTS)


@pytest.fixture
def made(tmp_path):
    """Tiny files, to be changed at will: see `written`."""
    return written(tmp_path)


@pytest.fixture(scope="session")
def collection(tmp_path_factory):
    """The collection of such files, for all tests that change nothing."""
    files = written(tmp_path_factory.mktemp("documents"))
    return documents.read(files.qa, files.evidence)
