"""Small tables for people: the same rows as text, as Markdown and as HTML for a notebook.

>>> print(Table(("id", "entry"), [(3, "Mary left."), (14, "a|b")]))
id  entry
 3  Mary left.
14  a|b
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Table:
    """Rows under a header; a notebook shows it as HTML.

    Attributes:
        header: the names of the columns.
        rows: as many cells each; numbers are right-aligned, None is left blank.
        caption: what the table is about, if needed.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[Any]] = field(default_factory=list)
    caption: str = ""

    def cells(self) -> list[list[str]]:
        """The rows as text."""
        return [[_told(value) for value in row] for row in self.rows]

    def __str__(self) -> str:
        lines = [list(self.header), *self.cells()]
        widths = [max(len(line[k]) for line in lines) for k in range(len(self.header))]
        right = self._numbers()
        told = [
            "  ".join(
                cell.rjust(width) if to_right else cell.ljust(width)
                for cell, width, to_right in zip(line, widths, right, strict=True)
            ).rstrip()
            for line in lines
        ]
        return "\n".join([self.caption, *told] if self.caption else told)

    def markdown(self) -> str:
        """As Markdown, which TensorBoard shows."""
        marks = ["---:" if to_right else "---" for to_right in self._numbers()]
        lines = [list(self.header), marks, *self.cells()]
        safe = [[cell.replace("|", "\\|") for cell in line] for line in lines]
        table = "\n".join("| " + " | ".join(line) + " |" for line in safe)
        return f"{self.caption}\n\n{table}" if self.caption else table

    def _numbers(self) -> list[bool]:
        """Which columns hold numbers."""
        columns = zip(*self.rows, strict=True) if self.rows else [()] * len(self.header)
        return [
            bool(column) and all(isinstance(value, int | float | None) for value in column)
            for column in columns
        ]

    def _repr_html_(self) -> str:
        right = ["right" if one else "left" for one in self._numbers()]

        def line(cells: Sequence[str], tag: str) -> str:
            pairs = zip(cells, right, strict=True)
            inner = (
                f'<{tag} style="text-align:{side}">{html.escape(c)}</{tag}>' for c, side in pairs
            )
            return f"<tr>{''.join(inner)}</tr>"

        body = "".join(line(cells, "td") for cells in self.cells())
        caption = f"<caption>{html.escape(self.caption)}</caption>" if self.caption else ""
        head = f"<thead>{line(self.header, 'th')}</thead>"
        return f"<table>{caption}{head}<tbody>{body}</tbody></table>"


def _told(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.2f}"
    return str(value)


def in_words(entry: Any, longest: int = 60) -> str:
    """An entry of a memory in words: its text, or as many of its numbers as fit.

    Args:
        entry: a string, a number or array, or a dict, list or tuple of such.
        longest: characters.

    Example:

    >>> in_words({"text": b"Mary left.", "tokens": [3, 1]}), in_words([0.5, 1.0])
    ('Mary left.', '0.5, 1')
    """
    if isinstance(entry, dict):
        entry = entry.get("text", entry)
    if isinstance(entry, dict):
        return _cut("; ".join(f"{k} {in_words(v, longest)}" for k, v in entry.items()), longest)
    entry = entry.numpy() if hasattr(entry, "numpy") else entry
    entry = entry.tolist() if hasattr(entry, "tolist") else entry
    if isinstance(entry, bytes):
        entry = entry.decode(errors="replace")
    if isinstance(entry, str):
        return _cut(entry, longest)
    if isinstance(entry, list | tuple):
        return _cut(", ".join(in_words(one, longest) for one in entry[:longest]), longest)
    return f"{entry:.3g}" if isinstance(entry, float) else str(entry)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
