"""Was what a question needed still in memory? Pure functions over what a rollout recorded.

S streams, T items, Q questions, K supporting items of a question (padding -1 everywhere). The
supports are labels: they are for evaluation and for the clairvoyant bound, never for training.
"""

from __future__ import annotations

import numpy as np


def needed_at(support: np.ndarray, ask_at: np.ndarray, steps: int) -> np.ndarray:
    """For each item, every clock at which a question will need it: what `oracle` looks at.

    Args:
        support: `[S, Q, K]` int, the items that answer each question.
        ask_at: `[S, Q]` int, how many items were seen when it was asked.
        steps: T, the length of the streams.

    Returns:
        `[S, T, R]` float32 clocks, padded with -1; R is the most that any item is needed, at
        least 1.

    Example:

    >>> needed_at(np.array([[[0, 1], [0, -1]]]), np.array([[2, 4]]), steps=3).tolist()
    [[[2.0, 4.0], [2.0, -1.0], [-1.0, -1.0]]]
    """
    support, ask_at = _checked(support, ask_at)
    if support.size and support.max() >= steps:
        raise ValueError(f"support must be items below steps={steps}; got {support.max()}")
    clocks: dict[tuple[int, int], set[int]] = {}
    for s, q, k in np.argwhere((support >= 0) & (ask_at >= 0)[..., None]):
        clocks.setdefault((s, support[s, q, k]), set()).add(int(ask_at[s, q]))
    most = max(map(len, clocks.values()), default=1)
    needed = np.full((len(support), steps, most), -1, np.float32)
    for (s, t), when in clocks.items():
        needed[s, t, : len(when)] = sorted(when)
    return needed


def kept_at(ids: np.ndarray, slot: np.ndarray, ask_at: np.ndarray) -> np.ndarray:
    """What was in memory at each question.

    Args:
        ids: `[S, T, N + 1]`, the candidates at each step (`Decision.ids`).
        slot: `[S, T]`, the candidate that left (`Decision.slot`).
        ask_at: `[S, Q]`, how many items were seen when each question was asked.

    Returns:
        `[S, Q, N]` ids, -1 for unused slots and for questions that are padding.

    Example:

    >>> ids = np.array([[[-1, -1, 0], [-1, 0, 1], [0, 1, 2]]])
    >>> kept_at(ids, np.array([[0, 0, 1]]), np.array([[2, 3]])).tolist()
    [[[0, 1], [0, 2]]]
    """
    ids, slot, ask_at = (np.asarray(x) for x in (ids, slot, ask_at))
    if ids.ndim != 3 or slot.shape != ids.shape[:2] or ask_at.shape[:1] != ids.shape[:1]:
        raise ValueError(
            "expected ids [S, T, N + 1], slot [S, T] and ask_at [S, Q]; "
            f"got {ids.shape}, {slot.shape} and {ask_at.shape}"
        )
    places = np.arange(ids.shape[2] - 1)
    after = np.where(places >= slot[..., None], ids[..., 1:], ids[..., :-1])
    before_any = np.full_like(after[:, :1], -1)
    after = np.concatenate([before_any, after], axis=1)  # indexed by the clock
    asked = np.take_along_axis(after, np.maximum(ask_at, 0)[..., None], axis=1)
    return np.where(ask_at[..., None] >= 0, asked, -1)


def support_recall(kept: np.ndarray, support: np.ndarray, ask_at: np.ndarray) -> dict[str, float]:
    """How often what a question needed was still there when it was asked.

    Args:
        kept: `[S, Q, N]`, as `kept_at` returns it.
        support: `[S, Q, K]`.
        ask_at: `[S, Q]`.

    Returns:
        `facts`, the share of needed items that were in memory; `questions`, the share of questions
        for which all of them were. Questions without supports do not count; NaN if none counts.

    Example:

    >>> kept = np.array([[[0, 1], [1, 2]]])
    >>> support_recall(kept, np.array([[[0, 1], [0, 2]]]), np.array([[2, 3]]))
    {'facts': 0.75, 'questions': 0.5}
    """
    support, ask_at = _checked(support, ask_at)
    kept = np.asarray(kept)
    if kept.ndim != 3 or kept.shape[:2] != ask_at.shape:
        raise ValueError(f"expected kept [S, Q, N] with [S, Q] = {ask_at.shape}; got {kept.shape}")
    needed = (support >= 0) & (ask_at >= 0)[..., None]
    there = (support[..., None] == kept[:, :, None, :]).any(-1) & needed
    counts = needed.any(-1)
    if not counts.any():
        return {"facts": float("nan"), "questions": float("nan")}
    complete = (there == needed).all(-1)
    return {
        "facts": float(there.sum() / needed.sum()),
        "questions": float(complete[counts].mean()),
    }


def _checked(support, ask_at) -> tuple[np.ndarray, np.ndarray]:
    support, ask_at = np.asarray(support), np.asarray(ask_at)
    if support.ndim != 3 or support.shape[:2] != ask_at.shape:
        raise ValueError(
            f"expected support [S, Q, K] and ask_at [S, Q]; got {support.shape} and {ask_at.shape}"
        )
    return support, ask_at
