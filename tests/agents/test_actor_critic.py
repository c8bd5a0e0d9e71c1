"""ActorCriticAgent: one loss, whether streams are read in the graph or by drivers of TF-Agents."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from tf_agents.agents import tf_agent
from tf_agents.drivers import dynamic_step_driver
from tf_agents.policies import random_tf_policy
from tf_agents.replay_buffers import tf_uniform_replay_buffer
from tf_agents.trajectories import policy_step, trajectory

from lemn_tf.agents import ActorCriticAgent, StreamEnvironment
from lemn_tf.learning import ActorCritic, Hindsight
from lemn_tf.model import StreamReader
from lemn_tf.readers import MemN2N

SEED = tf.constant([1, 2])


def tensors(arrays):
    return {name: tf.constant(array) for name, array in arrays.items()}


def compiled(model, advantage="gae", episodes=None, optimizer=None, **options):
    """An agent, and its model compiled for it."""
    agent = ActorCriticAgent(model, advantage, episodes)
    optimizer = optimizer or keras.optimizers.Adam(2e-2, global_clipnorm=40.0)
    options = {"on_subsets": 0.0, "jit_compile": False, **options}
    model.compile(optimizer, retention=agent.objectives, agent=agent, **options)
    return agent


def play(environment, slots, moves):
    """A trajectory `[B, T, ...]` in which the recorded `slots` leave, stream after stream."""
    now, steps = environment.reset(), []
    for _ in range(moves):
        stream, clock = now.observation["stream"].numpy(), now.observation["ids"][:, -1].numpy()
        step = policy_step.PolicyStep(tf.constant(slots[stream, np.maximum(clock, 0)]), (), ())
        after = environment.step(step.action)
        steps.append(trajectory.from_transition(now, step, after))
        now = after
    return tf.nest.map_structure(lambda *x: tf.stack(x, axis=1), *steps)


@pytest.fixture(scope="module")
def reading_model():
    """A model whose reader learns too, so that the joint loss has something to do."""
    keras.utils.set_random_seed(5)
    return StreamReader(MemN2N(8, 2, units=8, hops=2, max_slots=4), 2, "st-lemn")


def gradients_of(model, loss):
    with tf.GradientTape() as tape:
        value = loss()
    variables = [v.value for v in model.trainable_variables]
    return value, tape.gradient(value, variables, unconnected_gradients="zero")


@pytest.mark.parametrize("advantage", ["gae", "hindsight", "both"])
def test_a_driver_and_a_recorded_rollout_give_the_same_gradients(streams, reading_model, advantage):
    """Streams of several lengths: what a row reads after its first one is left out."""
    model, arrays = reading_model, streams(4, lengths=(6, 3, 5))
    agent = compiled(model, advantage, arrays)
    decisions, _ = model.act(tensors(arrays), training=True, seed=SEED)
    experience = play(StreamEnvironment(arrays, model, 4), decisions.slot.numpy(), 8)
    ours = gradients_of(model, lambda: agent.loss(experience).loss)
    entropy = model.draws()[1]
    recorded = {**tensors(arrays), "decisions": decisions}
    theirs = gradients_of(model, lambda: model.losses_of(recorded, SEED, entropy)[0])
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-4)
    for one, other in zip(ours[1], theirs[1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)
    assert sum(float(tf.norm(g)) for g in ours[1]) > 0.1


def test_the_rewards_that_train_are_the_environments(streams, reading_model):
    model, arrays = reading_model, streams(4)
    agent = compiled(model, "gae", arrays)
    decisions, _ = model.act(tensors(arrays), training=True, seed=SEED)
    experience = play(StreamEnvironment(arrays, model, 4), decisions.slot.numpy(), 6)
    earned = tf.reduce_mean(tf.reduce_sum(experience.reward, axis=1))
    np.testing.assert_allclose(agent.loss(experience).extra["return"], earned, rtol=1e-6)


def test_fit_with_an_agent_is_fit_without(streams, make_model):
    """The agent drives the same updates: without TF-Agents the numbers are the same."""
    weights = []
    for driven in (True, False):
        model, arrays = make_model(), streams(16)
        optimizer = keras.optimizers.SGD(0.1)
        agent = compiled(model, "both", optimizer=optimizer, jit_compile=True, seed=3)
        assert model.agent is agent
        if not driven:
            model.compile(
                keras.optimizers.SGD(0.1),
                retention=(Hindsight(), ActorCritic(entropy=0.0)),
                on_subsets=0.0,
                seed=3,
            )
        data = tf.data.Dataset.from_tensors(tensors(arrays)).repeat(3)
        model.fit(data, verbose=0, shuffle=False)
        if driven:
            assert int(agent.train_step_counter) == 3
        weights.append(model.get_weights())
    for one, other in zip(*weights, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("advantage", [pytest.param("gae", marks=pytest.mark.slow), "hindsight"])
def test_learns_to_keep_the_key_under_drivers(streams, make_model, advantage):
    arrays, model = streams(256, questions=1), make_model("s-lemn")
    environment = StreamEnvironment(arrays, model, 32)
    agent = compiled(model, advantage, arrays, keras.optimizers.Adam(2e-2))
    buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(agent.collect_data_spec, 32, 8)
    driver = dynamic_step_driver.DynamicStepDriver(
        environment, agent.collect_policy, [buffer.add_batch], num_steps=32 * 6
    )

    @tf.function(autograph=False)
    def update():
        buffer.clear()
        environment.reset()
        driver.run()
        return agent.train(buffer.gather_all()).extra.logs["return"]

    returns = [float(update()) for _ in range(40)]
    assert np.mean(returns[:3]) < 0.0
    assert np.mean(returns[-5:]) > 0.7
    _, kept = model.act(tensors(arrays))  # the policy it taught is the model's own
    assert np.mean(np.any(kept.numpy() == arrays["support"], axis=-1)) > 0.95


def test_trains_on_what_any_policy_collected(streams, make_model):
    """Random actions, also where there is no choice."""
    arrays, model = streams(5, lengths=(6, 4)), make_model()
    environment = StreamEnvironment(arrays, model, 2)
    agent = compiled(model, "gae", arrays)
    policy = random_tf_policy.RandomTFPolicy(
        environment.time_step_spec(), environment.action_spec()
    )
    buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(agent.collect_data_spec, 2, 32)
    dynamic_step_driver.DynamicStepDriver(
        environment, policy, [buffer.add_batch], num_steps=12
    ).run()
    info = agent.train(buffer.gather_all())
    assert isinstance(info, tf_agent.LossInfo)
    assert np.isfinite(info.loss)
    assert int(agent.train_step_counter) == 1


def test_the_game_can_be_played_with_vectors(lookup):
    """Items of any kind: here a vector and a number, nested."""
    generator = np.random.default_rng(0)
    arrays = {
        "items": {
            "key": generator.normal(size=[4, 6, 3]).astype(np.float32),
            "value": generator.integers(0, 4, [4, 6, 1]).astype(np.int32),
        },
        "length": np.full([4], 6, np.int32),
        "questions": generator.normal(size=[4, 1, 3]).astype(np.float32),
        "ask_at": np.full([4, 1], 6, np.int32),
        "answers": generator.integers(0, 4, [4, 1]).astype(np.int32),
    }
    model = StreamReader(lookup, 2, "st-lemn")
    model(tf.nest.map_structure(tf.constant, arrays))
    environment = StreamEnvironment(arrays, model, 2)
    agent = compiled(model, "hindsight", arrays)
    buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(agent.collect_data_spec, 2, 8)
    dynamic_step_driver.DynamicStepDriver(
        environment, agent.collect_policy, [buffer.add_batch], num_steps=12
    ).run()
    assert np.isfinite(agent.train(buffer.gather_all()).loss)


def test_errors_say_what_was_expected(streams, make_model):
    with pytest.raises(ValueError, match="'fifo' has nothing to learn"):
        ActorCriticAgent(make_model("fifo"))
    with pytest.raises(
        ValueError, match="unknown advantage 'best'; known are hindsight, gae, both"
    ):
        ActorCriticAgent(make_model(), "best")
    model, arrays = make_model(), streams(2)
    agent = ActorCriticAgent(model, "gae", item=tf.TensorSpec([2], tf.int32))
    with pytest.raises(ValueError, match="not compiled with this agent's objectives"):
        agent.train(tensors(arrays))
    model.compile("sgd", retention=agent.objectives, agent=agent)
    decisions, _ = model.act(tensors(arrays), training=True, seed=SEED)
    experience = play(StreamEnvironment(arrays, model, 2), decisions.slot.numpy(), 6)
    with pytest.raises(ValueError, match="needs episodes="):
        agent.train(experience)
