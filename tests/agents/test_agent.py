"""ActorCriticAgent: gradients of the fast path, pieces of streams, learning under drivers."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from tf_agents.agents import tf_agent
from tf_agents.drivers import dynamic_episode_driver, dynamic_step_driver
from tf_agents.policies import random_tf_policy
from tf_agents.replay_buffers import tf_uniform_replay_buffer
from tf_agents.trajectories import policy_step, trajectory
from tf_agents.utils import nest_utils

from lemn_tf.agents import ActorCritic, ActorCriticAgent, StreamEnvironment
from lemn_tf.model import StreamReader
from lemn_tf.readers import MemN2N

SEED = tf.constant([1, 2])


def tensors(arrays):
    return {name: tf.constant(array) for name, array in arrays.items()}


def agent_for(environment, model, **options):
    options = {"optimizer": keras.optimizers.Adam(1e-2), **options}
    return ActorCriticAgent(
        model, environment.time_step_spec(), environment.action_spec(), **options
    )


def play(environment, agent, slots_of):
    """A trajectory `[B, T, ...]` in which `slots_of(time step)` leave, until that is None."""
    policy, now, moves = agent.collect_policy, environment.reset(), []
    state = policy.get_initial_state(environment.batch_size)
    distribution = tf.function(policy.distribution, autograph=False)
    while (action := slots_of(now)) is not None:
        step = policy_step.PolicyStep(tf.constant(action, tf.int32), (), ())
        before = policy._maybe_reset_state(now, state)
        state = distribution(now, state).state
        after = environment.step(step.action)
        moves.append(trajectory.from_transition(now, step._replace(info=before), after))
        now = after
    return tf.nest.map_structure(lambda *x: tf.stack(x, axis=1), *moves)


def script(decisions, moves):
    """So many moves of recorded decisions, one stream after the other in each row."""
    left = iter(range(moves))

    def slots_of(now):
        if next(left, None) is None:
            return None
        stream, clock = now.observation["stream"].numpy(), now.observation["ids"][:, -1].numpy()
        return decisions.slot.numpy()[stream, np.maximum(clock, 0)]

    return slots_of


def gradients_of(model, loss):
    with tf.GradientTape() as tape:
        value = loss()
    variables = [v.value for v in model.trainable_variables]
    return value, tape.gradient(value, variables, unconnected_gradients="zero")


def compare(ours, theirs):
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-4)
    for one, other in zip(ours[1], theirs[1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)
    assert sum(float(tf.norm(g)) for g in ours[1]) > 0.1


@pytest.fixture(scope="module")
def reading_model():
    """A model whose reader learns too, so that the joint loss has something to do."""
    keras.utils.set_random_seed(5)
    return StreamReader(MemN2N(8, 2, units=8, hops=2, max_slots=4), 2, "st-lemn")


def fast_path(model, arrays, objective, seed=SEED):
    model.compile("sgd", [objective], on_policy=0.5, on_subsets=0.0, jit_compile=False)
    entropy = tf.constant([objective.entropy])
    return gradients_of(model, lambda: model.losses_of(tensors(arrays), seed, entropy)[0])


def test_same_gradients_as_the_fast_path(streams, reading_model):
    arrays, objective = streams(4), ActorCritic(entropy=0.05)
    decisions, _ = reading_model.act(tensors(arrays), training=True, seed=SEED)
    environment = StreamEnvironment(arrays, reading_model, 4)
    agent = agent_for(environment, reading_model, objective=objective, episodes=arrays)
    experience = play(environment, agent, script(decisions, 6))
    np.testing.assert_array_equal(experience.observation["ids"], decisions.ids)
    ours = gradients_of(reading_model, lambda: agent.loss(experience).loss)
    compare(ours, fast_path(reading_model, arrays, objective))


def test_streams_of_any_length_one_after_the_other_in_a_row(streams, reading_model):
    arrays = streams(3, lengths=(6, 3, 5))
    objective = ActorCritic(entropy=0.05, reward="probability")
    decisions, _ = reading_model.act(tensors(arrays), training=True, seed=SEED)
    environment = StreamEnvironment(arrays, reading_model, 1, "probability")
    agent = agent_for(environment, reading_model, objective=objective, episodes=arrays)
    experience = play(environment, agent, script(decisions, 6 + 1 + 3 + 1 + 5))
    assert int(tf.reduce_sum(tf.cast(experience.is_boundary(), tf.int32))) == 2
    ours = gradients_of(reading_model, lambda: agent.loss(experience).loss)
    compare(ours, fast_path(reading_model, arrays, objective))


def test_part_of_a_stream_starts_from_the_policys_state(streams, make_model):
    arrays, model = streams(2), make_model()
    decisions, _ = model.act(tensors(arrays), training=True, seed=SEED)
    environment = StreamEnvironment(arrays, model, 2)
    agent = agent_for(environment, model)
    experience = play(environment, agent, script(decisions, 6))
    observed, first = experience.observation, experience.is_first()
    states = experience.policy_info
    whole = agent.collect_policy.replay(
        observed, first, tf.nest.map_structure(lambda x: x[:, 0], states)
    )
    part = agent.collect_policy.replay(
        {k: v[:, 3:] for k, v in observed.items()},
        first[:, 3:],
        tf.nest.map_structure(lambda x: x[:, 3], states),
    )
    np.testing.assert_allclose(part.logits, whole.logits[:, 3:], atol=1e-5)
    np.testing.assert_allclose(part.features, whole.features[:, 3:], atol=1e-5)
    replayed = model.memory.replay(model.memory.encode(tf.constant(arrays["items"])), decisions)
    used = decisions.ids >= 0
    np.testing.assert_allclose(whole.logits[used], replayed.logits[used], atol=1e-5)


def test_a_cut_row_goes_by_the_value_of_its_last_step(streams, make_model):
    arrays, model = streams(2), make_model()
    environment = StreamEnvironment(arrays, model, 2)
    agent = agent_for(environment, model, objective=ActorCritic(0.9, 0.8))
    actions = np.random.default_rng(0).integers(0, 3, [5, 2])
    moves = iter([*actions, None])
    whole = play(environment, agent, lambda now: next(moves))
    assert not np.any(whole.is_last())
    info = agent.loss(whole)
    state = tf.nest.map_structure(lambda x: x[:, 0], whole.policy_info)
    scores = agent.collect_policy.replay(whole.observation, whole.is_first(), state)
    values = model.critic(scores.features)[..., 0].numpy()
    rewards, expected = whole.reward.numpy(), 0.0
    for b in range(2):
        errors = rewards[b, :4] + 0.9 * values[b, 1:] - values[b, :4]
        for t in range(4):
            expected += sum((0.9 * 0.8) ** (k - t) * errors[k] for k in range(t, 4)) ** 2 / 2
    np.testing.assert_allclose(info.extra["value_loss"], expected, rtol=1e-4)


def test_trains_on_what_any_policy_collected(streams, make_model):
    """Random actions, also where there is no choice, through a replay buffer in pieces."""
    arrays, model = streams(5, lengths=(6, 4)), make_model()
    environment = StreamEnvironment(arrays, model, 2)
    agent = agent_for(environment, model, episodes=arrays)
    policy = random_tf_policy.RandomTFPolicy(
        environment.time_step_spec(),
        environment.action_spec(),
        info_spec=agent.collect_policy.info_spec,
    )
    buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(agent.collect_data_spec, 2, 32)
    driver = dynamic_step_driver.DynamicStepDriver(
        environment, policy, [buffer.add_batch], num_steps=24
    )
    driver.run()
    pieces = buffer.as_dataset(sample_batch_size=3, num_steps=4).map(
        lambda experience, _: experience
    )
    for experience in pieces.take(3):
        assert nest_utils.is_batched_nested_tensors(
            experience, agent.collect_data_spec, num_outer_dims=2
        )
        info = agent.train(experience)
        assert isinstance(info, tf_agent.LossInfo)
        assert np.isfinite(info.loss)
    assert int(agent.train_step_counter) == 3


def test_clips_the_gradient(streams, make_model):
    arrays, model = streams(2), make_model()
    environment = StreamEnvironment(arrays, model, 2)
    agent = agent_for(
        environment, model, optimizer=keras.optimizers.SGD(1.0), gradient_clipping=1e-3
    )
    actions = np.random.default_rng(0).integers(0, 3, [6, 2])
    moves = iter([*actions, None])
    experience = play(environment, agent, lambda now: next(moves))
    before = [np.array(w) for w in model.trainable_weights]
    agent.train(experience)
    moved = [
        np.sum((np.array(w) - b) ** 2) for w, b in zip(model.trainable_weights, before, strict=True)
    ]
    assert np.sqrt(np.sum(moved)) == pytest.approx(1e-3, rel=1e-2)


def test_learns_to_keep_the_key_under_drivers(streams, make_model):
    arrays, model = streams(256, questions=1), make_model("s-lemn")
    environment = StreamEnvironment(arrays, model, 32)
    agent = agent_for(environment, model, optimizer=keras.optimizers.Adam(2e-2))
    buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(agent.collect_data_spec, 32, 8)
    driver = dynamic_episode_driver.DynamicEpisodeDriver(
        environment, agent.collect_policy, [buffer.add_batch], num_episodes=32
    )

    @tf.function(autograph=False)
    def update():
        buffer.clear()
        driver.run()
        return agent.train(buffer.gather_all()).extra["return"]

    returns = [float(update()) for _ in range(40)]
    assert np.mean(returns[:3]) < 0.0
    assert np.mean(returns[-5:]) > 0.8
    _, kept = model.act(tensors(arrays))  # the policy it taught is the model's own
    assert np.mean(np.any(kept.numpy() == arrays["support"], axis=-1)) > 0.95


def test_needs_something_to_learn(streams, make_model):
    environment = StreamEnvironment(streams(2), make_model(), 2)
    with pytest.raises(ValueError, match="'fifo' has nothing to learn"):
        agent_for(environment, make_model("fifo"))
