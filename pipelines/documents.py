"""TriviaQA's files: questions in JSON, documents in an evidence folder, read as a stream.

    collection = read("qa/wikipedia-train.json", "evidence")     # indexes; loads no document
    len(collection), collection.missing                          # documents there, names not there
    for document in collection:                                  # one text in memory at a time
        document.name, document.text, document.questions

`pipelines.spans.dataset(collection, words, batch_size)` turns a collection into batches.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    """A question about a document.

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
    questions: tuple[Question, ...]

    @property
    def text(self) -> str:
        """The document as text."""
        return self.data.decode("utf-8", errors="replace")

    def between(self, start: int, end: int) -> str:
        """The text between two byte offsets, as `offsets` in `pipelines.spans` gives them."""
        return self.data[start:end].decode("utf-8", errors="replace")
