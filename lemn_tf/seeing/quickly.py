"""Lines of a trace straight from arrays: what `files.to_json` writes, for a whole batch at once.

A trace of an evaluation has tens of thousands of lines. Here each is put together from strings that
are looked up, not formatted: numbers of four digits and small whole numbers are few.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence

import numpy as np

from lemn_tf.seeing.files import DIGITS, to_json
from lemn_tf.seeing.recording import Seen, Words, questions_of


@functools.cache
def _shares() -> np.ndarray:
    """0 to 1 with four digits, as JSON writes them."""
    scale = 10**DIGITS
    return np.array([str(round(n / scale, DIGITS)) for n in range(scale + 1)], object)


@functools.cache
def _whole(count: int) -> np.ndarray:
    """Whole numbers up to `count`, and -1 as the last."""
    return np.array([*map(str, range(count + 1)), "-1"], object)


@functools.lru_cache(65536)
def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def json_lines(seen: Seen, words: Words, episodes: Sequence[int]) -> str:
    """The lines of every stream of a batch, decisions and questions in order.

    Args:
        seen: the batch.
        words: the same in words.
        episodes: the number of each of its streams.
    """
    cells = _cells(seen)
    attention = seen.next_attention()
    weights = None if attention is None else _listed(_share(attention[0]))
    made = []
    for row, length in enumerate(seen.length.tolist()):
        episode = episodes[row]
        ending = f', "episode": {episode}}}\n' if episode else "}\n"
        asked = list(questions_of(seen, words, row, episode))
        columns = [cells[row, :length]]
        for name, key in (("items", "text"), ("pictures", "picture"), ("kinds", "kind")):
            told = [words.get(name, row, t) for t in range(length)]
            if any(told):
                named = [f', "{key}": {_quoted(text)}' if text else "" for text in told]
                columns.append(np.array(named, object)[:, None])
        if weights is not None and attention is not None:
            shown = np.where(attention[1][row, :length, None], weights[row, :length], "")
            shown[:, 0] = np.where(attention[1][row, :length], ', "attention": [', "")
            columns.append(shown)
        columns.append(np.full([length, 1], ending, object))
        table = np.concatenate(columns, axis=1)
        begin = 0
        for question in asked:
            made += table[begin : question.at].ravel().tolist()
            made.append(to_json(question) + "\n")
            begin = question.at
        made += table[begin:].ravel().tolist()
    return "".join(made)


def _share(values: np.ndarray) -> np.ndarray:
    scale = 10**DIGITS
    return _shares()[np.clip(np.rint(values * scale), 0, scale).astype(np.int64)]


def _listed(strings: np.ndarray) -> np.ndarray:
    """`[..., M]` -> `[..., 2 M + 1]`: the inside of a list, with room for what stands before it."""
    out = np.full([*strings.shape[:-1], 2 * strings.shape[-1] + 1], ", ", object)
    out[..., 1::2] = strings
    out[..., -1] = "]"
    return out


def _cells(seen: Seen) -> np.ndarray:
    """`[B, T, columns]` strings: what every line says."""
    d = seen.decisions
    steps = d.ids.shape[1]
    whole = _whole(1 << (steps + d.ids.shape[-1]).bit_length())
    times = np.broadcast_to(whole[np.arange(steps)], d.slot.shape)
    ids, keep = _listed(whole[d.ids]), _listed(_share(d.keep))
    ids[..., 0], keep[..., 0] = ', "ids": [', ', "keep": ['
    free = np.where(d.free, "true", "false").astype(object)
    evicted = np.take_along_axis(d.ids, d.slot[..., None].astype(np.int64), -1)[..., 0]
    parts = []
    for name, column in (
        ("slot", whole[d.slot]),
        ("evicted", whole[evicted]),
        ("margin", _share(d.margin)),
        ("runner_up", whole[seen.runner_up()]),
        ("free", free),
    ):
        parts += [np.full_like(column, f', "{name}": '), column]
    head = np.stack([np.full_like(times, '{"t": '), times], axis=-1)
    return np.concatenate([head, ids, keep, np.stack(parts, axis=-1)], axis=-1)
