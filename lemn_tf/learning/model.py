"""MemoryModel: a Keras model with memories in it, whose `fit` also trains what they keep.

    stream, query = keras.Input((None, 16)), keras.Input((8,))
    state, _ = EpisodicMemory(slots=5, policy="st-lemn")(stream)
    answer = MyHead()([state.entries, state.filled, query])
    model = MemoryModel([stream, query], answer)
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x, y)

Which item leaves is a discrete choice, so the loss of an answer has no gradient for it. So an
update does four things. It lets the policy act, with evictions drawn at random. It trains the
model on what was kept. It also trains what comes behind the memory on random memories, so that it
can use items before the policy has learned to keep them. And it gives the policy credit for what
it kept, by the objectives of `lemn_tf.learning.objectives`.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf
from keras.src.models.functional import Functional
from keras.src.models.model import functional_init_arguments

from lemn_tf.layer import EpisodicMemory
from lemn_tf.learning import behind, counterfactuals, memories
from lemn_tf.learning.losses import SampleLoss
from lemn_tf.learning.rollout import Rollout
from lemn_tf.learning.training import RetentionTrainer
from lemn_tf.retention.decision import Decision
from lemn_tf.tape import Call, MemoryTape

Nest = Any


class MemoryModel(RetentionTrainer):
    """A model whose `fit` also trains what its memories keep.

    Made like any Keras model: `MemoryModel(inputs, outputs)`, or as a subclass with a `call`. A
    subclass may define `answer`, the part behind its memory; hindsight credit then runs only that
    part on other memories, not the whole model:

        class Mine(MemoryModel):
            def call(self, inputs, training=False):
                state, _ = self.memory(inputs["stream"], training=training)
                return self.answer(state, inputs, training=training)

            def answer(self, state, inputs, training=False):
                return self.head([state.entries, state.filled, inputs["query"]])

    With several memories `answer` gets a tuple of states, in the order in which `call` calls them.
    """

    def __new__(cls, *args, **kwargs):
        if functional_init_arguments(args, kwargs) and not issubclass(cls, Functional):
            if cls is MemoryModel:
                return FunctionalMemoryModel.__new__(FunctionalMemoryModel)
            bases = [FunctionalMemoryModel if b is MemoryModel else b for b in cls.__bases__]
            cls.__bases__ = tuple(bases)  # as Keras does for subclasses of its own Model
        return super().__new__(cls)

    def compile(
        self,
        optimizer: Any = "rmsprop",
        loss: Any = None,
        *args,
        retention: Any = "hindsight",
        random_memories: float = 0.5,
        share: tuple[float, float] = (0.2, 1.0),
        variants: int = 64,
        warmup: int | None = None,
        **kwargs,
    ):
        """As in Keras; also sets how the memories are trained.

        Args:
            optimizer, loss, *args, **kwargs: as `keras.Model.compile` takes them, and those of
                `RetentionTrainer.compile`: `seed`, `updates`, `shards`, `slots`.
            retention: what trains the policies: "hindsight", "actor-critic", "both", an objective
                or several; None leaves them as they are.
            random_memories: how much of the loss comes from random memories instead of those that
                the policies left.
            share: range of the share of the stream that such a memory holds.
            variants: how many evicted items of a stream are tried in hindsight; for longer
                streams, that many chosen at random.
            warmup: updates over which the policy's part grows from nothing to all. At first what
                comes behind the memory learns only from random memories: a policy that learns
                beside a head that cannot read yet gets used to its mistakes. Default a fifth of
                the first `fit`, but at most 200.
        """
        self.random_memories, self.share = random_memories, share
        self.variants, self.warmup = variants, warmup
        own = {"random_memories": random_memories, "share": list(share)}
        own |= {"variants": variants, "warmup": warmup}
        weights = args[0] if args else kwargs.get("loss_weights")
        self.sample_loss: Any = None if loss is None else SampleLoss(loss, weights)
        super().compile(optimizer, loss, *args, retention=retention, own=own, **kwargs)

    # -- learning ---------------------------------------------------------------------------------

    def losses_of(self, data: Nest, seed: tf.Tensor, entropy: tf.Tensor, slots: int | None):
        """See `RetentionTrainer.losses_of`; `data` is what `fit` was given: x, y and weights."""
        x, y, weight = keras.utils.unpack_x_y_sample_weight(data)
        if not self.built:
            self(x)  # outside the tape, which must see only one call
        with MemoryTape(seed, slots=slots) as tape:
            y_pred = self(x, training=True)
        loss = self._compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=weight, training=True)
        learners = self._learners(tape.calls)
        total, shares = loss, len(learners)
        logs: dict[str, tf.Tensor] = {}
        begun = self._begun()
        for number in learners:
            lesson = Lesson(self, x, y, weight, y_pred, tape.calls, number)
            if self.random_memories:
                part = lesson.random_loss(self.share, seed)
                total += (1.0 - begun * (1.0 - self.random_memories)) * (part - loss) / shares
                logs["random_memory_loss"] = logs.get("random_memory_loss", 0.0) + part / shares
            critic = self.critic_of(number, lesson.scores.features)
            rollout = lesson.rollout(critic, self.variants, seed)
            part, shown = self.retention_loss(rollout, entropy)
            total += begun * part
            logs.update(shown)
        return total, loss, y_pred, logs

    def _begun(self) -> tf.Tensor | float:
        """How much the policy's part counts now, 0 to 1."""
        warming = self._warming
        if not warming:
            return 1.0
        return tf.minimum(tf.cast(self.optimizer.iterations, tf.float32) / warming, 1.0)

    @property
    def _warming(self) -> int:
        """Updates until the policy's part counts in full."""
        if not self.random_memories:
            return 0
        return min(200, self.updates // 5) if self.warmup is None else self.warmup

    @property
    def training_phases(self) -> list[tuple[str, int]]:
        """What `fit` trains, and the update from which on: the head first, then the policy too.

        There are none if no policy learns.
        """
        layers = self._flatten_layers(include_self=False)
        learns = any(
            isinstance(layer, EpisodicMemory) and layer.trainable and layer.policy.learns
            for layer in layers
        )
        if not learns or not self.objectives or self.sample_loss is None:
            return []
        return [("warmup", 0), ("policy", self._warming)][not self._warming :]

    def _learners(self, calls: Sequence[Call]) -> list[int]:
        """Which of the memories are to be trained; says what is wrong if none is."""
        if not calls:
            raise ValueError(
                f"expected an EpisodicMemory in the model {self.name!r}; it called none. For a "
                "model without one use keras.Model"
            )
        if self.sample_loss is None or not self.objectives:
            return []
        return [
            number
            for number, call in enumerate(calls)
            if call.layer.trainable and call.layer.policy.trainable_weights and check_call(call)
        ]


class FunctionalMemoryModel(MemoryModel, Functional):
    """A `MemoryModel` made of inputs and outputs; `MemoryModel(inputs, outputs)` makes one."""


keras.saving.register_keras_serializable("lemn_tf")(FunctionalMemoryModel)


def check_call(call: Call) -> bool:
    """Whether a memory has anything to learn in these streams; raises if it cannot."""
    if not call.fresh:
        raise ValueError(
            f"the memory {call.layer.name!r} was called with an initial_state: expected streams "
            "that begin with an empty memory while training"
        )
    steps, slots = call.vectors.shape[1], call.returned[1].ids.shape[-1] - 1
    if steps is None:
        raise ValueError(
            f"the streams of {call.layer.name!r} have no known length: expected batches padded to "
            "one length while training, with a mask (keras.layers.Masking); ragged ones become "
            "such with to_tensor()"
        )
    if steps <= slots:
        warnings.warn(
            f"streams of {steps} items fit into the {slots} slots of {call.layer.name!r}: nothing "
            "is ever evicted, so its policy learns nothing from them",
            stacklevel=2,
        )
        return False
    return True


class Stream(NamedTuple):
    """What a memory read, with padding at the end.

    Attributes:
        items: nest of `[B, T, ...]`.
        vectors: `[B, T, D]`.
        decisions: of `[B, T, ...]`.
        length: `[B]` int32.
    """

    items: Nest
    vectors: tf.Tensor
    decisions: Decision
    length: tf.Tensor

    @property
    def steps(self) -> int:
        """T, with padding."""
        return self.vectors.shape[1]

    @classmethod
    def of(cls, call: Call) -> Stream:
        """The stream of a call, wherever its padding stood."""
        nest = (call.items, call.vectors, call.returned[1])
        if call.mask is None:
            return cls(*nest, tf.fill(call.vectors.shape[:1], call.vectors.shape[1]))
        order = tf.argsort(tf.cast(~call.mask, tf.int32), axis=1, stable=True)
        nest = tf.nest.map_structure(lambda leaf: tf.gather(leaf, order, batch_dims=1), nest)
        length = tf.reduce_sum(tf.cast(call.mask, tf.int32), axis=1)
        items, vectors, decisions = nest
        # After the end there is no newcomer: the id that stands there belongs to no item.
        return cls(items, vectors, decisions, length)


class Lesson:
    """What one memory of a model can learn from one batch.

    Args:
        model, x, y, weight: the model and the batch.
        y_pred: what it answered.
        calls: of its memories.
        number: which of them learns.
    """

    def __init__(self, model: MemoryModel, x, y, weight, y_pred, calls, number: int):
        self.model, self.y, self.call = model, y, calls[number]
        self.stream = Stream.of(self.call)
        self.rows = self.stream.vectors.shape[0]
        self.run = behind.behind(model, x, calls, number)
        self.ask_at = self.stream.length[:, None]
        self.along = None
        if self.call.ask_at is not None:
            self.ask_at = tf.cast(self.call.ask_at, tf.int32)
            self.along = self.ask_at.shape[1]
        self.kept = self._kept()
        self.losses = self._question_losses(y_pred, 1)[:, 0]
        self.scale = tf.stop_gradient(model.sample_loss.scale_of(self.losses))
        self.weight = self._weight(weight)
        self.scores = self.call.layer.replay(
            self.stream.vectors, self.stream.decisions, self.call.seed
        )

    def _kept(self) -> tf.Tensor:
        held = self.call.returned[0]
        return held.ids if self.along else held.ids[:, None]

    @functools.cached_property
    def fixed(self) -> bool:
        """Whether what comes behind the memory needs a fixed number of slots."""
        slots, name = self.kept.shape[-1], self.call.layer.name
        wider = tf.concat([self.kept, self.kept[..., :1]], axis=-1)
        free, used = self._takes(wider)
        fits = free
        if not free:
            fits, used = self._takes(self.kept)
        if not fits:
            raise ValueError(
                f"cannot run what comes behind the memory {name!r} by itself, not even on memories "
                f"of {slots} slots like the one it had: expected it to answer a batch of any size. "
                "compile(retention='actor-critic', random_memories=0) does not need that"
            )
        if not used:
            raise ValueError(
                f"nothing uses the memory {name!r}: expected an output that has a loss to depend "
                "on what it returns"
            )
        if not free:
            behind.warn_fixed(name, slots)
        return not free

    def _takes(self, kept: tf.Tensor) -> tuple[bool, bool]:
        """Whether such memories can be answered from, and whether the answer depends on them."""
        twice = self._holding(tf.repeat(kept, 2, axis=0), 2)

        def judged(*inputs):
            return self.model.sample_loss.judged(self.y, self.run(*inputs))

        return behind.takes(judged, twice, 2 * self.rows, 2)

    def _holding(self, ids, times: int = 1):
        items = behind.repeat(self.stream.items, times)
        return memories.holding(self.call, items, ids)

    def _question_losses(self, y_pred, times: int) -> tf.Tensor:
        """`[B, times, Q]`: the loss of each answer, for `times` memories per row."""
        y = behind.repeat(self.y, times)
        losses = self.model.sample_loss(y, y_pred, self.along)
        return tf.reshape(losses, [self.rows, times, self.along or 1])

    def _weight(self, given) -> tf.Tensor:
        """`[B, Q]`: how much each question counts."""
        weight = tf.cast(self.ask_at > 0, tf.float32)
        for part in tf.nest.flatten(given):
            if part is not None:
                part = tf.cast(part, tf.float32)
                part = tf.reshape(part, [self.rows, -1])
                weight *= part if part.shape[1] in (1, weight.shape[1]) else part[:, :1]
        return weight

    def random_loss(self, share, seed) -> tf.Tensor:
        """The loss of answers from random memories."""
        steps, slots = self.stream.steps, self.kept.shape[-1]
        if self.fixed:
            ids = memories.random_memories(self.ask_at, steps, slots, (1.0, 1.0), seed)
        else:
            most = min(steps, max(8 * slots, 64))
            ids = memories.random_memories(self.ask_at, steps, most, share, seed)
        y_pred = self.run(self._holding(ids), 1, True)
        losses = self._question_losses(y_pred, 1)[:, 0] * self.weight
        return tf.reduce_mean(losses)

    def rollout(self, critic, variants: int, seed) -> Rollout:
        """What happened, for the objectives."""
        worth = self.model.sample_loss.worth(tf.stop_gradient(self.losses), self.scale)
        steps = self.stream.steps

        def ask(ids):  # [B, V, Q, M]
            times = ids.shape[1]
            ids = tf.reshape(ids, [self.rows * times, *ids.shape[2:]])
            y_pred = self.run(self._holding(ids, times), times, False)
            losses = self._question_losses(y_pred, times)
            return self.model.sample_loss.worth(losses, self.scale)

        def flipped():
            tried = counterfactuals.items_to_try(
                self.kept[:, -1], self.stream.length, steps, variants, seed
            )
            found = counterfactuals.flip(ask, self.kept, worth, tried, steps, self.fixed)
            return tf.stop_gradient(found)

        values = None if critic is None else tf.squeeze(critic(self.scores.features), -1)
        return Rollout(
            decisions=self.stream.decisions,
            valid=tf.sequence_mask(self.stream.length, steps),
            logits=tf.cast(self.scores.logits, tf.float32),
            values=values,
            ask_at=self.ask_at,
            weight=self.weight,
            kept=self.kept,
            right=None,
            probability=worth,
            flipped=flipped,
            entropy=0.0,
        )
