"""What every reader shares: it answers a question from the slots of a memory, and never writes.

A reader encodes each entry once, on its own (`encode`), and each question once (`ask`); `read`
joins the two, and `loss`, `right` and `probability` judge the answer. So items are encoded once
however often they are read, and to ask a reader "what if this entry were not in memory?" one
leaves it out of `codes`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import keras
import tensorflow as tf

from lemn_tf import memory


class Answer(NamedTuple):
    """What a reader answers.

    Attributes:
        logits: `[..., A]` over the possible answers.
        attention: `[..., M]`, the weight of each slot in the answer, averaged over hops; sums to 1.
    """

    logits: tf.Tensor
    attention: tf.Tensor


class Reader(keras.layers.Layer):
    """Answers questions from memory. Subclasses override `encode`, `ask` and `read`.

    Those whose answers are not one of A labels also override `loss`, `right` and `probability`.
    """

    def encode(self, entries: Any) -> tf.Tensor:
        """Entries with any leading dimensions -> codes `[..., C]`."""
        raise NotImplementedError(f"{type(self).__name__} does not override encode()")

    def ask(self, question: Any) -> tf.Tensor:
        """Questions with any leading dimensions -> queries `[..., d]`."""
        raise NotImplementedError(f"{type(self).__name__} does not override ask()")

    def read(self, query: tf.Tensor, codes: tf.Tensor, ids: tf.Tensor) -> Any:
        """Answers each query from its own slots. A reader may add options of its own.

        Args:
            query: `[..., d]`.
            codes: `[..., M, C]`, the encoded slots, in any order.
            ids: `[..., M]`, their positions in the stream; -1 marks an unused slot.
        """
        raise NotImplementedError(f"{type(self).__name__} does not override read()")

    def flipped(
        self, query: tf.Tensor, codes: tf.Tensor, kept: tf.Tensor, targets: Any
    ) -> tf.Tensor:
        """The probability of the right answer if one item at a time were left out, or put back.

        Args:
            query: `[B, Q, d]`.
            codes: `[B, T, C]`, every item of the stream.
            kept: `[B, Q, N]`, ids in memory at each question, -1 = unused.
            targets: nest of `[B, Q, ...]`, the right answers.

        Returns:
            `[B, Q, T]`: item j left out if it is in memory, put back if it is not.
        """
        ids = flipped(kept, codes.shape[1])
        rows = tf.broadcast_to(query[:, :, None], [*ids.shape[:3], query.shape[-1]])
        answer = self.read(rows, take_items(codes, ids), ids)
        return self.probability(answer, tf.nest.map_structure(lambda x: x[:, :, None], targets))

    # A reader decides what an answer is; by default it is one of A labels.

    def loss(self, answer: Answer, targets: Any) -> tf.Tensor:
        """The loss of each answer, `[...]`; here the cross-entropy of the labels.

        Args:
            answer: what `read` returned, with any leading dimensions.
            targets: the right answers; here labels `[...]`, negative where there is none.
        """
        logits = tf.cast(answer.logits, tf.float32)
        return tf.nn.sparse_softmax_cross_entropy_with_logits(tf.maximum(targets, 0), logits)

    def right(self, answer: Answer, targets: Any) -> tf.Tensor:
        """Whether each answer is right, `[...]` bool; see `loss` for the arguments."""
        return tf.argmax(answer.logits, axis=-1, output_type=targets.dtype) == targets

    def probability(self, answer: Answer, targets: Any) -> tf.Tensor:
        """The probability it gives to the right answer, `[...]`; see `loss` for the arguments."""
        chosen = tf.one_hot(tf.maximum(targets, 0), answer.logits.shape[-1])
        return tf.reduce_sum(tf.nn.softmax(tf.cast(answer.logits, tf.float32)) * chosen, axis=-1)

    def entry_spec(self) -> Any:
        """Nest of `tf.TensorSpec`: the smallest possible entry; None if any kind works."""
        return None

    def vectors(self, codes: tf.Tensor) -> tf.Tensor:
        """The part of the codes that a retention policy sees, e_{t,i} of the paper: `[..., D]`."""
        return codes

    def call(self, question: Any, state: memory.MemoryState) -> Answer:
        """Answers one question for each row, `[B, ...]`, from the memory `state`."""
        return self.read(self.ask(question), self.encode(state.entries), state.ids)


class WithReader(keras.layers.Layer):
    """A layer that holds a reader and is saved with it."""

    def __init__(self, reader: Reader, **kwargs):
        super().__init__(**kwargs)
        self.reader: Any = reader

    def get_config(self):
        return {**super().get_config(), "reader": keras.saving.serialize_keras_object(self.reader)}

    @classmethod
    def from_config(cls, config):
        return cls(**{**config, "reader": keras.saving.deserialize_keras_object(config["reader"])})


def take_items(codes: tf.Tensor, ids: tf.Tensor) -> tf.Tensor:
    """Codes `[B, T, C]` of the items with the given ids `[B, ...]` -> `[B, ..., C]`; unused = 0."""
    taken = tf.gather(codes, tf.maximum(ids, 0), batch_dims=1)
    return tf.where((ids != memory.EMPTY)[..., None], taken, tf.zeros([], taken.dtype))


def flipped(kept: tf.Tensor, steps: int) -> tf.Tensor:
    """Memories `[..., N]` with one item at a time left out or put back: `[..., T, N + 1]` ids.

    Example:

    >>> flipped(tf.constant([0, 2], tf.int64), 3).numpy().tolist()
    [[-1, 2, -1], [0, 2, 1], [0, -1, -1]]
    """
    items = tf.range(tf.cast(steps, kept.dtype))  # j
    here = kept[..., None, :] == items[:, None]  # [..., T, N]
    left = tf.where(here, tf.constant(memory.EMPTY, kept.dtype), kept[..., None, :])
    back = tf.where(tf.reduce_any(here, -1), tf.constant(memory.EMPTY, kept.dtype), items)
    return tf.concat([left, back[..., None]], axis=-1)


def rank(ids: tf.Tensor) -> tf.Tensor:
    """`[..., M]` int32: how many used slots are newer than each; the newest has rank 0.

    Example:

    >>> rank(tf.constant([[7, -1, 9, 2]], tf.int64)).numpy().tolist()
    [[1, 3, 0, 2]]
    """
    newer = ids[..., None, :] > ids[..., :, None]
    return tf.reduce_sum(tf.cast(newer, tf.int32), axis=-1)
