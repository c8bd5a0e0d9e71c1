"""Lines of a trace straight from arrays: like `files.to_json`, for a whole batch at once.

A trace of an evaluation has tens of thousands of lines. Here all decisions of a batch are padded
with spaces, which JSON ignores, to one width, and so are all questions. So they are rows of byte
arrays, and numbers are looked up instead of formatted: there are few of four digits and few small
whole ones.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence

import numpy as np

from lemn_tf.seeing.files import DIGITS
from lemn_tf.seeing.recording import Seen, Words

SPACE = np.uint8(ord(" "))
Bytes = np.ndarray
"""`[R, W]` uint8: R pieces of text of the same width."""


def json_lines(seen: Seen, words: Words, episodes: Sequence[int]) -> bytes:
    """The lines of every stream in a batch, decisions and questions in order.

    Args:
        seen: the batch.
        words: the same in words.
        episodes: the number of each of its streams.
    """
    steps, asked = _steps(seen, words, episodes), _questions(seen, words, episodes)
    longest, count = seen.decisions.slot.shape[1], seen.ask_at.shape[1]
    decided, told = steps.ravel().data, asked.ravel().data
    wide, high = steps.shape[1], asked.shape[1]
    order = np.argsort(seen.ask_at, axis=1, kind="stable").tolist()
    pieces: list[memoryview] = []
    for row, (length, at) in enumerate(
        zip(seen.length.tolist(), seen.ask_at.tolist(), strict=True)
    ):
        first = done = row * longest * wide
        for place in order[row]:
            if at[place] >= 0:  # each question behind the decisions before it
                until, line = first + min(at[place], length) * wide, (row * count + place) * high
                pieces += (decided[done:until], told[line : line + high])
                done = until
        pieces.append(decided[done : first + length * wide])
    return b"".join(pieces)


def _steps(seen: Seen, words: Words, episodes: Sequence[int]) -> Bytes:
    """A line for each decision of the batch, padding included."""
    d = seen.decisions
    batch, longest = d.slot.shape
    rows = batch * longest
    evicted = np.take_along_axis(d.ids, d.slot[..., None].astype(np.int64), -1)
    times = np.broadcast_to(np.arange(longest), d.slot.shape)
    parts: list[str | Bytes] = [
        *('{"t": ', _whole(times.reshape(rows, 1))),
        *(', "ids": [', _whole(d.ids.reshape(rows, -1))),
        *('], "keep": [', _shares(d.keep.reshape(rows, -1))),
        *('], "slot": ', _whole(d.slot.reshape(rows, 1))),
        *(', "evicted": ', _whole(evicted.reshape(rows, 1))),
        *(', "margin": ', _shares(d.margin.reshape(rows, 1))),
        *(', "free": ', _either(d.free.ravel(), "true", "false")),
        *(', "runner_up": ', _whole(seen.runner_up().reshape(rows, 1))),
    ]
    for name, key in (("items", "text"), ("pictures", "picture"), ("kinds", "kind")):
        if getattr(words, name):
            parts.append(_texts(key, _laid_out(getattr(words, name), batch, longest)))
    attention = seen.next_attention()
    if attention is not None:
        weights = _shares(attention[0].reshape(rows, -1))
        told = _side_by_side([', "attention": [', weights, "]"])
        told[~attention[1].ravel()] = SPACE
        parts.append(told)
    return _side_by_side([*parts, *_ending(np.repeat(np.asarray(episodes), longest))])


def _questions(seen: Seen, words: Words, episodes: Sequence[int]) -> Bytes:
    """A line for each question of the batch, padding included."""
    batch, count = seen.ask_at.shape
    rows = batch * count
    never = np.where(seen.ask_at < 0, np.iinfo(np.int32).max, seen.ask_at)
    number = 1 + np.argsort(np.argsort(never, axis=1, kind="stable"), axis=1, kind="stable")
    parts: list[str | Bytes] = [
        *('{"question": ', _whole(number.reshape(rows, 1))),
        *(', "at": ', _whole(seen.ask_at.reshape(rows, 1))),
        *(', "ids": [', _whole(seen.kept.reshape(rows, -1)), "]"),
    ]
    if seen.attention is not None:
        parts += [', "attention": [', _shares(seen.attention.reshape(rows, -1)), "]"]
    names = (("questions", "text"), ("answers", "answer"), ("expected", "expected"))
    for name, key in names:
        if getattr(words, name):
            parts.append(_texts(key, _laid_out(getattr(words, name), batch, count)))
    if seen.right is not None:
        parts += [', "right": ', _either(seen.right.ravel(), "true", "false")]
    if seen.probability is not None:
        parts += [', "probability": ', _shares(seen.probability.reshape(rows, 1))]
    if seen.support is not None:
        parts += [', "support": [', _some(seen.support.reshape(rows, -1)), "]"]
    return _side_by_side([*parts, *_ending(np.repeat(np.asarray(episodes), count))])


# -- pieces ---------------------------------------------------------------------------------------


def _side_by_side(parts: Sequence[str | Bytes]) -> Bytes:
    """Pieces of every row, and between them words that are the same in all rows."""
    rows = next(len(part) for part in parts if not isinstance(part, str))
    width = [len(part) if isinstance(part, str) else part.shape[1] for part in parts]
    blank = "".join(
        part if isinstance(part, str) else " " * wide
        for part, wide in zip(parts, width, strict=True)
    )
    made = np.empty([rows, len(blank)], np.uint8)
    made[:] = np.frombuffer(blank.encode("ascii"), np.uint8)
    for part, wide, end in zip(parts, width, np.cumsum(width), strict=True):
        if not isinstance(part, str):
            made[:, end - wide : end] = part
    return made


def _bytes(strings: Sequence[bytes] | np.ndarray) -> Bytes:
    """Strings of equal width, padded with spaces."""
    array = np.asarray(strings, "S")
    rows = array.view(np.uint8).reshape(len(array), -1)
    return np.where(rows == 0, SPACE, rows)


def _either(which: np.ndarray, yes: str, no: str) -> Bytes:
    return _bytes([no.encode(), yes.encode()])[which.astype(np.int64)]


@functools.cache
def _known_shares() -> Bytes:
    """0 to 1 with four digits and a comma."""
    scale = 10**DIGITS
    return _bytes([f"{n / scale:.{DIGITS}f},".encode() for n in range(scale + 1)])


@functools.cache
def _known_numbers(count: int) -> Bytes:
    """Whole numbers below `count` with a comma, and -1 as the last."""
    return _bytes([*(f"{n},".encode() for n in range(count)), b"-1,"])


def _shares(values: np.ndarray) -> Bytes:
    """Probabilities `[R, M]` as the inside of a list."""
    scale = 10**DIGITS
    places = np.rint(values * scale).astype(np.intp)
    return _listed(_known_shares().take(places, axis=0, mode="clip"))


def _whole(values: np.ndarray) -> Bytes:
    """Whole numbers `[R, M]` of at least -1 as the inside of a list."""
    most = max(int(values.max(initial=0)) + 1, 1)
    return _listed(_known_numbers(1 << most.bit_length()).take(values, axis=0, mode="wrap"))


def _listed(cells: np.ndarray) -> Bytes:
    """`[R, M, W]` -> `[R, M W]`, without the comma behind the last."""
    last = cells[:, -1:]
    last[last == ord(",")] = SPACE
    return cells.reshape(len(cells), -1)


def _some(values: np.ndarray) -> Bytes:
    """Those of the numbers `[R, M]` that are not negative, as the inside of a list."""
    there = values >= 0
    known = _known_numbers(1 << (int(values.max(initial=0)) + 1).bit_length())
    cells = known[values]
    cells[~there] = SPACE
    behind: np.ndarray = np.flip(np.cumsum(np.flip(there, 1), axis=1), 1) - there  # how many follow
    more = np.greater(behind, 0)
    cells[(cells == ord(",")) & ~more[..., None]] = SPACE
    return cells.reshape(len(values), -1)


def _quoted(key: str, text: str) -> bytes:
    return f', "{key}": {json.dumps(text, ensure_ascii=False)}'.encode() if text else b""


def _texts(key: str, texts: Sequence[str]) -> Bytes:
    number = {text: n for n, text in enumerate(dict.fromkeys(texts))}
    known = _bytes([_quoted(key, text) for text in number])
    return known.take(np.fromiter(map(number.__getitem__, texts), np.intp, len(texts)), axis=0)


def _laid_out(rows: Sequence[Sequence[str]], batch: int, places: int) -> list[str]:
    """All texts in order, empty where a row has none."""
    out: list[str] = []
    for row in range(batch):
        told = list(rows[row][:places]) if row < len(rows) else []
        out += told + [""] * (places - len(told))
    return out


def _ending(episodes: np.ndarray) -> tuple[Bytes, str]:
    """The number of the stream, unless it is 0, and the end of the line."""
    distinct, which = np.unique(episodes, return_inverse=True)
    told = [(f', "episode": {n}' if n else "") + "}" for n in distinct.tolist()]
    return _bytes([text.encode() for text in told])[which], "\n"
