"""MemoryAgent: acts in a world by what it observes and what it chose to remember.

At each step the current observation x_t is the context, the memory M_t holds N earlier ones, and
two things are chosen at once: what to do, and which of the N + 1 observations (the slots and x_t)
to forget.

    M_t, x_t --> reader --> action, value          M_t, x_t --> retention policy --> M_{t+1}

So x_t is read with before it is stored: it is not in the memory that its own step reads, as in Oh
et al. (2016), whose memory also holds past frames only. What an agent knows is a `MemoryState`:
observations, what its policy carries for each, and, as the `stream`, what a recurrent reader
carries. It goes in and comes out of every step:

    state = agent.initial_state(batch)
    while ...:
        action, state, decision = agent.act(observation, state)
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from lemn_tf import retention
from lemn_tf.layer import EpisodicMemory
from lemn_tf.memory import MemoryState
from lemn_tf.readers.base import WithReader
from lemn_tf.readers.mqn import FRMQN, LSTM, MQN, Glance
from lemn_tf.readers.when import When
from lemn_tf.retention import Decision
from lemn_tf.retention.base import Cells
from lemn_tf.retention.chance import gumbel

READERS = {"mqn": MQN, "frmqn": FRMQN, "lstm": LSTM}
"""The readers by name."""
PLAYED = (2018, 4)
"""Seed of the actions of an agent that plays with a temperature: a game can be played again."""
Nest = Any


class Views(NamedTuple):
    """What observations `[...]` contribute, whatever is made of them.

    Attributes:
        query: `[..., Q]`, the reader's context, or what the observation adds to it.
        codes: `[..., 2 units]`, key and value.
        vectors: `[..., width]`, e: what the retention policy sees.
    """

    query: tf.Tensor
    codes: tf.Tensor
    vectors: tf.Tensor


class Move(NamedTuple):
    """What an agent makes of one step, `[B, ...]`.

    Attributes:
        action: int32, what it does.
        logits: `[B, A]`, of the actions.
        value: the return that it expects.
        attention: `[B, N]`, what it read.
        decision: what it forgets.
    """

    action: tf.Tensor
    logits: tf.Tensor
    value: tf.Tensor
    attention: tf.Tensor
    decision: Decision


@keras.saving.register_keras_serializable("lemn_tf")
class RetentionView(WithReader):
    """e = W v + b: the memory's value vector, narrowed for the retention policy.

    Args:
        reader: gives the value vectors.
        width: of e.
    """

    def __init__(self, reader: MQN, width: int = 32, **kwargs):
        super().__init__(reader, **{"autocast": False, **kwargs})
        self.width = width
        self.narrow = keras.layers.Dense(width, name="narrow")
        self.narrow.build((None, reader.units))
        self.built = True

    def of_codes(self, codes: tf.Tensor) -> tf.Tensor:
        """From the reader's codes `[..., 2 units]`, where they are at hand."""
        return self.narrow(self.reader.vectors(codes))

    def call(self, observations):
        return self.of_codes(self.reader.encode(observations))

    def get_config(self):
        return {**super().get_config(), "width": self.width}


@keras.saving.register_keras_serializable("lemn_tf")
class MemoryAgent(keras.Model):
    """Eyes, a memory of observations with a retention policy, a reader, action and value.

    Args:
        eyes: layer from observations to features, with a `width` and the spec of one `item`, such
            as `lemn_tf.navigation.observations.ObservationEncoder`.
        actions: how many there are.
        reader: "mqn", "frmqn", or, to compare with, "lstm", which does not read its memory.
        slots: N in the paper.
        policy: the retention policy: a name, such as "st-lemn" or "fifo", or an object.
        units: width of context, keys and values.
        width: of what the retention policy sees of an observation.
        hidden: width of h, for policies found by name that have one; default a quarter of `width`.
        temperature: how it plays when it is not learning: actions drawn from
            softmax(logits / temperature), 0 for the likeliest. What to forget is never drawn then.
        dated: whether the reader can tell when an entry was seen; see `readers.When`.
        acted: how many of its last actions the reader is told.

    Call arguments:
        inputs: `(observations [B, ...], MemoryState)`.

    Returns:
        A `Glance` at the memory: output, attention, and what the reader carries on.

    Example:

    >>> from lemn_tf.navigation.observations import ObservationEncoder
    >>> agent = MemoryAgent(ObservationEncoder({"kind": "discrete", "size": 4}), 2, slots=3)
    >>> state = agent.initial_state(batch=1)
    >>> for card in (3, 1, 2, 0, 1):
    ...     action, state, decision = agent.act(tf.constant([card]), state)
    >>> state.entries.shape, action.shape
    (TensorShape([1, 3]), TensorShape([1]))
    """

    def __init__(
        self,
        eyes: keras.layers.Layer,
        actions: int,
        reader: str = "mqn",
        slots: int = 4,
        policy: str | retention.RetentionPolicy = "st-lemn",
        units: int = 64,
        width: int = 32,
        hidden: int | None = None,
        temperature: float = 0.0,
        dated: bool = True,
        acted: int = 0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if not temperature >= 0:
            raise ValueError(f"expected a temperature of at least 0, got {temperature}")
        if reader not in READERS:
            raise ValueError(f"expected a reader {', '.join(READERS)}, got {reader!r}")
        options = {"hidden": hidden} if "hidden" in retention.find(policy).options() else {}
        self.reader = READERS[reader](units, actions, eyes, name=reader)
        view = RetentionView(self.reader, width, name="view")
        found = retention.get(policy, **(options if hidden else {}))
        if found.clairvoyant:
            raise ValueError("expected a policy that an agent can follow; got the clairvoyant one")
        self.settings: dict[str, Any] = {
            "actions": actions,
            "reader": reader,
            "slots": slots,
            "policy": policy if isinstance(policy, str) else _plain(found),
            "units": units,
            "width": width,
            "hidden": hidden,
            "temperature": temperature,
            "dated": dated,
            "acted": acted,
        }
        self.memory = EpisodicMemory(slots, found, view, name="memory")
        self.critic = keras.layers.Dense(1, dtype="float32", name="critic")
        self.when = When(units, name="when") if dated else None
        self.past = None
        if acted:
            width = self.reader.query_widths * units
            self.past = keras.layers.Dense(
                width, use_bias=False, kernel_initializer="zeros", name="past"
            )
            self.past.build((None, acted * actions))
        with tf.init_scope():
            self.memory.initial_state(1, eyes.item)
            self.critic.build((None, units))
        self.view = view
        if not self.learns:  # rules see no vectors
            view.narrow.trainable = False
        self.built = True

    @property
    def learns(self) -> bool:
        """Whether the retention policy has anything to train."""
        return self.memory.policy.learns

    @property
    def temperature(self) -> float:
        """How it plays; see the class."""
        return self.settings["temperature"]

    # -- acting -----------------------------------------------------------------------------------

    def initial_state(self, batch: int | tf.Tensor) -> MemoryState:
        """What the agent knows before the first step of each of `batch` episodes: nothing."""
        state = self.memory.initial_state(batch)
        return state._replace(stream=self.initial_carry(batch))

    def initial_carry(self, batch: int | tf.Tensor) -> Any:
        """What the reader carries before the first step, and that nothing was done before it."""
        carry = self.reader.initial_carry(batch)
        if self.past is None:
            return carry
        return *carry, tf.zeros(tf.stack([batch, self.past.kernel.shape[0]]))

    def carry_on(self, carry: Any, action: tf.Tensor) -> Any:
        """What is carried to the next step after the actions `[B]` of this one."""
        if self.past is None:
            return carry
        *carry, done = carry
        now = tf.one_hot(action, self.reader.actions)
        return *carry, tf.concat([now, done[:, : -now.shape[-1]]], axis=-1)

    def act(
        self, observation: Nest, state: MemoryState, seed: tf.Tensor | None = None
    ) -> tuple[tf.Tensor, MemoryState, Decision]:
        """One step of B episodes.

        Args:
            observation: nest of `[B, ...]`.
            state: what `initial_state`, or the step before, returned.
            seed: `[2]` int32 to draw actions and evictions, for learning. None plays: the likeliest
                evictions, and actions as the temperature says, drawn with a seed of their own, the
                same for every row.

        Returns:
            The actions `[B]`, the state after the step, and a `Decision` about what was forgotten.
        """
        move, after = self.consider(observation, state, seed)
        return move.action, after, move.decision

    def consider(
        self, observation: Nest, state: MemoryState, seed: tf.Tensor | None = None
    ) -> tuple[Move, MemoryState]:
        """As `act`, with everything about the step: a `Move`, and the state after it."""
        item = self.reader.eyes.item
        observation = tf.nest.map_structure(lambda s, x: tf.cast(x, s.dtype), item, observation)
        seen = self((observation, state))
        logits = self.reader.actor(seen.output)
        action = self.pick(logits, state.clock, seed)
        # The observation is read with before it is stored.
        attended = self.memory.attend(state, seen.attention)
        after, decision = self.memory.observe(attended, observation, seed=seed)
        value = tf.squeeze(self.critic(seen.output), -1)
        move = Move(action, logits, value, seen.attention, decision)
        return move, after._replace(stream=self.carry_on(seen.carry, action))

    def pick(self, logits: tf.Tensor, clock: tf.Tensor, seed: tf.Tensor | None) -> tf.Tensor:
        """Actions `[B]` by their logits `[B, A]` at the steps `clock` `[B]`; seed as in `act`."""
        if seed is None:
            return draw(logits, clock, tf.constant(PLAYED), self.temperature, alike=True)
        return draw(logits, clock, seed)

    def look(self, observations: Nest) -> Views:
        """What depends on an observation alone, `[..., ...]` -> `Views`, in float32."""
        features = self.reader.see(observations)
        codes = self.reader.codes(features)
        parts = (self.reader.query(features), codes, self.view.of_codes(codes))
        return Views(*(tf.cast(part, tf.float32) for part in parts))

    def recalled(self, codes: tf.Tensor, ids: tf.Tensor, clock: tf.Tensor) -> tf.Tensor:
        """The codes `[..., N, 2 units]` of the slots as the reader gets them at a time."""
        return codes if self.when is None else self.when(codes, ids, clock)

    def call(self, inputs, training: bool = False) -> Glance:
        observations, state = inputs
        codes = self.reader.encode(state.entries)
        return self.glance(self.reader.ask(observations), codes, state)

    def glance(self, query: tf.Tensor, codes: tf.Tensor, state: MemoryState) -> Glance:
        """One look at the memory: as `call`, from the query and codes that are made already."""
        codes = self.recalled(codes, state.ids, state.clock)
        if self.past is None:
            return self.reader.glance(query, codes, state.ids, state.stream)
        *carry, done = state.stream
        seen = self.reader.glance(query + self.past(done), codes, state.ids, tuple(carry))
        return seen._replace(carry=(*seen.carry, done))

    def unroll(
        self, query: tf.Tensor, codes: tf.Tensor, ids: tf.Tensor, action: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """All steps of episodes at once, as `readers.MQN.unroll`.

        Args:
            query, codes: of every step, `[B, T, ...]`, as `look` gave them.
            ids: `[B, T, N + 1]`, of the memory and, last, the current observation.
            action: `[B, T]`, what was done.
        """
        held = ids[..., :-1]
        codes = self.recalled(codes, held, ids[..., -1])
        if self.past is not None:
            done, steps = tf.one_hot(action, self.reader.actions), action.shape[1]
            ago = range(1, self.settings["acted"] + 1)
            past = [tf.pad(done, [[0, 0], [n, 0], [0, 0]])[:, :steps] for n in ago]
            query += self.past(tf.concat(past, axis=-1))
        return self.reader.unroll(query, codes, held)

    # -- others like it ---------------------------------------------------------------------------

    def playing_at(self, temperature: float) -> MemoryAgent:
        """A copy of the agent that plays at another temperature."""
        return self._copy(temperature=temperature)

    def with_memory(self, policy: str | None = None, slots: int | None = None) -> MemoryAgent:
        """The same agent over a memory with another policy that needs no training, or size.

        Args:
            policy: its name; None for the agent's own, weights and all.
            slots: None for the agent's own number.
        """
        slots = slots or self.memory.slots
        if policy is None or policy == self.memory.policy.name:
            return self._copy(slots=slots)
        other = type(self).from_config({**self.get_config(), "slots": slots, "policy": policy})
        if other.learns:
            raise ValueError(f"{policy} is learned: expected a rule to put in its place")
        other.take_after(self)
        return other

    def take_after(self, other: MemoryAgent) -> None:
        """Takes over the weights of an agent that differs in policy or slots only.

        Those of the policy come along if it is the same.
        """
        if self.memory.policy.name == other.memory.policy.name:
            self.set_weights(other.get_weights())
            return
        for name in ("reader", "critic", "when", "past"):
            if getattr(self, name) is not None:
                getattr(self, name).set_weights(getattr(other, name).get_weights())

    def _copy(self, **changes: Any) -> MemoryAgent:
        other = type(self).from_config({**self.get_config(), **changes})
        other.set_weights(self.get_weights())
        return other

    def get_config(self):
        eyes = keras.saving.serialize_keras_object(self.reader.eyes)
        return {**super().get_config(), "eyes": eyes, **self.settings}

    @classmethod
    def from_config(cls, config):
        made = {
            name: keras.saving.deserialize_keras_object(config[name])
            for name in ("eyes", "policy")
            if isinstance(config.get(name), dict)
        }
        return cls(**{**config, **made})


def draw(
    logits: tf.Tensor,
    clock: tf.Tensor,
    seed: tf.Tensor,
    temperature: float = 1.0,
    alike: bool = False,
) -> tf.Tensor:
    """Actions `[B]` drawn from softmax(logits `[B, A]` / temperature); the likeliest if it is 0.

    Args:
        logits: of the actions.
        clock: `[B]`, the steps of the episodes.
        seed: `[2]` int32.
        temperature: how much is left to chance.
        alike: draw in every row as in the first: a row alone is then that row in a batch.
    """
    if temperature:
        logits /= temperature
        places = tf.range(logits.shape[-1], dtype=tf.int64)
        places = tf.broadcast_to(places, tf.shape(logits))
        # Another seed than that of the evictions of the same step.
        logits += gumbel(Cells(logits, places, clock), seed + tf.constant([7919, 0]), alike)
    return tf.argmax(logits, axis=-1, output_type=tf.int32)


def _plain(policy: retention.RetentionPolicy) -> dict:
    """A policy as it can be written to JSON, and comes back from it."""
    return json.loads(json.dumps(keras.saving.serialize_keras_object(policy)))
