"""Agents as they are exported: what they observe goes in, what they do comes out."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from lemn_tf.export.servable import Servable, Specs, Tensors
from lemn_tf.export.signatures import record
from lemn_tf.memory import MemoryState
from lemn_tf.navigation.agent import MemoryAgent

OBSERVATION = "observation"
"""The name of what is observed; parts of a dict or tuple follow it after `__`."""


def agent_servable(agent: MemoryAgent) -> Servable:
    """An agent to be exported: signatures `initial_state` and `act`.

    Args:
        agent: plays as its temperature says; a row alone does what that row does in a batch.
    """
    item = agent.reader.eyes.item

    def act(state: MemoryState, given: Tensors) -> tuple[MemoryState, Tensors]:
        move, after = agent.consider(tf.nest.pack_sequence_as(item, list(given.values())), state)
        done = {
            "action": move.action,
            "probabilities": tf.nn.softmax(move.logits),
            "value": move.value,
            "attention": move.attention,
        }
        return after, done | record(move.decision)

    carried = tf.nest.map_structure(
        lambda x: tf.TensorSpec(x.shape[1:], x.dtype), agent.initial_carry(1)
    )
    kind = {"reader": agent.settings["reader"], "actions": agent.reader.actions}
    return Servable(
        memory=agent.memory,
        entry=item,
        item=named(item),
        question={},
        encode=None,
        answer=None,
        layers=(agent,),
        identity={"agent": type(agent).__name__, **kind, "temperature": agent.temperature},
        act=act,
        stream=carried,
        facts={**kind, "temperature": agent.temperature},
    )


def named(item: Any, name: str = OBSERVATION) -> Specs:
    """The parts of an observation by plain names, in the order of `tf.nest.flatten`.

    Example:

    >>> list(named({"card": tf.TensorSpec([]), "at": (tf.TensorSpec([2]), tf.TensorSpec([]))}))
    ['observation__at__0', 'observation__at__1', 'observation__card']
    """
    if isinstance(item, tf.TensorSpec):
        return {name: item}
    parts = sorted(item.items()) if isinstance(item, dict) else enumerate(item)
    found: Specs = {}
    for key, part in parts:
        found |= named(part, f"{name}__{key}")
    return found
