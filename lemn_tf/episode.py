"""Episode: a batch of streams with questions, as readers are trained and tested on."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict, cast

import tensorflow as tf

from lemn_tf.memory import EMPTY
from lemn_tf.retention.chance import salt_of, scramble
from lemn_tf.retention.decision import Decision

Nest = Any


class Episode(TypedDict):
    """A batch of B streams of up to T items, with Q questions each.

    Items, questions and answers may be whatever the reader understands: word ids, vectors, frames,
    or nests of such, with the leading dimensions given here.
    """

    items: Nest
    """`[B, T, ...]`, the stream; what comes after its `length` is padding."""
    length: tf.Tensor
    """`[B]` int32, the number of items."""
    questions: Nest
    """`[B, Q, ...]`."""
    ask_at: tf.Tensor
    """`[B, Q]` int32, how many items have been seen when each is asked; -1 for padding."""
    answers: Nest
    """`[B, Q, ...]`, what the reader should answer: see `Reader.loss`."""
    support: NotRequired[tf.Tensor]
    """`[B, Q, K]` int32, the items that a question needs, -1 for padding: for evaluation and the
    clairvoyant bound, never for training."""
    decisions: NotRequired[Decision]
    """Of `[B, T, ...]`: what was evicted, if something else has read the streams already, such as
    a driver of TF-Agents; the model then learns from that instead of acting itself."""


def random_past(
    episode: Episode, share: tuple[float, float], seed: tf.Tensor, window: int | None = None
) -> tf.Tensor:
    """For each question a random part of the items before it: ids `[B, Q, T]`, -1 = left out."""
    ask_at = episode["ask_at"]
    batch, steps = tf.nest.flatten(episode["items"])[0].shape[:2]
    questions = ask_at.shape[1]
    which = tf.reshape(tf.range(batch * questions), [batch, questions])
    draw = scramble(tf.range(steps + 1), which, salt_of(seed + tf.constant([0, 1 << 20])))
    keep = draw[..., :-1] < share[0] + (share[1] - share[0]) * draw[..., -1:]
    ids = tf.range(steps)
    keep &= ids < ask_at[..., None]
    if window is not None:
        keep &= ids >= ask_at[..., None] - window
    return tf.cast(tf.where(keep, ids, EMPTY), tf.int64)


def by_question(episode: Episode) -> Episode:
    """Every question as a stream of its own, known from the beginning: B * Q rows with one each.

    Each item brings the question that will be asked, `asked`, for policies that are
    `question_aware`. Items must be dicts.

    Args:
        episode: items, questions and answers `[B, T, ...]` and `[B, Q, ...]`.
    """
    if not isinstance(episode["items"], dict):
        raise TypeError(f"expected items that are a dict, got {type(episode['items']).__name__}")
    batch, questions = (tf.shape(episode["ask_at"])[k] for k in range(2))
    steps = tf.shape(tf.nest.flatten(episode["items"])[0])[1]

    def alone(leaf):
        return tf.reshape(leaf, tf.concat([[batch * questions, 1], tf.shape(leaf)[2:]], axis=0))

    def along(leaf):
        return tf.repeat(alone(leaf), steps, axis=1)

    def each(leaf):
        return tf.repeat(leaf, questions, axis=0)

    given: dict[str, Any] = {**episode}
    items = tf.nest.map_structure(each, given["items"])
    items["asked"] = tf.nest.map_structure(along, episode["questions"])
    known = ("questions", "ask_at", "answers", "support")
    rows = {name: given[name] for name in known if given.get(name) is not None}
    made = {name: tf.nest.map_structure(alone, rows[name]) for name in rows}
    return cast(Episode, {"items": items, "length": each(given["length"]), **made})
