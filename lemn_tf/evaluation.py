"""How well models answer, and whether what a question needed was still in memory.

B streams, T items, Q questions, K supporting items of a question (padding -1 everywhere). The
supports are labels: they are for evaluation and for the clairvoyant bound, never for training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from lemn_tf import retention

if TYPE_CHECKING:
    from lemn_tf.model import StreamReader

ORACLE = "oracle"
"""The policy that is the bound in a comparison."""


def needed_at(support: tf.Tensor, ask_at: tf.Tensor, steps: int) -> tf.Tensor:
    """For each item, the clocks at which a question will need it; `oracle` decides by them.

    Args:
        support: `[B, Q, K]` int, the items that answer each question.
        ask_at: `[B, Q]` int, how many items were seen when it was asked.
        steps: T, the length of the streams.

    Returns:
        `[B, T, Q]` float32: the clock of each question that needs the item, -1 for the others.

    Example:

    >>> needed_at([[[0, 1], [0, -1]]], [[2, 4]], steps=3).numpy().tolist()
    [[[2.0, 4.0], [2.0, -1.0], [-1.0, -1.0]]]
    """
    support, ask_at = tf.convert_to_tensor(support), tf.convert_to_tensor(ask_at)
    if support.shape.rank != 3 or not support.shape[:2].is_compatible_with(ask_at.shape):
        raise ValueError(
            f"expected support [B, Q, K] and ask_at [B, Q]; got {support.shape} and {ask_at.shape}"
        )
    items = tf.range(steps, dtype=support.dtype)[:, None, None]  # [T, 1, 1]
    needs = tf.reduce_any(support[:, None] == items, axis=-1)  # [B, T, Q]
    return tf.cast(tf.where(needs, ask_at[:, None], -1), tf.float32)


def supported(kept: tf.Tensor, support: tf.Tensor) -> tf.Tensor:
    """`[B, Q]` bool: whether everything a question needed was in memory when it was asked.

    Args:
        kept: `[B, Q, N]`, what was in memory at each question (`learning.rollout.kept_at`).
        support: `[B, Q, K]`; a question that needs nothing is supported.

    Example:

    >>> supported(tf.constant([[[0, 1], [1, 2]]]), tf.constant([[[0, 1], [0, 2]]])).numpy().tolist()
    [[True, False]]
    """
    kept = tf.convert_to_tensor(kept)
    support = tf.cast(support, kept.dtype)
    if kept.shape.rank != 3 or support.shape.rank != 3:
        raise ValueError(
            f"expected kept [B, Q, N] and support [B, Q, K]; got {kept.shape} and {support.shape}"
        )
    found = tf.reduce_any(support[..., None] == kept[:, :, None, :], axis=-1)
    return tf.reduce_all(found | (support < 0), axis=-1)


def labelled(support: tf.Tensor) -> tf.Tensor:
    """`[B, Q]` bool: whether the data says what a question needs, from support `[B, Q, K]`.

    Example:

    >>> labelled([[[3, -1], [-1, -1]]]).numpy().tolist()
    [[True, False]]
    """
    return tf.reduce_any(tf.convert_to_tensor(support) >= 0, axis=-1)


def rates(
    model: StreamReader,
    episodes: tf.data.Dataset,
    slots: int | None = None,
    jit_compile: bool = False,
) -> dict[str, Any]:
    """Scores a model on every question of some episodes.

    Args:
        model: acts greedily.
        episodes: batches of them; see `lemn_tf.Episode`.
        slots: another size of the memory than the model's own.
        jit_compile: compile with XLA.

    Returns:
        A dict: `error_rate` in percent, the number of `questions`, how many are `labelled` with
        what they need, the percentage of these that found all of it in memory (`support_recall`),
        the percentage of those that were answered right (`right_if_supported`), and the model's
        `policy` and `slots`. A rate over no questions is None.
    """
    outcome = tf.function(model.outcome, autograph=False, jit_compile=jit_compile)
    totals = dict.fromkeys(("questions", "right", "labelled", "supported", "both"), 0)
    for batch in episodes:
        for name, count in outcome(batch, slots=slots, seed=tf.constant([0, 0])).items():
            totals[name] += int(count)

    def percent(part: int, whole: int) -> float | None:
        return round(100 * part / whole, 3) if whole else None

    return {
        "error_rate": percent(totals["questions"] - totals["right"], totals["questions"]),
        "questions": totals["questions"],
        "labelled": totals["labelled"],
        "support_recall": percent(totals["supported"], totals["labelled"]),
        "right_if_supported": percent(totals["both"], totals["supported"]),
        "policy": model.memory.policy.name,
        "slots": slots or model.memory.slots,
    }


def compare(
    models: Mapping[str, StreamReader], score: Callable[[StreamReader], dict[str, Any]]
) -> list[dict[str, Any]]:
    """Scores models side by side, with the oracle over the first one's reader as the bound.

    The oracle needs labels: unless every question has them there is no oracle and no regret.

    Args:
        models: by name.
        score: from a model to its score, such as `lambda model: rates(model, episodes)`.

    Returns:
        For each model, and last for the oracle, a dict: its `name`, its score, and its `regret`,
        the error above the oracle's in percent or None.
    """
    rows = [{"name": name, **score(model)} for name, model in models.items()]
    if rows[0]["labelled"] == rows[0]["questions"]:
        oracle = next(iter(models.values())).with_policy(ORACLE)
        rows.append({"name": ORACLE, **score(oracle)})
    return with_regret(rows)


def with_regret(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Adds each row's `regret`, which is None unless the last row is the oracle's."""
    bound = rows[-1]["error_rate"] if rows[-1]["name"] == ORACLE else None
    for row in rows:
        row["regret"] = None if bound is None else round(row["error_rate"] - bound, 3)
    return rows


def with_rule(model: StreamReader, policy: str) -> StreamReader:
    """The model's reader over a memory with a rule, or the model itself if it has that policy.

    Args:
        model: a trained one.
        policy: the name of a policy that needs no training.
    """
    trained = model.memory.policy.name
    retention.check_rule(policy, trained)
    return model if policy == trained else model.with_policy(policy)
