"""TriviaQA's question files, record by record: files of gigabytes are never in memory as a whole.

A file is one JSON object. `Data` holds a list of records; `Domain`, `Split` and `VerifiedEval` may
come before or after it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHUNK = 1 << 20
LARGEST = 1 << 25
"""Characters that one record may have."""


class QaFile:
    """Iterates over the records of a question file; afterwards `header` holds the other fields.

    Example:

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "qa.json"
    >>> _ = path.write_text('{"Data": [{"QuestionId": "tc_1"}], "Domain": "Web"}')
    >>> file = QaFile(path)
    >>> list(file), file.header
    ([{'QuestionId': 'tc_1'}], {'Domain': 'Web'})
    """

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = Path(path)
        self.header: dict[str, Any] = {}
        self.record = -1
        self._decoder = json.JSONDecoder()
        self._text, self._at, self._gone = "", 0, 0

    def bad(self, expected: str, got: object) -> ValueError:
        """An error that names the file and the record read last."""
        place = f", record {self.record}" if self.record >= 0 else ""
        position = f" (near character {self._gone + self._at:,})" if self._gone + self._at else ""
        return ValueError(f"{self.path}{place}{position}: expected {expected}, got {got}")

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self.header, self.record = {}, -1
        self._text, self._at, self._gone = "", 0, 0
        with self.path.open(encoding="utf-8-sig") as self._file:
            try:
                yield from self._top()
            except UnicodeDecodeError as error:
                raise self.bad("UTF-8", f"byte {error.object[error.start]:#x}") from error
        if self.record < 0:
            raise self.bad("at least one record in Data", "none")

    def _top(self) -> Iterator[dict[str, Any]]:
        self._take("{", "an object with Data, as in TriviaQA's files")
        while self._peek() != "}":
            key = self._value()
            self._take(":", "a colon after a key")
            if key == "Data":
                yield from self._records()
            else:
                self.header[key] = self._value()
            if self._peek() == ",":
                self._at += 1
            elif self._peek() != "}":
                raise self.bad("a comma or } after a field", repr(self._peek()))

    def _records(self) -> Iterator[dict[str, Any]]:
        self._take("[", "a list as Data")
        if self._peek() == "]":
            self._at += 1
            return
        while True:
            self.record += 1
            value = self._value()
            if not isinstance(value, dict):
                raise self.bad("an object", repr(value)[:60])
            yield value
            mark = self._peek()
            self._at += 1
            if mark == "]":
                return
            if mark != ",":
                raise self.bad("a comma or ] after a record", repr(mark) if mark else "the end")

    def _more(self) -> bool:
        """Reads on and drops what is done with; whether there was more."""
        chunk = self._file.read(CHUNK)
        if chunk:
            self._gone += self._at
            self._text, self._at = self._text[self._at :] + chunk, 0
        return bool(chunk)

    def _peek(self) -> str:
        """The next character that is not white space, or "" at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in " \t\r\n":
                self._at += 1
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def _take(self, mark: str, expected: str) -> None:
        found = self._peek()
        if found != mark:
            raise self.bad(expected, repr(found) if found else "the end of the file")
        self._at += 1

    def _value(self) -> Any:
        """The next JSON value."""
        self._peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                place, found = self._gone + error.pos, self._text[error.pos : error.pos + 30]
                cut_off = error.pos >= len(self._text) - 16 or "Unterminated" in error.msg
                if cut_off and len(self._text) - self._at < LARGEST and self._more():
                    continue
                raise self.bad(
                    f"valid JSON ({error.msg} at character {place:,})",
                    repr(found) if found else "the end of the file",
                ) from error
            number = isinstance(value, (int, float))
            if number and len(self._text) - end < 32 and self._more():
                continue  # it may go on in the next chunk
            self._at = end
            return value
