"""Traces as files: JSON lines, one for every decision and question, written and read as a stream.

    {"format": "lemn_tf trace, version 1", "policy": "st-lemn", "slots": 5}
    {"t": 0, "text": "Mary got the milk.", "ids": [-1, -1, 0], "keep": [1, 1, 1], "slot": 0, ...}
    {"question": 1, "at": 8, "text": "Where is the milk?", "answer": "garden", ...}

Neither writer nor reader holds more than a line, so a trace may be as long as the stream.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

from lemn_tf.files import replacing
from lemn_tf.seeing.trace import Asked, Line, Step, Trace

FORMAT = "lemn_tf trace, version 1"
"""Identifies a trace; a file that begins differently is refused."""
DIGITS = 4
"""Decimal places of probabilities."""


class TraceWriter:
    """Writes lines as they come.

    Args:
        file: a path, or a file on the disk that is open for text.
        about: further facts about the stream: model, policy, slots, data.
    """

    def __init__(self, file: str | os.PathLike | TextIO, about: dict[str, Any] | None = None):
        self._own = isinstance(file, str | os.PathLike)
        self.file: TextIO = open(file, "w", encoding="utf-8") if self._own else file  # type: ignore # noqa: SIM115
        self.file.write(json.dumps({"format": FORMAT, **(about or {})}) + "\n")

    def write(self, line: Line) -> None:
        """Adds a decision or a question."""
        self.file.write(to_json(line) + "\n")

    def write_lines(self, lines: bytes) -> None:
        """Adds lines that are JSON already."""
        self.file.flush()
        self.file.buffer.write(lines)

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Ends the file."""
        self.file.flush()
        if self._own:
            self.file.close()


def to_json(line: Line) -> str:
    """A decision or a question as one line of JSON.

    Example:

    >>> print(to_json(Step(0, (-1, 0), (1.0, 0.25), slot=0, text="Mary left.")))
    {"t": 0, "ids": [-1, 0], "keep": [1.0, 0.25], "slot": 0, "evicted": -1, "margin": 0.0,
     "free": false, "runner_up": -1, "text": "Mary left."}
    """
    told: dict[str, Any] = {}
    for name, value in vars(line).items():
        unsaid = value is None or value in ("", ()) or (name == "episode" and not value)
        if not unsaid:
            told["question" if name == "number" else name] = _rounded(value)
        if name == "slot" and isinstance(line, Step):
            told["evicted"] = line.evicted
    return json.dumps(told, ensure_ascii=False)


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _rounded(one) for name, one in value.items()}
    if isinstance(value, tuple):
        return [_rounded(one) for one in value]
    return round(value, DIGITS) if isinstance(value, float) else value


def from_json(told: dict[str, Any]) -> Line:
    """The inverse of `to_json`, of a line that has been parsed."""
    given: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in told.items()
    }
    given.pop("evicted", None)
    if "question" in given:
        if "costs" in given:
            given["costs"] = {int(item): cost for item, cost in given["costs"].items()}
        return Asked(number=given.pop("question"), **given)
    return Step(**given)


class TraceFile:
    """The lines of a trace in a file, read from the disk each time one iterates over them.

    Args:
        path: what `TraceWriter` or `save` wrote.
        episode: which of the streams in it; None for all.
    """

    def __init__(self, path: str | os.PathLike, episode: int | None = None):
        self.path, self.episode = Path(path), episode
        with open(self.path, encoding="utf-8") as file:
            self.about = self._parsed(file.readline(), 1)
        if self.about.pop("format", None) != FORMAT:
            raise ValueError(f"{path} is not a trace: expected its first line to say {FORMAT!r}")

    def _parsed(self, text: str, number: int) -> dict[str, Any]:
        try:
            told = json.loads(text)
        except ValueError:
            told = None
        if not isinstance(told, dict):
            raise ValueError(
                f"{self.path}, line {number}: expected an object in JSON, got {text[:60]!r}"
            )
        return told

    def __iter__(self) -> Iterator[Line]:
        with open(self.path, encoding="utf-8") as file:
            next(file)
            for number, text in enumerate(file, 2):
                if not text.endswith("\n"):
                    return  # this line is still being written
                told = self._parsed(text, number)
                if self.episode is not None and told.get("episode", 0) != self.episode:
                    continue
                try:
                    line = from_json(told)
                except TypeError as error:
                    raise ValueError(f"{self.path}, line {number}: {error}") from None
                yield line


def read(path: str | os.PathLike, episode: int | None = None) -> Trace:
    """The trace in a file; lines are read when they are needed.

    Args:
        path: what `save`, a `TraceWriter` or `lemn trace` wrote.
        episode: which of the streams in it; None takes all of them.
    """
    lines = TraceFile(path, episode)
    return Trace(lines, lines.about)


@contextlib.contextmanager
def writing(path: str | os.PathLike, about: dict[str, Any] | None = None) -> Iterator[TraceWriter]:
    """A `TraceWriter` whose file appears when all is written, or not at all."""
    with replacing(path) as temporary, TraceWriter(temporary, about) as writer:
        yield writer


def save(
    lines: Iterable[Line], path: str | os.PathLike, about: dict[str, Any] | None = None
) -> int:
    """Writes lines to a file, whole or not at all, and counts them.

    Args:
        lines: a `Trace`, or steps and questions in order.
        path: the file; `read` reads it.
        about: further facts; default those of a `Trace`.
    """
    count, known = 0, lines.about if isinstance(lines, Trace) else {}
    with writing(path, {**known, **(about or {})}) as writer:
        for count, line in enumerate(lines, 1):  # noqa: B007 (counted)
            writer.write(line)
    return count
