"""Reinforcement learning with TF-Agents: the only place that imports it."""

from lemn_tf.agents.actor_critic import ActorCritic, ActorCriticAgent, actor_critic_loss
from lemn_tf.agents.environment import StreamEnvironment
from lemn_tf.agents.policy import EvictionPolicy

__all__ = [
    "ActorCritic",
    "ActorCriticAgent",
    "EvictionPolicy",
    "StreamEnvironment",
    "actor_critic_loss",
]
