"""SQuAD's files turned into TriviaQA's: anybody's span data can be read by `pipelines.documents`.

The paragraphs of an article are joined into documents of up to 800 words. A question keeps its
answers as strings, without their places, as in TriviaQA.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .answers import normalize


def convert(
    path: str | os.PathLike, out: str | os.PathLike, split: str | None = None, words: int = 800
) -> tuple[Path, int, int, int]:
    """Writes `qa/wikipedia-SPLIT.json` and `evidence/wikipedia/*.txt`; whole or not at all.

    Questions without an answer (SQuAD 2) are left out.

    Args:
        path: a file in SQuAD's format: `data`, `paragraphs`, `context`, `qas`.
        out: the folder to write to, made if missing. What is there stays, unless it has the same
            name.
        split: name of the part; None for "train" or "dev" if the file's name says so, else "train".
        words: words of a document; a longer paragraph is a document of its own.

    Returns:
        (the question file, documents, questions, questions left out).

    Example:

    >>> folder = Path(tempfile.mkdtemp())
    >>> qa = {"id": "1", "question": "Where?", "answers": [{"text": "Italy", "answer_start": 8}]}
    >>> article = {"title": "Pisa", "paragraphs": [{"context": "Pisa in Italy.", "qas": [qa]}]}
    >>> _ = (folder / "dev-v1.1.json").write_text(json.dumps({"data": [article]}))
    >>> file, *counts = convert(folder / "dev-v1.1.json", folder)
    >>> file.name, counts, (folder / "evidence/wikipedia/Pisa__000.txt").read_text()
    ('wikipedia-dev.json', [1, 1, 0], 'Pisa in Italy.')
    """
    path, out = Path(path), Path(out)
    if words < 1:
        raise ValueError(f"expected documents of at least one word, got {words}")
    split = split or next((part for part in ("train", "dev") if part in path.name), "train")
    try:
        articles = json.loads(path.read_text(encoding="utf-8"))["data"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: expected SQuAD's format, a JSON object with data") from error
    records: list[dict[str, Any]] = []
    texts: dict[str, str] = {}
    skipped = 0
    for number, article in enumerate(articles):
        try:
            for name, text, asked in _documents(article, number, words):
                texts[name] = text
                found = [_record(each, name, article.get("title", "")) for each in asked]
                records += (record for record in found if record is not None)
                skipped += found.count(None)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{path}, article {number}: expected SQuAD's format, got {error!r}"
            ) from error
    if not records:
        raise ValueError(f"{path}: expected questions with answers, got none")
    header = {"Domain": "Wikipedia", "Split": split, "VerifiedEval": False, "Version": 1.0}
    file = out / "qa" / f"wikipedia-{split}.json"
    _write(out, file, {"Data": records, **header}, texts)
    return file, len(texts), len(records), skipped


def _documents(
    article: dict[str, Any], number: int, words: int
) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Name, text and questions of each document of an article."""
    title = re.sub(r"[^\w.-]+", "_", article.get("title", "")).strip("._") or f"article_{number}"
    parts: list[str] = []
    asked: list[dict[str, Any]] = []
    size = first = 0
    for place, paragraph in enumerate(article["paragraphs"]):
        length = len(paragraph["context"].split())
        if parts and size + length > words:
            yield f"{title}__{first:03d}.txt", "\n\n".join(parts), asked
            parts, asked, size, first = [], [], 0, place
        parts.append(paragraph["context"])
        asked += paragraph["qas"]
        size += length
    if parts:
        yield f"{title}__{first:03d}.txt", "\n\n".join(parts), asked


def _record(question: dict[str, Any], name: str, title: str) -> dict[str, Any] | None:
    """A record of TriviaQA's format, or None if the question has no answer."""
    aliases = list(dict.fromkeys(answer["text"] for answer in question["answers"]))
    normal = list(dict.fromkeys(filter(None, map(normalize, aliases))))
    if not normal:
        return None
    return {
        "Question": question["question"],
        "QuestionId": str(question["id"]),
        "Answer": {
            "Value": aliases[0],
            "Aliases": aliases,
            "NormalizedAliases": normal,
            "NormalizedValue": normalize(aliases[0]),
            "Type": "FreeForm",
        },
        "EntityPages": [{"DocSource": "Wikipedia", "Filename": name, "Title": title}],
        "SearchResults": [],
    }


def _write(out: Path, file: Path, data: dict[str, Any], texts: dict[str, str]) -> None:
    """Writes all files beside `out` first, then moves them in; the question file comes last."""
    evidence = out / "evidence" / "wikipedia"
    made = not out.exists()
    out.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(prefix=".squad-", dir=out) as temporary:
            for name, text in texts.items():
                (Path(temporary) / name).write_text(text, encoding="utf-8", newline="")
            whole = json.dumps(data, ensure_ascii=False)
            (Path(temporary) / "qa.json").write_text(whole, encoding="utf-8")
            evidence.mkdir(parents=True, exist_ok=True)
            file.parent.mkdir(parents=True, exist_ok=True)
            for name in texts:
                os.replace(Path(temporary) / name, evidence / name)
            os.replace(Path(temporary) / "qa.json", file)
    except OSError:
        if made:
            shutil.rmtree(out, ignore_errors=True)
        raise
