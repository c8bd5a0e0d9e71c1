"""The signatures of a served memory: plain names, the batch first in every tensor.

A server keeps nothing. The memory goes in and comes out of every call, as the tensors of
`lemn_tf.memory.to_flat` under their names:

    initial_state(batch)                 -> state
    observe(state, item)                 -> state, evicted, slot, keep
    observe_many(state, items)           -> state, and the three with a time axis
    answer(state, question)              -> what the servable answers
    forget, pin, unpin(state, id)        -> state
    attend(state, attention)             -> state, if the policy listens to the reader (LRU)
    serving_default(sentences, question) -> answer, in one shot
    unknown_words(text)                  -> words that a reader of text does not know

An agent has `initial_state` and, in place of all the others,

    act(state, observation)              -> state, what it does, what it dropped

Each signature that takes or gives a state has a twin, such as `observe_packed`, in which the state
is one string by the name of `state` (`lemn_tf.export.packed`); `pack` and `unpack` convert.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from lemn_tf import memory
from lemn_tf.export.checks import check_inputs, check_state, expect
from lemn_tf.export.packed import Packing
from lemn_tf.export.servable import Servable, Specs, Tensors
from lemn_tf.memory import MemoryState
from lemn_tf.retention.decision import Decision

READS = ("serving_default", "answer", "unknown_words")
"""The signatures that do not give a state."""


class Signature(NamedTuple):
    """One signature.

    Attributes:
        function: from inputs to outputs, both dicts of tensors.
        inputs: spec of each input, batch included.
        about: one line for people.
    """

    function: Callable[[Tensors], Tensors]
    inputs: Specs
    about: str


def flat_signatures(servable: Servable) -> dict[str, Signature]:
    """The signatures with the state as plainly named tensors."""
    signatures = _of_reader(servable) if servable.act is None else _of_agent(servable)
    # One trace of each, which the packed twin calls too.
    return {
        name: s._replace(function=tf.function(s.function, autograph=False))
        for name, s in signatures.items()
    }


def _of_agent(servable: Servable) -> dict[str, Signature]:
    run, batch = _Functions(servable), batched({"batch": tf.TensorSpec([], tf.int32)})
    inputs = batched(servable.state) | batched(servable.item)
    fresh = "what it knows before the first step, once for each element of batch"
    return {  # the first is what a request means that names none
        "act": Signature(run.act, inputs, "one step: what it does, and what it knows after it"),
        "initial_state": Signature(run.initial_state, batch, fresh),
    }


def _of_reader(servable: Servable) -> dict[str, Signature]:
    state = batched(servable.state)
    item, items = batched(servable.item), batched(servable.item, steps=True)
    question = batched(servable.question)
    asked = {name: question[of] for name, of in servable.asked.items()}
    stream = {servable.streams.get(name, f"{name}s"): spec for name, spec in items.items()}
    items = {f"{name}s": spec for name, spec in items.items()}
    run = _Functions(servable)
    batch = batched({"batch": tf.TensorSpec([], tf.int32)})
    one_id = batched({"id": tf.TensorSpec([], tf.int64)})
    signatures = {
        "serving_default": Signature(
            run.one_shot, stream | question, "reads a whole stream and answers, without a state"
        ),
        "initial_state": Signature(
            run.initial_state, batch, "empty memories, one for each element of batch"
        ),
        "observe": Signature(run.observe, state | item | asked, "takes in one item"),
        "observe_many": Signature(
            run.observe_many, state | items | asked, "takes in several items"
        ),
        "answer": Signature(run.answer, state | question, "answers from the memory"),
        "forget": Signature(run.edit(memory.forget), state | one_id, "erases an entry"),
        "pin": Signature(run.edit(memory.pin), state | one_id, "keeps an entry for good"),
        "unpin": Signature(run.edit(memory.unpin), state | one_id, "takes back a pin"),
    }
    if servable.memory.policy.listens:
        slots = batched({"attention": tf.TensorSpec([servable.memory.slots], tf.float32)})
        signatures["attend"] = Signature(
            run.attend, state | slots, "tells the policy what an answer rested on"
        )
    if servable.unknown is not None:
        text = batched({"text": tf.TensorSpec([], tf.string)})
        signatures["unknown_words"] = Signature(
            run.unknown_words, text, "names the words that the model has never seen"
        )
    return signatures


class _Functions:
    """What the signatures do, each from inputs by name to outputs by name."""

    def __init__(self, servable: Servable):
        self.servable, self.state_names = servable, list(servable.state)

    def _read(self, inputs: Tensors) -> MemoryState:
        flat = {name: inputs[name] for name in self.state_names}
        return memory.from_flat(check_state(flat, self.servable))

    def _question(self, inputs: Tensors) -> Tensors:
        return {name: inputs[name] for name in self.servable.question}

    def initial_state(self, inputs: Tensors) -> Tensors:
        return memory.to_flat(self.servable.initial_state(tf.size(inputs["batch"])))

    def act(self, inputs: Tensors) -> Tensors:
        raw = {name: inputs[name] for name in self.servable.item}
        state, done = self.servable.act(self._read(inputs), raw)
        return memory.to_flat(state) | done

    def observe(self, inputs: Tensors) -> Tensors:
        raw = {name: inputs[name] for name in self.servable.item}
        if self.servable.take is None:
            state, record = observe_one(self.servable, self._read(inputs), raw)
        else:  # it may fill several slots
            raw = {name: x[:, None] for name, x in raw.items()}
            state, record = observe_many(
                self.servable, self._read(inputs), raw, self._asked(inputs)
            )
        return memory.to_flat(state) | record

    def observe_many(self, inputs: Tensors) -> Tensors:
        raw = {name: inputs[f"{name}s"] for name in self.servable.item}
        state, record = observe_many(self.servable, self._read(inputs), raw, self._asked(inputs))
        return memory.to_flat(state) | record

    def _asked(self, inputs: Tensors) -> Tensors:
        return {name: inputs[name] for name in self.servable.asked}

    def answer(self, inputs: Tensors) -> Tensors:
        return self.servable.answer(self._read(inputs), self._question(inputs))

    def one_shot(self, inputs: Tensors) -> Tensors:
        streams = self.servable.streams
        raw = {name: inputs[streams.get(name, f"{name}s")] for name in self.servable.item}
        batch = tf.shape(next(iter(raw.values())))[0]
        asked = {name: inputs[of] for name, of in self.servable.asked.items()}
        state, _ = observe_many(self.servable, self.servable.initial_state(batch), raw, asked)
        return self.servable.answer(state, self._question(inputs))

    def edit(self, function: Callable[..., MemoryState]) -> Callable[[Tensors], Tensors]:
        return lambda inputs: memory.to_flat(function(self._read(inputs), inputs["id"]))

    def unknown_words(self, inputs: Tensors) -> Tensors:
        return {"words": self.servable.unknown(inputs["text"])}

    def attend(self, inputs: Tensors) -> Tensors:
        state = self.servable.memory.attend(self._read(inputs), inputs["attention"])
        return memory.to_flat(state)


def packed_signatures(
    servable: Servable, flat: dict[str, Signature], packing: Packing
) -> dict[str, Signature]:
    """The twins of the `flat` signatures, with the state as one string."""
    state_specs = batched(servable.state)
    state = batched({"state": tf.TensorSpec([], tf.string)})

    def names(specs):
        return {name: spec for name, spec in specs.items() if name not in state_specs}

    def twin(function, takes, gives):
        def packed(inputs):
            inputs = dict(inputs)
            if takes:
                inputs |= packing.unpack(inputs.pop("state"))
            outputs = function(inputs)
            if not gives:
                return outputs
            return {"state": packing.pack(outputs)} | names(outputs)

        return packed

    twins = {}
    for name, signature in flat.items():
        takes = "clock" in signature.inputs
        gives = name not in READS
        if takes or gives:
            twins[f"{name}_packed"] = Signature(
                twin(signature.function, takes, gives),
                (state if takes else {}) | names(signature.inputs),
                f"{signature.about}; the state is one string",
            )
    twins["pack"] = Signature(
        lambda inputs: {"state": packing.pack(check_state(inputs, servable))},
        state_specs,
        "turns the state into one string",
    )
    twins["unpack"] = Signature(
        lambda inputs: check_state(packing.unpack(inputs["state"]), servable),
        state,
        "turns the string into a state again; an empty string is a fresh memory",
    )
    return twins


def observe_one(
    servable: Servable, state: MemoryState, item: Tensors
) -> tuple[MemoryState, Tensors]:
    """One item a row `[B, ...]`: the memory after it, and what was decided."""
    taken = servable.taken(state, item, {})
    after, decision = servable.memory.observe(state, taken.entries)
    mask = taken.mask
    if mask is not None:
        after = tf.nest.map_structure(lambda new, old: _where(mask, new, old), after, state)
    return after, record(decision, mask)


def observe_many(
    servable: Servable, state: MemoryState, items: Tensors, asked: Tensors
) -> tuple[MemoryState, Tensors]:
    """Items `[B, T, ...]` in their order: the memory after the last, and every decision.

    Where items may fill several slots, the decisions are those about the slots, `[B, T', ...]`, and
    `slots` tells their texts.
    """
    leaf = next(iter(items.values()))
    some = expect(tf.shape(leaf)[1] > 0, "items: expected at least one step", tf.shape(leaf))
    with tf.control_dependencies([some]):
        items = {name: tf.identity(x) for name, x in items.items()}
    taken = servable.taken(state, items, asked)
    after, decisions = servable.memory(taken.entries, initial_state=state, mask=taken.mask)
    told = record(decisions, taken.mask)
    if servable.take is not None:
        told["slots"] = _where(taken.mask, taken.entries["text"], tf.constant(""))
    return after._replace(stream=taken.stream), told


def record(decision: Decision, mask: tf.Tensor | None = None) -> Tensors:
    """What callers are told; padding evicts nothing (-1), takes no slot (-1), keeps all (1.0)."""
    told = {"evicted": decision.evicted, "slot": decision.slot, "keep": decision.keep}
    if mask is None:
        return told
    blank = {"evicted": memory.EMPTY, "slot": -1, "keep": 1.0}
    return {name: _where(mask, x, tf.constant(blank[name], x.dtype)) for name, x in told.items()}


def _where(mask: tf.Tensor, new: tf.Tensor, old: tf.Tensor) -> tf.Tensor:
    for _ in range(new.shape.rank - mask.shape.rank):
        mask = mask[..., None]
    return tf.where(mask, new, old)


def batched(specs: Specs, steps: bool = False) -> Specs:
    """Specs of one row -> specs with a batch dimension, and a time dimension if `steps`."""
    lead = [None, None] if steps else [None]
    return {name: tf.TensorSpec([*lead, *s.shape], s.dtype, name) for name, s in specs.items()}


def checked(signature: Signature) -> tuple[Callable[..., Tensors], list[tf.TensorSpec]]:
    """The signature as a function of positional tensors, and its named specs, for tf.function."""
    specs = {name: tf.TensorSpec(s.shape, s.dtype, name) for name, s in signature.inputs.items()}

    def function(*tensors):
        inputs = dict(zip(specs, tensors, strict=True))
        return signature.function(check_inputs(inputs, specs))

    return function, list(specs.values())
