"""Was what a question needed still in memory? Pure functions over what a rollout recorded.

B streams, T items, Q questions, K supporting items of a question (padding -1 everywhere). The
supports are labels: they are for evaluation and for the clairvoyant bound, never for training.
"""

from __future__ import annotations

import tensorflow as tf

from lemn_tf.memory import EMPTY


def needed_at(support: tf.Tensor, ask_at: tf.Tensor, steps: int) -> tf.Tensor:
    """For each item, the clocks at which a question will need it: what `oracle` looks at.

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
    support, ask_at = _checked(support, ask_at)
    items = tf.range(steps, dtype=support.dtype)[:, None, None]  # [T, 1, 1]
    needs = tf.reduce_any(support[:, None] == items, axis=-1)  # [B, T, Q]
    return tf.cast(tf.where(needs, ask_at[:, None], -1), tf.float32)


def kept_at(ids: tf.Tensor, slot: tf.Tensor, ask_at: tf.Tensor) -> tf.Tensor:
    """What was in memory at each question.

    Args:
        ids: `[B, T, N + 1]`, the candidates at each step (`Decision.ids`).
        slot: `[B, T]`, the candidate that left (`Decision.slot`).
        ask_at: `[B, Q]`, how many items were seen when each question was asked.

    Returns:
        `[B, Q, N]` ids, -1 for unused slots and for questions that are padding.

    Example:

    >>> ids = tf.constant([[[-1, -1, 0], [-1, 0, 1], [0, 1, 2]]])
    >>> kept_at(ids, tf.constant([[0, 0, 1]]), tf.constant([[2, 3]])).numpy().tolist()
    [[[0, 1], [0, 2]]]
    """
    ids, slot, ask_at = (tf.convert_to_tensor(x) for x in (ids, slot, ask_at))
    if ids.shape.rank != 3 or slot.shape.rank != 2 or ask_at.shape.rank != 2:
        raise ValueError(
            "expected ids [B, T, N + 1], slot [B, T] and ask_at [B, Q]; "
            f"got {ids.shape}, {slot.shape} and {ask_at.shape}"
        )
    places = tf.range(tf.shape(ids)[-1] - 1, dtype=slot.dtype)
    after = tf.where(places >= slot[..., None], ids[..., 1:], ids[..., :-1])  # [B, T, N]
    kept = tf.gather(after, tf.maximum(ask_at - 1, 0), batch_dims=1)
    return tf.where((ask_at > 0)[..., None], kept, tf.constant(EMPTY, ids.dtype))


def supported(kept: tf.Tensor, support: tf.Tensor) -> tf.Tensor:
    """`[B, Q]` bool: whether all that a question needed was in memory when it was asked.

    Args:
        kept: `[B, Q, N]`, as `kept_at` returns it.
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


def _checked(support, ask_at) -> tuple[tf.Tensor, tf.Tensor]:
    support, ask_at = tf.convert_to_tensor(support), tf.convert_to_tensor(ask_at)
    if support.shape.rank != 3 or not support.shape[:2].is_compatible_with(ask_at.shape):
        raise ValueError(
            f"expected support [B, Q, K] and ask_at [B, Q]; got {support.shape} and {ask_at.shape}"
        )
    return support, ask_at
