"""Training a reader of documents: on memories that hold the answer, drawn at random.

What a policy would keep does not matter yet. Each question is read from N slots of its document,
one of them with a right answer; the others are drawn evenly, or, for hard memories, from those that
share words with the question. The questions of a document share a pool of slots, so that every
batch has the same shape, however long its documents are, and is compiled once.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from lemn_tf.learning.memories import arranged
from lemn_tf.readers.base import take_items
from lemn_tf.readers.spans import SpanReader
from lemn_tf.readers.wordviews import overlap

Batch = dict[str, Any]
POOL = 24
"""Slots of a document from which the memories of its questions are drawn."""
SLOTS = 6
"""Slots of a memory to learn from: fewer than are read from later, for more updates in the time."""
HARD = 0.6
"""Share of hard memories, once they come."""
SHARPNESS = 6.0
"""How strongly hard memories go by the words that a slot shares with the question."""


def memories(batch: Batch, slots: int, hard: float, seed: tf.Tensor) -> Batch:
    """The batch with a pool of slots instead of each document, and a memory for each question.

    Args:
        batch: see `lemn_tf.pipelines.spans`.
        slots: N, at most `POOL`.
        hard: the share of memories whose other slots share words with the question.
        seed: `[2]`.

    Returns:
        The items, questions and answers of documents of `POOL` slots, and `kept`: `[B, Q, N]` int64
        ids in order, one of them with a right answer, -1 where a document has fewer slots.
    """
    steps = tf.shape(batch["items"]["words"])[1]
    shape = tf.concat([tf.shape(batch["answers"])[:2], [steps]], axis=0)
    draw = tf.random.stateless_uniform(shape, seed, 1e-6, 1.0)
    score = -tf.math.log(-tf.math.log(draw))
    held = {"stem": batch["items"]["stem"][:, None]}
    asked = {name: leaf[:, :, None] for name, leaf in batch["questions"].items()}
    share = overlap(held, asked)  # [B, Q, T]
    others = [seed + tf.constant([0, k], seed.dtype) for k in (1, 2)]
    chosen = tf.random.stateless_uniform(shape[:2], others[0]) < hard
    score += tf.where(chosen[..., None], SHARPNESS * share, 0.0)
    score = _holding(batch, score, others[1])
    pool = _best(tf.reduce_max(score, axis=1), POOL)  # [B, POOL]
    score = tf.gather(score, tf.maximum(tf.tile(pool[:, None], [1, shape[1], 1]), 0), batch_dims=2)
    score = tf.where(pool[:, None] >= 0, score, -1e6)
    return {**_pooled(batch, pool), "kept": _best(score, slots)}


def holding(batch: Batch, slots: int, seed: tf.Tensor) -> tf.Tensor:
    """Ids `[B, Q, N]` of slots drawn evenly for each question, one with an answer if any has one.

    Args:
        batch: see `lemn_tf.pipelines.spans`.
        slots: N.
        seed: `[2]`.
    """
    steps = tf.shape(batch["items"]["words"])[1:2]
    shape = tf.concat([tf.shape(batch["answers"])[:2], steps], axis=0)
    score = tf.random.stateless_uniform(shape, seed)
    ids = tf.range(steps[0])
    answered = tf.reduce_any(ids == batch["answers"][..., :1], axis=-2)  # [B, Q, T]
    draw = tf.random.stateless_uniform(shape, seed + tf.constant([0, 1], seed.dtype))
    draw = tf.where(answered, draw, -1.0)
    right = tf.where(tf.reduce_any(answered, axis=-1), tf.argmax(draw, -1, tf.int32), -1)
    return _best(_with(batch, score, right), slots)


def _holding(batch: Batch, score: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    """The scores `[B, Q, T]` with the slot of one right span, drawn evenly, above all."""
    answers = batch["answers"][..., 0]  # [B, Q, K]
    which = tf.random.stateless_uniform(tf.shape(answers), seed)
    which = tf.argmax(tf.where(answers >= 0, which, -1.0), axis=-1)
    return _with(batch, score, tf.gather(answers, which, batch_dims=2))


def _with(batch: Batch, score: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    """The scores `[B, Q, T]` with the slot `right` `[B, Q]` above all, and none past the end."""
    ids = tf.range(tf.shape(score)[-1])
    score = tf.where(ids == right[..., None], 1e6, score)
    return tf.where(ids < batch["length"][:, None, None], score, -1e6)


def _best(score: tf.Tensor, count: int) -> tf.Tensor:
    """The places of the highest scores above -1e5, in order; -1 where there are fewer."""
    lead = [[0, 0]] * (score.shape.rank - 1)
    best, places = tf.math.top_k(tf.pad(score, [*lead, [0, count]], constant_values=-1e6), count)
    kept = arranged(tf.where(best > -1e5, tf.cast(places, tf.int64), -1))
    return tf.ensure_shape(kept, [*score.shape[:-1], count])


def _pooled(batch: Batch, pool: tf.Tensor) -> Batch:
    """What a batch says about the slots in `pool` `[B, POOL]`, which become slots 0, 1, ..."""

    def take(leaf):
        there = tf.reshape(pool >= 0, [-1, POOL, *[1] * (leaf.shape.rank - 2)])
        taken = tf.gather(leaf, tf.maximum(pool, 0), batch_dims=1)
        return tf.where(there, taken, tf.zeros([], leaf.dtype))

    spans = batch["answers"]
    here = tf.cast(pool, tf.int32)[:, None, None] == spans[..., :1]  # [B, Q, K, POOL]
    inside = tf.reduce_any(here, axis=-1, keepdims=True) & (spans[..., :1] >= 0)
    place = tf.argmax(tf.cast(here, tf.int32), axis=-1, output_type=tf.int32)[..., None]
    return {
        "items": tf.nest.map_structure(take, batch["items"]),
        "questions": batch["questions"],
        "ask_at": batch["ask_at"],
        "answers": tf.where(inside, tf.concat([place, spans[..., 1:]], axis=-1), -1),
    }


def with_memories(
    data: tf.data.Dataset, slots: int, hard: float, seed: int, start: int = 0
) -> tf.data.Dataset:
    """The batches of `pipelines.spans.dataset` as `memories` gives them."""
    if slots > POOL:
        raise ValueError(f"expected memories of at most {POOL} slots to train with, got {slots}")

    def add(number, batch):
        return memories(batch, slots, hard, tf.stack([tf.constant(seed, tf.int64), number]))

    return data.enumerate(start).map(add, num_parallel_calls=1, deterministic=True).prefetch(2)


class SpanTrainer(keras.Model):
    """Trains a reader by `fit` on batches with memories; see `with_memories`.

    Args:
        reader: trained in place.
    """

    def __init__(self, reader: SpanReader, **kwargs):
        super().__init__(**kwargs)
        self.reader: Any = reader
        self.loss_of = keras.metrics.Mean(name="loss")
        self.right = keras.metrics.Mean(name="right")
        self.built = True

    def _read(self, batch: Batch, training: bool):
        codes = self.reader.packed(batch["items"], training=training)
        query = self.reader.ask(batch["questions"], training=training)
        kept = batch["kept"]
        answer = self.reader.read(query, take_items(codes, kept), kept, training=training)
        weight = tf.cast(batch["ask_at"] >= 0, tf.float32)
        losses = self.reader.loss(answer, batch["answers"])
        loss = tf.math.divide_no_nan(tf.reduce_sum(losses * weight), tf.reduce_sum(weight))
        self.loss_of.update_state(losses, weight)
        right = self.reader.right(answer, batch["answers"])
        self.right.update_state(tf.cast(right, tf.float32), weight)
        return loss

    def train_step(self, batch):
        with tf.GradientTape() as tape:
            loss = self._read(batch, training=True)
        variables = self.reader.trainable_variables
        gradients = tape.gradient(loss, [variable.value for variable in variables])
        self.optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return {"loss": self.loss_of.result(), "right": self.right.result()}

    def test_step(self, batch):
        self._read(batch, training=False)
        return {"loss": self.loss_of.result(), "right": self.right.result()}

    @property
    def metrics(self):
        return [self.loss_of, self.right]


def optimizer(rate: float, updates: int, final: float = 0.03) -> keras.optimizers.Optimizer:
    """Adam with a falling rate, clipped, whose averaged weights are the ones to test with.

    The average reaches back 1,000 updates, or a twentieth of a shorter training.
    """
    schedule = keras.optimizers.schedules.CosineDecay(rate, updates, final)
    momentum = min(0.999, 1.0 - 20.0 / max(updates, 40))
    return keras.optimizers.Adam(schedule, global_clipnorm=5.0, use_ema=True, ema_momentum=momentum)
