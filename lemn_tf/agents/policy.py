"""EvictionPolicy: a model's retention policy as a policy of TF-Agents."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tensorflow_probability as tfp
from tf_agents.policies import tf_policy
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import policy_step
from tf_agents.trajectories import time_step as ts

from lemn_tf import memory
from lemn_tf.model import StreamReader
from lemn_tf.retention.base import Cells
from lemn_tf.retention.decision import NEGLIGIBLE
from lemn_tf.streams import take

Nest = Any


class EvictionPolicy(tf_policy.TFPolicy):
    """Gives each candidate's probability of leaving, from what a `StreamEnvironment` shows.

    What the retention policy carries for each entry is the policy's state here. TF-Agents fixes
    the state before the action is drawn, so it holds all N + 1 candidates, each with its id, and
    the next step takes those that are still there. So it is right even if the environment ignored
    the action. A policy without carry has no state.

    Args:
        model: its memory's policy decides.
        time_step_spec, action_spec: of the environment.

    State:
        `{"ids": [B, N + 1], "carry": nest of [B, N + 1, ...]}`, or `()`.
    """

    def __init__(
        self,
        model: StreamReader,
        time_step_spec: ts.TimeStep,
        action_spec: tensor_spec.BoundedTensorSpec,
    ):
        policy = model.memory.policy
        if policy.clairvoyant or policy.listens:
            raise ValueError(
                f"expected a policy that needs only the candidates; got {policy.name!r}, which "
                "also needs to be told the future or what the reader attends to"
            )
        self._model = model
        self._model_variables = [weight.value for weight in model.weights]
        places = time_step_spec.observation["ids"].shape[0]
        carry = tf.nest.map_structure(
            lambda spec: tf.TensorSpec([places, *spec.shape], spec.dtype), policy.carry_spec()
        )
        state: Any = ()
        if tf.nest.flatten(carry):
            state = {"ids": tf.TensorSpec([places], tf.int64), "carry": carry}
        super().__init__(
            time_step_spec, action_spec, policy_state_spec=state, name="EvictionPolicy"
        )

    def _variables(self):
        return self._model_variables

    def _get_initial_state(self, batch_size):
        lead = [] if batch_size is None else [batch_size]
        state = tf.nest.map_structure(
            lambda spec: tf.zeros([*lead, *spec.shape], spec.dtype), self.policy_state_spec
        )
        return {**state, "ids": state["ids"] + memory.EMPTY} if state else ()

    def _distribution(self, time_step, policy_state):
        observation = time_step.observation
        cells = self.cells(observation)
        scores = self._model.memory.policy(cells, carried(policy_state, cells.ids))
        after = {"ids": cells.ids, "carry": scores.carry} if policy_state else ()
        choice = choices(scores.logits, observation["allowed"])
        return policy_step.PolicyStep(choice, after)

    def cells(self, observation: dict[str, tf.Tensor]) -> Cells:
        """What is observed, as a retention policy sees it; any leading dimensions."""
        ids = observation["ids"]
        vectors = self._model.memory.encode(observation["entries"])
        return Cells(vectors, ids, clock=ids[..., -1] + 1)


def choices(logits: tf.Tensor, allowed: tf.Tensor) -> tfp.distributions.Categorical:
    """The distribution of who leaves, `[..., N + 1]` logits, among those who may."""
    logits = tf.where(allowed, tf.cast(logits, tf.float32), NEGLIGIBLE)
    return tfp.distributions.Categorical(logits=logits, dtype=tf.int32)


def carried(state: Nest, ids: tf.Tensor) -> Nest:
    """The carry of the candidates with these ids, `[B, N + 1]`; zero for those not seen before."""
    if not state:
        return ()
    same = (ids[:, :, None] == state["ids"][:, None]) & (ids != memory.EMPTY)[..., None]
    known, place = tf.reduce_any(same, axis=-1), tf.argmax(tf.cast(same, tf.int32), axis=-1)
    return memory.blanked(take(state["carry"], place), ~known)
