"""TriviaQA's files: questions in JSON, documents in an evidence folder, read as a stream.

    collection = read("qa/wikipedia-train.json", "evidence")     # indexes; loads no document
    len(collection), collection.missing                          # documents found, names not found
    for document in collection:                                  # one text in memory at a time
        document.name, document.text, document.questions

`pipelines.spans.dataset(collection, words, batch_size)` turns a collection into batches.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .answers import normalize
from .qa_files import QaFile

LARGEST = 16 << 20
"""Bytes that a document may have. TriviaQA's longest has about two million."""
DOMAINS = ("wikipedia", "web")
FOLDERS = {"EntityPages": "wikipedia", "SearchResults": "web"}
"""Where the documents of a list in a question file lie."""
Paths = str | os.PathLike | Sequence[str | os.PathLike]


@dataclass(frozen=True)
class DocumentQuestion:
    """A question about one document or several.

    Attributes:
        id: TriviaQA's QuestionId.
        text: the question.
        aliases: the right answers as written, human answers included; empty in a test file.
        normalized_aliases: the right answers as the official scorer compares them.
        verified: whether it is part of the verified subset.
    """

    id: str
    text: str
    aliases: tuple[str, ...]
    normalized_aliases: tuple[str, ...]
    verified: bool = False


@dataclass(frozen=True)
class Document:
    """A document with all of its questions.

    Attributes:
        name: its `Filename` in the qa file.
        data: the file's bytes: UTF-8, not always valid. Offsets of spans count in these bytes.
        questions: what is asked about it.
    """

    name: str
    data: bytes
    questions: tuple[DocumentQuestion, ...]

    @property
    def text(self) -> str:
        """The document as text."""
        return self.data.decode("utf-8", errors="replace")

    def between(self, start: int, end: int) -> str:
        """The text between two byte offsets, as `offsets` in `pipelines.spans` gives them."""
        return self.data[start:end].decode("utf-8", errors="replace")


@dataclass(frozen=True)
class Entry:
    """A document in the index: where it is and what is asked about it.

    Attributes:
        name: its `Filename` in the qa file.
        path: the file.
        size: its bytes.
        questions: indices into `Collection.questions`.
        source: which of the qa files it comes from.
    """

    name: str
    path: Path
    size: int
    questions: tuple[int, ...]
    source: int


@dataclass(frozen=True)
class Collection:
    """Documents that can be streamed or picked, with their questions; no text is in memory.

    Attributes:
        entries: the documents.
        questions: every question of the files, also those that have no document.
        missing: names of documents that are not in the evidence folder.
        qa_files: the files it was read from.
        domains: of each of these files, "Wikipedia" or "Web": what its `Domain` says.
    """

    entries: tuple[Entry, ...]
    questions: tuple[DocumentQuestion, ...]
    missing: tuple[str, ...]
    qa_files: tuple[Path, ...]
    domains: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, index: int) -> Document:
        entry = self.entries[index]
        data = entry.path.read_bytes()
        if b"\0" in data:
            raise ValueError(f"{entry.path}: expected a document of text, got binary data")
        return Document(entry.name, data, tuple(self.questions[i] for i in entry.questions))

    def __iter__(self) -> Iterator[Document]:
        return (self[index] for index in range(len(self)))

    def report(self) -> str:
        """One line: how much there is, and what is missing."""
        line = f"{len(self.entries):,} documents, {len(self.questions):,} questions"
        without = len(self.questions) - len({i for entry in self.entries for i in entry.questions})
        if without:
            line += f" ({without:,} without a document)"
        if self.missing:
            names = ", ".join(self.missing[:3]) + (", ..." if len(self.missing) > 3 else "")
            line += f"; {len(self.missing):,} documents not in the evidence folder: {names}"
        return line


def read(
    qa_files: Paths,
    evidence_folders: Paths,
    domain: str | None = None,
    *,
    answers: bool = False,
    largest: int = LARGEST,
) -> Collection:
    """Reads TriviaQA's question files and finds their documents.

    File names are compared in Unicode's decomposed form and in lower case. A document that is not
    there is counted in `missing`. Of a file made for the verified evaluation only the verified
    questions are taken, and in the web domain only their verified documents.

    Args:
        qa_files: a file in the format of `qa/wikipedia-train.json`, or several.
        evidence_folders: the folder `evidence`, or one for each question file.
        domain: "wikipedia" (entity pages) or "web" (entity pages and search results); None for
            what each file says.
        answers: whether every question must have an answer, as for training.
        largest: bytes that a document may have.

    Example:

    >>> import json, tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "Pisa.txt").write_text("Pisa is a town in Italy.")
    >>> record = {"Question": "Where is Pisa?", "QuestionId": "q1",
    ...           "Answer": {"Aliases": ["Italy"]},
    ...           "EntityPages": [{"Filename": "pisa.txt"}, {"Filename": "Rome.txt"}]}
    >>> _ = (folder / "qa.json").write_text(json.dumps({"Data": [record]}))
    >>> collection = read(folder / "qa.json", folder)
    >>> collection[0].text, collection[0].questions[0].normalized_aliases
    ('Pisa is a town in Italy.', ('italy',))
    >>> collection.report()
    '1 documents, 1 questions; 1 documents not in the evidence folder: Rome.txt'
    """
    files, folders = _checked(qa_files, evidence_folders, domain)
    entries: list[Entry] = []
    questions: list[DocumentQuestion] = []
    missing: dict[str, None] = {}
    domains: list[str] = []
    evidence = {folder: _Evidence(folder, largest) for folder in folders}
    for source, path in enumerate(files):
        file, here = QaFile(path), evidence[folders[source % len(folders)]]
        asked: dict[tuple[str, Path], tuple[int, list[int]]] = {}
        for question, pages in _questions(file, domain, answers):
            for kind, name in pages:
                found = here.find(kind, name)
                if found is None:
                    missing[name] = None
                    continue
                place = asked.setdefault((name, found[0]), (found[1], []))[1]
                if len(questions) not in place[-1:]:
                    place.append(len(questions))
            questions.append(question)
        domains.append(file.header.get("Domain", "Wikipedia"))
        for (name, where), (size, indices) in asked.items():
            entries.append(Entry(name, where, size, tuple(indices), source))
    if not entries:
        raise FileNotFoundError(
            f"{', '.join(map(str, folders))}: expected documents such as "
            f"{next(iter(missing), '(none named)')}, found none of {len(missing):,}"
        )
    return Collection(
        tuple(entries), tuple(questions), tuple(missing), tuple(files), tuple(domains)
    )


def _checked(
    qa_files: Paths, evidence_folders: Paths, domain: str | None
) -> tuple[list[Path], list[Path]]:
    """The question files and evidence folders; raises if they or the domain cannot be right."""
    files, folders = _paths(qa_files), _paths(evidence_folders)
    if len(folders) not in (1, len(files)):
        raise ValueError(
            f"expected one evidence folder, or one for each of {len(files)} question files, "
            f"got {len(folders)}"
        )
    if domain is not None and domain.lower() not in DOMAINS:
        raise ValueError(f"expected the domain to be one of {', '.join(DOMAINS)}, got {domain!r}")
    for folder in folders:
        if not folder.is_dir():
            raise FileNotFoundError(f"{folder}: expected a folder of documents, found none")
    return files, folders


def _paths(paths: Paths) -> list[Path]:
    several = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    found = [Path(path) for path in several]
    if not found:
        raise ValueError("expected at least one path, got none")
    return found


def _questions(
    file: QaFile, domain: str | None, answers: bool
) -> Iterable[tuple[DocumentQuestion, list[tuple[str, str]]]]:
    """Each question of a file, with the kind and the name of its documents."""
    found = []
    for record in file:
        try:
            question = _question(record)
            pages = {
                kind: [(page["Filename"], page.get("DocPartOfVerifiedEval")) for page in listed]
                for kind in ("EntityPages", "SearchResults")
                if (listed := record.get(kind) or ())
            }
        except (KeyError, TypeError, AttributeError) as error:
            raise file.bad("a record as in TriviaQA's files", f"{error!r}") from error
        if answers and not question.normalized_aliases:
            raise file.bad("an Answer with Aliases in a file to train on", f"none ({question.id})")
        found.append((question, pages))
    web = (domain or file.header.get("Domain", "wikipedia")).lower() == "web"
    clean = bool(file.header.get("VerifiedEval"))
    for question, pages in found:
        if clean and not question.verified:
            continue
        yield (
            question,
            [
                (kind, name)
                for kind, listed in pages.items()
                for name, verified in listed
                if (web or kind == "EntityPages") and (verified or not (web and clean))
            ],
        )


def _question(record: Mapping[str, Any]) -> DocumentQuestion:
    answer = record.get("Answer") or {}
    human = list(answer.get("HumanAnswers") or ())
    aliases = dict.fromkeys([*(answer.get("Aliases") or ()), *human])
    if "Value" in answer:
        aliases[answer["Value"]] = None
    normal = answer.get("NormalizedAliases")
    normal = [normalize(alias) for alias in aliases] if normal is None else list(normal)
    normal += map(normalize, human)
    return DocumentQuestion(
        str(record["QuestionId"]),
        str(record["Question"]),
        tuple(aliases),
        tuple(dict.fromkeys(normal)),
        bool(record.get("QuestionPartOfVerifiedEval", False)),
    )


class _Evidence:
    """An evidence folder: finds a document by the name that a question file gives it."""

    def __init__(self, folder: Path, largest: int) -> None:
        self.folder, self.largest = folder, largest
        self.found: dict[tuple[str, str], tuple[Path, int] | None] = {}
        self.index: dict[Path, dict[str, Path]] = {}

    def find(self, kind: str, name: str) -> tuple[Path, int] | None:
        """The file and its size, or None if there is none."""
        key = (kind, name)
        if key not in self.found:
            self.found[key] = self._look(kind, name)
        return self.found[key]

    def _look(self, kind: str, name: str) -> tuple[Path, int] | None:
        for folder in (self.folder / FOLDERS[kind], self.folder):
            if not folder.is_dir():
                continue
            outside = ".." in Path(name).parts or Path(name).is_absolute()
            path: Path | None = folder / name
            if outside or not (folder / name).is_file():
                path = self._indexed(folder).get(_canonical(name))
            if path is not None:
                size = path.stat().st_size
                if size > self.largest:
                    raise ValueError(
                        f"{path}: expected a document of at most {self.largest:,} bytes, "
                        f"got {size:,}"
                    )
                return path, size
        return None

    def _indexed(self, folder: Path) -> dict[str, Path]:
        if folder not in self.index:
            self.index[folder] = {
                _canonical(str((Path(where) / name).relative_to(folder))): Path(where) / name
                for where, _, names in os.walk(folder)
                for name in names
            }
        return self.index[folder]


def _canonical(name: str) -> str:
    return unicodedata.normalize("NFD", name).lower()
