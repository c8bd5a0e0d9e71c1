"""What every retention policy shares: the interface.

A policy looks at the N + 1 candidates (the slots and the newcomer) and gives each a logit for
leaving. That is only an opinion: `lemn_tf.retention.decision` turns it into a decision.

One step of any policy, rule or network, is

    seen = policy.look(cells)                   # what does not depend on the carry
    scores = policy.judge(seen, cells, carry)   # eviction logits, new carry, features
    decision = decide(scores.logits, candidates)

`look` is separate so that a recorded rollout needs it only once: see `replay`.
A policy overrides `score`; `judge` calls it and makes sure that the result is sound.
"""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, NamedTuple

import keras
import tensorflow as tf

from lemn_tf import memory

Nest = Any


class Cells(NamedTuple):
    """The N + 1 candidates as a policy sees them; the newcomer is the last one.

    Attributes:
        vectors: `[..., N + 1, D]`, e_{t,i} of the paper: the encoded entries.
        ids: `[..., N + 1]` int64, positions in the stream, -1 for unused slots.
        clock: `[...]` int64, items seen, the newcomer included.
        seed: `[2]` int32 in training, for policies that perturb what they see; else None.
    """

    vectors: tf.Tensor
    ids: tf.Tensor
    clock: tf.Tensor
    seed: tf.Tensor | None = None

    @property
    def filled(self) -> tf.Tensor:
        """`[..., N + 1]` bool, the cells that hold something."""
        return self.ids != memory.EMPTY


class Scores(NamedTuple):
    """A policy's opinion.

    Attributes:
        logits: `[..., N + 1]`, g_{t,i} of the paper: the higher, the sooner evicted.
        carry: nest of `[..., N + 1, ...]`, what it will remember of each cell.
        features: `[..., F]` summary of the whole memory for a value head; F = 0 for rules.
    """

    logits: tf.Tensor
    carry: Nest
    features: tf.Tensor


class RetentionPolicy(keras.layers.Layer):
    """Chooses what a full memory evicts. Subclasses override `score`, and little else.

    Policies are Keras layers without state of their own: what a policy remembers travels in the
    memory, as its carry. They work for any number of slots, and never see the question, unless
    built with `question_aware=True`, for a reader that shows it to them (`episode.by_question`).

    A policy declares its properties by the attributes below and by what it overrides; no other
    code depends on its class or its name. Whatever Keras' global dtype policy is, a policy
    computes in float32 unless it is given a `dtype`: it is small, and what is forgotten should not
    depend on rounding. Its weights are float32 even then.

    Example: a policy that evicts the entry whose vector is shortest, and one that learns.

    >>> class Shortest(RetentionPolicy):
    ...     def score(self, seen, cells, carry):
    ...         return self.opinion(-tf.norm(cells.vectors, axis=-1))
    >>> class Linear(RetentionPolicy):
    ...     def __init__(self, **kwargs):
    ...         super().__init__(**kwargs)
    ...         self.judgement = keras.layers.Dense(1)
    ...
    ...     def score(self, seen, cells, carry):
    ...         return self.opinion(self.judgement(cells.vectors)[..., 0])
    >>> Shortest().learns, Linear().learns
    (False, True)
    """

    stochastic = False
    """Whether it draws at random even when serving."""
    clairvoyant = False
    """Whether it knows the future: its vectors are not encoded entries but the times when each
    item will be needed, as integers or floats of any width. Only for bounds."""
    suited: ClassVar[dict[str, Any]] = {}
    """Values that suit its training better than a recipe's own, such as `{"entropy": 0.5}`."""

    def __init__(self, question_aware: bool = False, **kwargs):
        dtype = keras.dtype_policies.get(kwargs.pop("dtype", None) or "float32")
        if dtype.name in ("bfloat16", "float16"):
            dtype = keras.dtype_policies.get(f"mixed_{dtype.name}")
        super().__init__(**{"autocast": False, "dtype": dtype, **kwargs})
        self.question_aware = question_aware

    def get_config(self):
        return {**super().get_config(), "question_aware": self.question_aware}

    @property
    def learns(self) -> bool:
        """Whether it has anything to train; known even before it is built.

        A policy that makes weights, holds layers or overrides `build` learns, unless it is frozen
        or has no weights once it is built. A subclass may also override this.
        """
        if self.trainable_weights:
            return True
        parts = self._flatten_layers(include_self=False)
        if self.built and all(part.built for part in parts):
            return False
        return self.trainable and bool(parts or type(self).build is not RetentionPolicy.build)

    @property
    def listens(self) -> bool:
        """Whether it is told what readers attend to: true if it overrides `attend`."""
        return type(self).attend is not RetentionPolicy.attend

    @classmethod
    def options(cls) -> tuple[str, ...]:
        """The names of its arguments, including those that it passes on to its base classes."""
        found: dict[str, None] = {}
        for owner in cls.__mro__[: cls.__mro__.index(RetentionPolicy)]:
            if "__init__" not in vars(owner):
                continue
            parameters = list(inspect.signature(vars(owner)["__init__"]).parameters.values())[1:]
            named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
            found |= dict.fromkeys(one.name for one in parameters if one.kind in named)
            if all(one.kind is not inspect.Parameter.VAR_KEYWORD for one in parameters):
                break
        return tuple(name for name in found if name not in ("name", "dtype", "trainable"))

    def build(self, shape):
        """Builds the layers it holds by scoring two blank cells, D of `shape` `[..., D]` wide.

        A policy that makes weights of its own overrides this.
        """
        if all(part.built for part in self._flatten_layers(include_self=False)):
            return
        ids = tf.constant([[0, 1]], tf.int64)
        vectors = tf.zeros([1, 2, shape[-1]], self.compute_dtype)
        specs = self.carry_spec()
        carry = tf.nest.map_structure(lambda s: tf.zeros([1, 2, *s.shape], s.dtype), specs)
        self.call(Cells(vectors, ids, tf.constant([2], tf.int64)), carry)

    def meet(self, reader: Any) -> keras.layers.Layer | None:
        """Called by a model, before anything is built, with the reader of its memory.

        Returns:
            A layer whose `view` is what the policy wants to see of an entry, if that differs from
            what the reader shows by default (`Reader.vectors`).
        """
        if not self.question_aware:
            return None
        if not hasattr(reader, "aware"):
            raise ValueError(
                f"{type(reader).__name__} does not show questions to a policy: expected a reader "
                "of words, or a policy without question_aware"
            )
        return reader.aware()

    def look(self, cells: Cells) -> Nest:
        """Whatever can be computed without the carry, for cells with any leading dimensions."""
        return ()

    def score(self, seen: Nest, cells: Cells, carry: Nest) -> Scores:
        """The eviction logits of the candidates.

        Args:
            seen: what `look` returned for these cells.
            cells: the candidates.
            carry: nest of `[..., N + 1, ...]` as `carry_spec` says, zero for the newcomer.
        """
        raise NotImplementedError(f"{type(self).__name__} does not override score()")

    def carry_spec(self) -> Nest:
        """Nest of `tf.TensorSpec`: what is carried for one slot. `()` for most rules."""
        return ()

    def attend(self, carry: Nest, attention: tf.Tensor, clock: tf.Tensor) -> Nest:
        """The carry after a reader attended to the slots with these `[B, N]` weights."""
        return carry

    def opinion(self, logits: tf.Tensor, carry: Nest = (), features: tf.Tensor = None) -> Scores:
        """`Scores` with no features unless given."""
        if features is None:
            features = tf.zeros([*tf.unstack(tf.shape(logits)[:-1]), 0], logits.dtype)
        return Scores(logits, carry, features)

    def judge(self, seen: Nest, cells: Cells, carry: Nest) -> Scores:
        """`score`, made sound: what a decision and the next step can rely on.

        Logits and features come out in float32, the carry in the types that `carry_spec` declares.
        Values in it that are not finite start again from 0, so that no carry is spoilt for good.
        """
        scores = self.score(seen, cells, carry)
        return Scores(
            tf.cast(scores.logits, tf.float32),
            tf.nest.map_structure(_sound, self.carry_spec(), scores.carry),
            tf.cast(scores.features, tf.float32),
        )

    def call(self, cells: Cells, carry: Nest) -> Scores:
        """`look` and `judge` in one."""
        cells = self._cast(cells)
        return self.judge(self.look(cells), cells, carry)

    def _cast(self, cells: Cells) -> Cells:
        """The cells with vectors in its compute type; a clairvoyant policy's stay as they are."""
        if self.clairvoyant:
            return cells
        return cells._replace(vectors=tf.cast(cells.vectors, self.compute_dtype))

    def replay(self, cells: Cells, slot: tf.Tensor) -> Scores:
        """The scores of a recorded rollout, all time steps at once.

        `look` (for the learned policies the bidirectional GRU, nearly all the work) runs once on a
        batch of B * T. Only what depends on the step before runs in a loop over time; a policy
        without carry has no loop.

        Args:
            cells: candidates with leading dimensions `[B, T]`, of streams that began empty.
            slot: `[B, T]` int32, the candidate that left at each step.

        Returns:
            `Scores` with leading dimensions `[B, T]` and an empty carry.
        """
        cells = self._cast(cells)
        seen = self.look(cells)
        spec = self.carry_spec()
        if not tf.nest.flatten(spec):
            return self.judge(seen, cells, ())
        batch, steps, places = tf.unstack(tf.shape(cells.ids))

        def at(nest, t):
            return tf.nest.map_structure(lambda leaf: tf.gather(leaf, t), nest)

        seed, over_time = cells.seed, cells._replace(seed=())
        over_time, seen, slot = tf.nest.map_structure(swap_time, (over_time, seen, slot))

        def step(t, carry, logits, features):
            scores = self.judge(at(seen, t), at(over_time, t)._replace(seed=seed), carry)
            after = memory.evict(scores.carry, slot[t])
            return (
                t + 1,
                tf.nest.map_structure(memory.with_newcomer, after),
                logits.write(t, scores.logits),
                features.write(t, scores.features),
            )

        carry = tf.nest.map_structure(lambda s: tf.zeros([batch, places, *s.shape], s.dtype), spec)
        static = cells.ids.shape[1]
        size = steps if static is None else static
        arrays = [tf.TensorArray(tf.float32, size=size) for _ in range(2)]
        _, _, logits, features = tf.while_loop(
            lambda t, *_: t < steps, step, (0, carry, *arrays), maximum_iterations=static
        )
        return Scores(swap_time(logits.stack()), (), swap_time(features.stack()))


def _sound(spec: tf.TensorSpec, leaf: tf.Tensor) -> tf.Tensor:
    """A carry in its declared type, with 0 for what is not finite."""
    leaf = tf.cast(leaf, spec.dtype)
    if not spec.dtype.is_floating:
        return leaf
    return tf.where(tf.math.is_finite(leaf), leaf, tf.zeros([], leaf.dtype))


def swap_time(leaf: tf.Tensor) -> tf.Tensor:
    """`[B, T, ...]` -> `[T, B, ...]`, and back."""
    return tf.transpose(leaf, [1, 0, *range(2, leaf.shape.rank)])
