"""What every retention policy shares: the interface, and the rules that none of them may break.

A policy looks at the N + 1 candidates (the slots and the newcomer) and says how much it would like
to evict each. What it says is only an opinion. `decide` turns it into a decision, and there, in one
place, stand the rules: unused slots fill first, pinned entries stay, expired ones go first.

One step of any policy, rule or network, is

    seen = policy.look(cells)                   # what does not depend on the carry
    scores = policy.judge(seen, cells, carry)   # eviction logits, new carry, features
    decision = decide(scores.logits, candidates)

`look` is apart from the rest so that a recorded rollout can be looked at all at once: see `replay`.
A policy overrides `score`; `judge` calls it and sees to it that what comes out is sound.
"""

from __future__ import annotations

import inspect
import math
from typing import Any, ClassVar, NamedTuple

import keras
import tensorflow as tf

from lemn_tf import memory

Nest = Any
NEGLIGIBLE = -1e9
"""Logit of what must not be chosen; finite, so that no gradient becomes NaN."""


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


class Decision(NamedTuple):
    """What was decided about one item.

    Attributes:
        ids: `[B, N + 1]` int64, the candidates, newcomer last.
        slot: `[B]` int32, the candidate that left; N means that the newcomer was not stored.
        evicted: `[B]` int64, its id, or -1 if an unused slot was filled.
        keep: `[B, N + 1]`, probability of keeping each candidate, 1 - pi(m_i | M_t, x_t).
        margin: `[B]`, how much likelier it was to leave than the runner-up, 0 to 1.
        log_prob: `[B]`, log-probability of the choice.
        entropy: `[B]`, of the choice, in nats.
        free: `[B]` bool, whether there was a choice at all.
    """

    ids: tf.Tensor
    slot: tf.Tensor
    evicted: tf.Tensor
    keep: tf.Tensor
    margin: tf.Tensor
    log_prob: tf.Tensor
    entropy: tf.Tensor
    free: tf.Tensor


class RetentionPolicy(keras.layers.Layer):
    """Chooses what a full memory evicts. Subclasses override `score`, and little else.

    Policies are Keras layers without state of their own: what a policy remembers travels in the
    memory, as its carry. They work for any number of slots, and never see the question, unless
    built with `question_aware=True`, for a reader that shows it to them (`episode.by_question`).

    A policy says itself what it is, in the attributes below and by what it overrides; nobody else
    goes by its class or its name. Whatever Keras' global dtype policy is, a policy computes in
    float32 unless it is given a `dtype`: it is small, and what is forgotten should not hang on
    rounding. Its weights are float32 even then.

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
    """Whether it goes by the future: its vectors are no encoded entries but say when each item will
    be needed, as integers or floats of any width. For bounds only."""
    suited: ClassVar[dict[str, Any]] = {}
    """What suits it in training better than a recipe's own values, such as `{"entropy": 0.5}`."""

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
        """Whether it has anything to train; known before it is built, too.

        A policy that makes weights, holds layers or overrides `build` learns, unless it is frozen
        or turns out to have no weights once it is built. A subclass may also just say so.
        """
        if self.trainable_weights:
            return True
        parts = self._flatten_layers(include_self=False)
        if self.built and all(part.built for part in parts):
            return False
        return self.trainable and bool(parts or type(self).build is not RetentionPolicy.build)

    @property
    def listens(self) -> bool:
        """Whether it wants to know what readers attend to: it does if it overrides `attend`."""
        return type(self).attend is not RetentionPolicy.attend

    @classmethod
    def options(cls) -> tuple[str, ...]:
        """The names of its own arguments, those that its base classes take from it included."""
        found: dict[str, None] = {}
        for owner in cls.__mro__[: cls.__mro__.index(RetentionPolicy)]:
            if "__init__" not in vars(owner):
                continue
            parameters = list(inspect.signature(owner.__init__).parameters.values())[1:]
            named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
            found |= dict.fromkeys(one.name for one in parameters if one.kind in named)
            if all(one.kind is not inspect.Parameter.VAR_KEYWORD for one in parameters):
                break
        return tuple(name for name in found if name not in ("name", "dtype", "trainable"))

    def build(self, shape):
        """Builds the layers it holds by scoring two blank cells, `[..., D]` wide as `shape` says.

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
        """Told by a model which reader it works for, before anything is built.

        Returns:
            A layer whose `view` is what the policy wants to see of an entry, if that is not what
            the reader shows to any policy (`Reader.vectors`).
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
        """The carry after a reader attended to the slots with the given `[B, N]` weights."""
        return carry

    def opinion(self, logits: tf.Tensor, carry: Nest = (), features: tf.Tensor = None) -> Scores:
        """`Scores` with no features unless given."""
        if features is None:
            features = tf.zeros([*tf.unstack(tf.shape(logits)[:-1]), 0], logits.dtype)
        return Scores(logits, carry, features)

    def judge(self, seen: Nest, cells: Cells, carry: Nest) -> Scores:
        """`score`, made sound: what a decision and the next step can rely on.

        Logits and features come out in float32, the carry in the types that `carry_spec` declares,
        and what is not finite in it begins again at 0: a carry must not stay spoilt for ever.
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
        """The cells with vectors in the type it computes in; the future is left as it is."""
        if self.clairvoyant:
            return cells
        return cells._replace(vectors=tf.cast(cells.vectors, self.compute_dtype))

    def replay(self, cells: Cells, slot: tf.Tensor) -> Scores:
        """The scores of a recorded rollout, all time steps at once.

        `look` (for the learned policies the bidirectional GRU, nearly all the work) runs once on a
        batch of B * T; only what really depends on the step before runs in a loop over time, and
        nothing does for a policy without carry.

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

        def time_major(leaf):
            return tf.transpose(leaf, [1, 0, *range(2, leaf.shape.rank)])

        seed, over_time = cells.seed, cells._replace(seed=())
        over_time, seen, slot = tf.nest.map_structure(time_major, (over_time, seen, slot))

        def step(t, carry, logits, features):
            scores = self.judge(at(seen, t), at(over_time, t)._replace(seed=seed), carry)
            after = memory.evict(scores.carry, slot[t])
            return (
                t + 1,
                tf.nest.map_structure(with_newcomer, after),
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
        return Scores(time_major(logits.stack()), (), time_major(features.stack()))


def _sound(spec: tf.TensorSpec, leaf: tf.Tensor) -> tf.Tensor:
    """A carry in its declared type, with 0 for what is not finite."""
    leaf = tf.cast(leaf, spec.dtype)
    if not spec.dtype.is_floating:
        return leaf
    return tf.where(tf.math.is_finite(leaf), leaf, tf.zeros([], leaf.dtype))


def with_newcomer(leaf: tf.Tensor) -> tf.Tensor:
    """`[B, N, ...]` -> `[B, N + 1, ...]`: a zero carry for the newcomer."""
    return tf.pad(leaf, [[0, 0], [0, 1]] + [[0, 0]] * (leaf.shape.rank - 2))


def eligible(cells: memory.MemoryState) -> tuple[tf.Tensor, tf.Tensor]:
    """The rules: who may leave, `[B, N + 1]`, and whether there is a choice.

    1. While a slot is unused, the first unused one is taken, and nothing else leaves.
    2. Pinned entries never leave. If every slot is pinned the newcomer, even a pinned one, is not
       stored.
    3. Among the others, expired entries leave before all that are not.
    """
    unused = ~cells.filled
    first_unused = unused & (tf.cumsum(tf.cast(unused, tf.int32), axis=1) == 1)
    any_unused = tf.reduce_any(unused, axis=1, keepdims=True)
    loose = ~cells.pinned
    last = tf.one_hot(tf.shape(cells.ids)[1] - 1, tf.shape(cells.ids)[1], True, False)
    loose |= ~tf.reduce_any(loose, axis=1, keepdims=True) & last
    expired = loose & (cells.expiry <= cells.clock[:, None])
    loose = tf.where(tf.reduce_any(expired, axis=1, keepdims=True), expired, loose)
    allowed = tf.where(any_unused, first_unused, loose)
    free = tf.reduce_sum(tf.cast(allowed, tf.int32), axis=1) > 1
    return allowed, free


def decide(
    logits: tf.Tensor, cells: memory.MemoryState, noise: tf.Tensor | None = None
) -> Decision:
    """A policy's opinion under the rules: argmax, or a sample if Gumbel `noise` is given.

    Args:
        logits: `[B, N + 1]` eviction logits.
        cells: the candidates, as `memory.candidates` returns them.
        noise: `[B, N + 1]` Gumbel noise; with it the choice is a sample of the softmax.
    """
    return describe(cells.ids, *choose(logits, cells, noise))


def choose(
    logits: tf.Tensor, cells: memory.MemoryState, noise: tf.Tensor | None = None
) -> tuple[tf.Tensor, tf.Tensor]:
    """The half of `decide` that the next step waits for: logits under the rules, and the slot.

    Returns:
        `[B, N + 1]` logits, `NEGLIGIBLE` for what may not leave, and the `[B]` slot that leaves.
    """
    allowed, _ = eligible(cells)
    # Whatever a policy says, infinity and NaN included, what is not allowed does not leave.
    logits = tf.clip_by_value(tf.cast(logits, tf.float32), 0.1 * NEGLIGIBLE, -0.1 * NEGLIGIBLE)
    logits = tf.where(tf.math.is_nan(logits), 0.1 * NEGLIGIBLE, logits)
    wish = logits if noise is None else logits + noise
    wish = tf.where(wish > -1e38, wish, -1e38)
    slot = tf.argmax(tf.where(allowed, wish, -math.inf), axis=1, output_type=tf.int32)
    return tf.where(allowed, logits, NEGLIGIBLE), slot


def describe(ids: tf.Tensor, logits: tf.Tensor, slot: tf.Tensor) -> Decision:
    """The other half of `decide`: what there is to say of choices made, for a whole stream at once.

    Args:
        ids: `[..., N + 1]`, the candidates.
        logits: `[..., N + 1]`, as `choose` returns them.
        slot: `[...]`, as `choose` returns it.
    """
    allowed = logits > 0.5 * NEGLIGIBLE
    log_pi = tf.nn.log_softmax(logits)
    pi = tf.exp(log_pi)
    left = tf.one_hot(slot, tf.shape(ids)[-1], True, False)
    likeliest = tf.one_hot(tf.argmax(pi, axis=-1), tf.shape(ids)[-1], True, False)
    runner_up = tf.reduce_max(tf.where(likeliest, 0.0, pi), axis=-1)
    return Decision(
        ids=ids,
        slot=slot,
        evicted=tf.reduce_sum(tf.where(left, ids, tf.zeros_like(ids)), axis=-1),
        keep=1.0 - pi,
        margin=tf.reduce_max(pi, axis=-1) - runner_up,
        log_prob=tf.reduce_sum(tf.where(left, log_pi, 0.0), axis=-1),
        entropy=-tf.reduce_sum(pi * tf.where(allowed, log_pi, 0.0), axis=-1),
        free=tf.reduce_sum(tf.cast(allowed, tf.int32), axis=-1) > 1,
    )


def gumbel(cells: memory.MemoryState, seed: tf.Tensor | None) -> tf.Tensor:
    """`[B, N + 1]` Gumbel noise for one step, a function of seed, row, clock and id alone.

    So one seed serves a whole stream, a step draws the same in `observe` and in `call`, and XLA
    changes nothing (TensorFlow's own stateless generators give other numbers there).

    Args:
        cells: the candidates.
        seed: `[2]` int32; None for a policy that draws even when serving: the same in every row.
    """
    salt = 0
    if seed is not None:
        row = tf.cast(tf.range(tf.shape(cells.clock)[0]), tf.uint32)
        salt = _mix(salt_of(seed) + row * 2654435761)
    return -tf.math.log(-tf.math.log(scramble(cells.ids, cells.clock, salt)))


def salt_of(seed: tf.Tensor) -> tf.Tensor:
    """A `[2]` int32 seed as one salt for `scramble`."""
    return _mix(_mix(tf.cast(seed[0], tf.uint32)) + tf.cast(seed[1], tf.uint32))


def scramble(ids: tf.Tensor, clock: tf.Tensor, salt: tf.Tensor | int = 0) -> tf.Tensor:
    """`[..., M]` numbers in (0, 1) that look random but depend on id, clock and salt alone.

    For chance that must come out the same in a row and in a batch, in a rollout and in its replay.

    Args:
        ids: `[..., M]`.
        clock: `[...]`.
        salt: scalar, or as `clock`.
    """
    step = _mix(_mix(tf.cast(salt, tf.uint32)) + tf.cast(clock, tf.uint32))
    mixed = _mix(step[..., None] + tf.cast(ids, tf.uint32) * 2654435761)
    # 23 bits and a half are exact in float32: neither 0 nor 1 can come out.
    return (tf.cast(tf.bitwise.right_shift(mixed, 9), tf.float32) + 0.5) / 2.0**23


def _mix(x: tf.Tensor) -> tf.Tensor:
    """A bijection of 32 bits in which every bit of the input moves every bit of the output."""
    for shift, multiplier in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = tf.bitwise.bitwise_xor(x, tf.bitwise.right_shift(x, shift)) * multiplier
    return tf.bitwise.bitwise_xor(x, tf.bitwise.right_shift(x, 16)) + 0x9E3779B9
