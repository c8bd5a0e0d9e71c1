"""Driven: trains an agent on what TF-Agents' own drivers collect, batch by batch.

    agent = ActorCriticAgent(model, advantage="gae", item=item)
    model.compile(optimizer, retention=agent.objectives, agent=Driven(agent, model))
    model.fit(episodes)

`fit` works as usual, with its callbacks and checkpoints. But a driver reads the streams of a batch
in a `StreamEnvironment`, step by step, instead of the memory layer in one loop.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf
from tf_agents.agents import tf_agent
from tf_agents.drivers import dynamic_step_driver
from tf_agents.replay_buffers import tf_uniform_replay_buffer

from lemn_tf.agents.actor_critic import ActorCriticAgent
from lemn_tf.agents.environment import KEYS, StreamEnvironment
from lemn_tf.episode import Episode
from lemn_tf.model import StreamReader


class Game(NamedTuple):
    """Environment, driver and buffer for batches of one shape."""

    environment: StreamEnvironment
    buffer: tf_uniform_replay_buffer.TFUniformReplayBuffer
    driver: dynamic_step_driver.DynamicStepDriver


class Driven:
    """An agent that learns from what a driver collects.

    Args:
        agent: the one to train.
        model: the agent's model.
    """

    def __init__(self, agent: ActorCriticAgent, model: StreamReader):
        self.agent, self.model = agent, model
        self._games: dict[Any, Game] = {}

    def train(self, episode: Episode) -> tf_agent.LossInfo:
        """Reads the streams of a batch, and learns from what was collected."""
        game = self._game(episode)
        game.environment.load(episode)
        game.buffer.clear()
        game.driver.run(game.environment.reset())
        rows = game.environment.batch_size
        experience = tf.nest.map_structure(
            lambda leaf: tf.ensure_shape(leaf, [rows, *leaf.shape[1:]]), game.buffer.gather_all()
        )
        return self.agent.train(self.agent.lived(experience, episode))

    def _game(self, episode: Any) -> Game:
        """The game for batches of this shape, set up once."""
        leaves = tf.nest.flatten({key: episode[key] for key in KEYS})
        shape = tuple(tuple(leaf.shape) for leaf in leaves)
        if shape not in self._games:
            with tf.init_scope():
                self._games[shape] = self._set_up(episode)
        return self._games[shape]

    def _set_up(self, episode: Any) -> Game:
        blank = {
            key: tf.nest.map_structure(lambda leaf: tf.zeros(leaf.shape, leaf.dtype), episode[key])
            for key in KEYS
        }
        rows, steps = tf.nest.flatten(episode["items"])[0].shape[:2]
        blank["length"] = tf.fill([rows], steps)
        environment = StreamEnvironment(
            blank, self.model, rows, slots=self.model.training_slots[0], rewarding=False
        )
        buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
            self.agent.collect_data_spec, rows, max_length=2 * steps + 2
        )
        driver = dynamic_step_driver.DynamicStepDriver(
            environment, self.agent.collect_policy, [buffer.add_batch], num_steps=rows * steps
        )
        return Game(environment, buffer, driver)
