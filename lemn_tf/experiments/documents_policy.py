"""Policies over documents, trained and tested on what a reader said about every slot.

Nothing is read again here (see `documents_evidence`), so a policy trains in seconds. What it learns
from is hindsight credit: one blind rollout serves all questions of a document. The worth of a
memory to a question is the probability of the right answer, plus 1 if a right span is in it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from lemn_tf import retention
from lemn_tf.experiments.documents_evidence import Evidence, by_length, padded
from lemn_tf.layer import EpisodicMemory
from lemn_tf.learning import Hindsight
from lemn_tf.learning.rollout import Rollout
from lemn_tf.learning.training import RetentionTrainer
from lemn_tf.readers.spans import flipped
from lemn_tf.readers.standards import Standards
from lemn_tf.retention import RetentionPolicy

PER_QUESTION = ("right", "total", "best", "holds", "shared", "spans", "questions")
LEARNED_FROM = ("vectors", "right", "total", "holds")


class KeepingTrainer(RetentionTrainer):
    """Trains the policy of a memory on documents as `padded` gives them.

    Args:
        memory: a memory of vectors.
        dropout: share of a document's features that are hidden while it is learnt from.
    """

    def __init__(self, memory: EpisodicMemory, dropout: float = 0.2, **kwargs):
        super().__init__(**kwargs)
        self.memory, self.dropout = memory, dropout
        self.built = True

    def losses_of(self, data, seed, entropy, slots):
        """See `RetentionTrainer.losses_of`."""
        vectors, asked = data["vectors"], tf.cast(data["asked"], tf.float32)
        if self.dropout:
            shape = [tf.shape(vectors)[0], 1, vectors.shape[-1]]
            shown = tf.random.stateless_uniform(shape, seed) >= self.dropout
            vectors = tf.where(shown, vectors / (1.0 - self.dropout), 0.0)
        live = tf.sequence_mask(data["length"], vectors.shape[1])
        state, decisions = self.memory(vectors, mask=live, training=True, seed=seed, slots=slots)
        state, decisions = tf.nest.map_structure(tf.stop_gradient, (state, decisions))
        ids = tf.broadcast_to(
            state.ids[:, None], [asked.shape[0], asked.shape[1], state.ids.shape[1]]
        )
        probability, aim, credit = worth(data["right"], data["total"], data["holds"], ids)
        logits = self.memory.replay(vectors, decisions, seed).logits
        ask_at = tf.where(data["asked"], data["length"][:, None], -1)
        rollout = Rollout(
            decisions=decisions,
            valid=live,
            logits=tf.cast(logits, tf.float32),
            values=None,
            ask_at=ask_at,
            weight=asked / tf.maximum(tf.reduce_sum(asked, axis=1, keepdims=True), 1.0),
            kept=ids,
            right=None,
            probability=probability + aim,
            flipped=lambda: credit,
            entropy=0.0,
        )
        total, logs = self.retention_loss(rollout, entropy)
        count = tf.maximum(tf.reduce_sum(asked), 1.0)
        logs["answer_in_memory"] = tf.reduce_sum(aim * asked) / count
        logs["probability"] = tf.reduce_sum(probability * asked) / count
        return total, total, tf.zeros([]), logs

    def report(self, data, loss, answers, logs):
        return self.show({"loss": loss, **logs})


def worth(right: tf.Tensor, total: tf.Tensor, holds: tf.Tensor, kept: tf.Tensor):
    """What memories are worth to their questions, and with one slot left out or put back.

    Args:
        right, total: A and Z, `[B, Q, T]`.
        holds: `[B, Q, T]` bool.
        kept: `[B, Q, N]` ids, -1 = unused.

    Returns:
        p(y | M) and whether an answer is in memory, `[B, Q]`, and the sum of both for the memories
        that differ by a slot, `[B, Q, T]`.
    """
    items = tf.range(tf.shape(right)[-1], dtype=kept.dtype)
    here = tf.reduce_any(kept[..., None] == items, axis=-2)  # [B, Q, T]
    masked = [tf.where(here, x, -1e9) for x in (right, total)]
    sums = [tf.reduce_logsumexp(x, axis=-1) for x in masked]
    probability = tf.where(sums[0] > -1e8, tf.exp(tf.minimum(sums[0] - sums[1], 0.0)), 0.0)
    found = tf.reduce_sum(tf.cast(here & holds, tf.int32), axis=-1)
    change = tf.where(here, -1, 1) * tf.cast(holds, tf.int32)
    after = tf.cast(found[..., None] + change > 0, tf.float32)
    return probability, tf.cast(found > 0, tf.float32), flipped(right, [total], kept) + after


def windows(
    documents: Sequence[Evidence], steps: int, random: np.random.Generator
) -> Iterator[Evidence]:
    """Stretches of a limited number of slots, one of each document, with the questions on them."""
    for document in documents:
        start = int(random.integers(0, max(document.slots - steps, 0) + 1))
        cut = slice(start, start + steps)
        asked = document.holds[:, cut].any(axis=1)
        if asked.any():
            yield replace(
                document,
                vectors=document.vectors[cut],
                lexical=document.lexical[cut],
                questions=document.questions[asked],
                **{
                    name: getattr(document, name)[asked][:, cut]
                    for name in ("right", "total", "best", "holds", "shared", "spans")
                },
            )


def standards_of(documents: Sequence[Evidence], products: int = 0) -> Standards:
    """The standards of the documents' vectors."""
    return Standards.of(np.concatenate([document.vectors for document in documents]), products)


def standardised(documents: Sequence[Evidence], standards: Standards) -> list[Evidence]:
    """Documents with vectors as a policy sees them."""
    return [
        replace(document, vectors=standards(document.vectors).numpy()) for document in documents
    ]


def by_question(documents: Sequence[Evidence], like: Sequence[Evidence]) -> list[Evidence]:
    """Every question as a stream of its own, with what a policy that knows it sees of each slot.

    What is added to the vectors is what `readers.wordviews.Aware` adds.
    """
    said = [np.stack([d.best, d.total], axis=-1).reshape([-1, 2]) for d in like]
    said = np.concatenate(said)
    mean, scale = said.mean(axis=0), np.maximum(said.std(axis=0), 1e-3)
    rows = []
    for document in documents:
        for q in range(len(document.questions)):
            pair = np.stack([document.best[q], document.total[q]], axis=-1)
            shared = document.shared[q]
            before = np.concatenate([[0.0], shared[:-1]])
            extra = [(pair - mean) / scale, np.stack([before, shared], axis=-1)]
            vectors = np.concatenate([document.vectors, *extra], axis=-1).astype(np.float32)
            rows.append(replace(asked(document, slice(q, q + 1)), vectors=vectors))
    return rows


def asked(document: Evidence, which: Any) -> Evidence:
    """The document with some of its questions: a slice, or `[Q]` bool."""
    return replace(document, **{name: getattr(document, name)[which] for name in PER_QUESTION})


def make(policy: str, width: int, slots: int, **options: Any) -> EpisodicMemory:
    """An untrained memory of vectors of that width."""
    known = retention.find(policy).options()
    options = {name: value for name, value in options.items() if name in known}
    memory = EpisodicMemory(slots, retention.get(policy, **options))
    memory.build((None, None, width))
    return memory


def bare(policy: RetentionPolicy, width: int, slots: int) -> EpisodicMemory:
    """A memory of vectors of that width, with a policy like this one and its weights."""
    memory = EpisodicMemory(slots, type(policy).from_config(policy.get_config()))
    memory.build((None, None, width))
    if policy.built:
        memory.policy.set_weights(policy.get_weights())
    return memory


def begin(
    policy: RetentionPolicy,
    documents: Sequence[Evidence],
    ridge: float = 1000.0,
    spread: float = 2.0,
    weights: np.ndarray | None = None,
) -> None:
    """Lets a policy with a linear part begin with the best linear judgement of a slot by itself.

    That is a ridge regression of how many questions a slot answers, each question counting once
    whatever the number of slots that answer it. The rest of the policy begins with no opinion.

    Args:
        policy: built, with `skip=True`; others are left as they are.
        documents: with vectors that are `standardised`.
        ridge: weight of the penalty.
        spread: standard deviation of the logits it begins with.
        weights: `[len(documents)]`; None for equal ones.
    """
    if not getattr(policy, "skip", False):
        return
    x = np.concatenate([document.vectors for document in documents])
    y = np.concatenate([share_of(document) for document in documents])
    each = [document.slots for document in documents]
    weight = None if weights is None else np.repeat(weights, each)
    w = ridge_weights(x, y, ridge, weight)
    w *= spread / max(float(np.std(x @ w)), 1e-6)
    policy.alone.kernel.assign(-w[:, None])
    other = getattr(policy, "importance", None) or policy.similarity.memory_encoding
    other.kernel.assign(np.zeros(other.kernel.shape))


def ridge_weights(
    x: np.ndarray, y: np.ndarray, ridge: float, weight: np.ndarray | None = None
) -> np.ndarray:
    """Weights `[E]` of the regression of y `[n]` on x `[n, E]`; `weight` `[n]` of the rows."""
    weight = np.ones(len(y)) if weight is None else weight / np.mean(weight)
    x = x - np.average(x, axis=0, weights=weight)
    y = y - np.average(y, weights=weight)
    weighted = x.T * weight
    return np.linalg.solve(weighted @ x + ridge * np.eye(x.shape[1]), weighted @ y)


def share_of(document: Evidence) -> np.ndarray:
    """How many questions each slot answers, relative to the mean slot."""
    holds = document.holds.astype(np.float64)
    share = holds / np.maximum(holds.sum(axis=1, keepdims=True), 1.0)
    return share.sum(axis=0) * document.slots / max(1, len(holds))


def train(
    memory: EpisodicMemory,
    documents: Sequence[Evidence],
    *,
    epochs: int = 30,
    steps: int | None = None,
    batch_size: int = 16,
    rate: float = 5e-4,
    weights: np.ndarray | None = None,
    seed: int = 0,
    looked: Callable[[int], Sequence[keras.callbacks.Callback]] = lambda updates: (),
) -> KeepingTrainer:
    """Trains the policy of `memory` in place.

    The defaults are gentle, because otherwise what the regression began with is soon lost.

    Args:
        memory: see `make`.
        documents: with vectors that are `standardised`.
        epochs: passes over the documents.
        steps: learn from stretches of this many slots; None for whole documents.
        batch_size, rate: of the training.
        weights: how often each document comes, relative to the others; None for once a pass.
        seed: of everything random.
        looked: from the number of updates to callbacks that look at the training.
    """
    random = np.random.default_rng(seed)
    batch_size = min(batch_size, len(documents))
    trainer = KeepingTrainer(memory)
    longest = max(document.slots for document in documents)
    steps = min(steps or longest, longest)
    questions = max(len(document.questions) for document in documents)
    updates = max(1, epochs * (len(documents) // batch_size))
    schedule = keras.optimizers.schedules.CosineDecay(rate, updates, 0.03)
    trainer.compile(
        keras.optimizers.Adam(schedule, global_clipnorm=5.0),
        retention=Hindsight(discount=1.0, entropy=0.01, final_entropy=0.001),
        seed=seed,
        updates=updates,
        jit_compile=False,
    )
    trainer.optimizer.build(trainer.trainable_variables)

    def batches():
        for _ in range(epochs):
            for some in _pass(documents, steps, batch_size, weights, random):
                yield _fixed(some, steps, questions)

    example = _fixed(list(documents[:1]), steps, questions)
    signature = {
        name: tf.TensorSpec([batch_size, *leaf.shape[1:]], leaf.dtype)
        for name, leaf in example.items()
    }
    data = tf.data.Dataset.from_generator(batches, output_signature=signature)
    with warnings.catch_warnings():
        # How many windows have a question is known only when they are cut; Keras wants it before.
        warnings.filterwarnings("ignore", message="Your input ran out of data")
        trainer.fit(data, callbacks=list(looked(updates)), verbose=0, shuffle=False)
    return trainer


def _pass(
    documents: Sequence[Evidence],
    steps: int,
    batch_size: int,
    weights: np.ndarray | None,
    random: np.random.Generator,
) -> Iterator[list[Evidence]]:
    """One pass over the documents in random order, or as many drawn by weight, in batches."""
    order = random.permutation(len(documents))
    if weights is not None:
        order = random.choice(len(documents), len(documents), p=weights / weights.sum())
    cut = list(windows([documents[i] for i in order], steps, random))
    cut *= 1 if len(cut) >= batch_size else batch_size
    for start in range(0, len(cut) - batch_size + 1, batch_size):
        yield cut[start : start + batch_size]


def _fixed(documents: list[Evidence], steps: int, questions: int) -> dict[str, np.ndarray]:
    """`padded` to a size that is the same for all batches."""
    arrays = padded(documents, LEARNED_FROM)
    rows = len(documents)
    whole: dict[str, np.ndarray] = {"length": np.minimum(arrays["length"], steps)}
    for name, leaf in arrays.items():
        if name == "length":
            continue
        per_slot, asked = name == "vectors", name == "asked"
        shape = (steps, leaf.shape[-1]) if per_slot else (questions, steps)[: 1 if asked else 2]
        fill = -1e9 if name in ("right", "total") else 0
        made = np.full([rows, *shape], fill, leaf.dtype)
        part = leaf[:, :steps] if per_slot else leaf if asked else leaf[..., :steps]
        made[tuple(slice(size) for size in part.shape)] = part
        whole[name] = made
    return whole


def size_of(document: Evidence, slots: float) -> int:
    """N for a document: `slots`, or that share of its own slots if below 1."""
    return max(1, round(slots * document.slots)) if slots < 1 else int(slots)


def kept_by(
    memory: EpisodicMemory,
    documents: Sequence[Evidence],
    slots: float | None = None,
    see: str = "vectors",
    seed: int = 0,
) -> list[np.ndarray]:
    """What a policy keeps of each document: ids `[N]`, -1 = unused.

    Args:
        memory: with the policy.
        documents: to read.
        slots: N, or a share of a document's slots if below 1; None for the memory's own.
        see: what it sees of a slot: "vectors" or "lexical".
        seed: of policies that draw at random.
    """
    kept: list[np.ndarray] = [np.zeros(0, np.int64)] * len(documents)
    seeds = tf.constant([seed, 0]) if memory.policy.stochastic else None
    sizes = [None if slots is None else size_of(document, slots) for document in documents]
    for size in dict.fromkeys(sizes):

        @tf.function(autograph=False, reduce_retracing=True)
        def run(vectors, length, size=size):
            live = tf.sequence_mask(length, tf.shape(vectors)[1])
            return memory(vectors, mask=live, seed=seeds, slots=size)[0].ids

        group = [i for i, one in enumerate(sizes) if one == size]
        for part in by_length([documents[i] for i in group], 64):
            chosen = [group[i] for i in part]
            given = padded([documents[i] for i in chosen], [see])
            ids = run(tf.constant(given[see]), tf.constant(given["length"])).numpy()
            for row, i in enumerate(chosen):
                kept[i] = ids[row]
    return kept
