"""StreamEnvironment: TF-Agents' specs and drivers, and rewards against plain lists."""

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.drivers import dynamic_episode_driver, dynamic_step_driver
from tf_agents.metrics import tf_metrics
from tf_agents.policies import random_tf_policy
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step as ts
from tf_agents.utils import nest_utils

from lemn_tf.agents import StreamEnvironment


def simulate(arrays, row, actions, slots, probability):
    """One stream over plain lists: rewards, and the ids in memory after each step."""
    held, rewards, memories, action = [], [], [], iter(actions)
    for t in range(arrays["length"][row]):
        held.append(t)
        wish = next(action)
        if len(held) > slots:
            del held[wish]
        reward = 0.0
        for q, when in enumerate(arrays["ask_at"][row]):
            if when == t + 1:
                logits = np.zeros(8)
                for i in held:
                    if arrays["items"][row, i, 0] == arrays["questions"][row, q, 0]:
                        logits[arrays["items"][row, i, 1]] += 3.0
                answer = arrays["answers"][row, q]
                if probability:
                    reward += np.exp(logits[answer]) / np.exp(logits).sum()
                else:
                    reward += 1.0 if np.argmax(logits) == answer else -1.0
        rewards.append(reward)
        memories.append(list(held))
    return rewards, memories


@pytest.mark.parametrize("reward", ["sign", "probability"])
def test_rewards_and_memories_of_a_scripted_policy(streams, make_model, reward):
    arrays = streams(5, lengths=(6, 4, 2, 5))
    environment = StreamEnvironment(arrays, make_model(), 2, reward)
    step = tf.function(environment.step, autograph=False)
    generator = np.random.default_rng(1)
    now = environment.reset()
    running, nexts, seen = [0, 1], 2, []
    played = {0: [], 1: []}
    for _ in range(24):
        action = generator.integers(0, 3, 2)
        before, now = now, step(tf.constant(action, tf.int32))
        for b in range(2):
            assert before.observation["stream"][b] == running[b]
            if before.is_last()[b]:
                assert now.is_first()[b]
                assert now.reward[b] == 0.0
                running[b], nexts, played[b] = nexts, (nexts + 1) % 5, []
                continue
            played[b].append((action[b], float(now.reward[b]), now.observation["ids"][b].numpy()))
            assert bool(now.is_last()[b]) == (len(played[b]) == arrays["length"][running[b]])
            assert now.discount[b] == (0.0 if now.is_last()[b] else 1.0)
            if now.is_last()[b]:
                seen.append((running[b], played[b]))
    assert {row for row, _ in seen} == set(range(5))
    for row, moves in seen:
        actions, got, ids = zip(*moves, strict=True)
        rewards, memories = simulate(arrays, row, actions, 2, reward == "probability")
        np.testing.assert_allclose(got, rewards, atol=1e-6)
        for t, (shown, expected) in enumerate(zip(ids, memories, strict=True)):
            assert [i for i in shown[:-1] if i >= 0] == expected
            assert shown[-1] == (t + 1 if t + 1 < len(moves) else -1)


def test_candidates_and_rules(streams, make_model):
    arrays = streams(2)
    environment = StreamEnvironment(arrays, make_model(), 2)
    now = environment.reset()
    assert now.observation["ids"].numpy().tolist() == [[-1, -1, 0]] * 2
    np.testing.assert_array_equal(now.observation["entries"][:, -1], arrays["items"][:, 0])
    assert now.observation["allowed"].numpy().tolist() == [[True, False, False]] * 2
    for _ in range(2):  # while memory fills, whatever the action
        now = environment.step(tf.constant([2, 2]))
    assert now.observation["ids"].numpy().tolist() == [[0, 1, 2]] * 2
    assert now.observation["allowed"].numpy().all()
    now = environment.step(tf.constant([0, 2]))
    assert now.observation["ids"].numpy().tolist() == [[1, 2, 3], [0, 1, 3]]
    np.testing.assert_array_equal(now.observation["entries"][1], arrays["items"][1, [0, 1, 3]])


def test_time_steps_meet_their_specs(streams, make_model):
    environment = StreamEnvironment(streams(3, lengths=(3, 2)), make_model(), 2)
    now = environment.current_time_step()  # begins by itself
    assert now.is_first().numpy().all()
    tf.nest.map_structure(np.testing.assert_array_equal, now, environment.current_time_step())
    for _ in range(9):
        nest_utils.assert_matching_dtypes_and_inner_shapes(
            now, environment.time_step_spec(), environment, "time step", "spec"
        )
        assert nest_utils.is_batched_nested_tensors(now, environment.time_step_spec())
        action = tensor_spec.sample_bounded_spec(environment.action_spec(), outer_dims=[2])
        now = environment.step(action)
        tf.nest.map_structure(np.testing.assert_array_equal, now, environment.current_time_step())
    assert isinstance(environment.time_step_spec(), ts.TimeStep)


def test_the_first_step_of_all_begins(streams, make_model):
    environment = StreamEnvironment(streams(3), make_model(), 3)
    assert environment.step(tf.constant([0, 1, 2])).is_first().numpy().all()
    assert environment.step(tf.constant([0, 1, 2])).is_mid().numpy().all()


def test_runs_under_drivers(streams, make_model):
    environment = StreamEnvironment(streams(7, lengths=(6, 4, 2)), make_model(), 3)
    policy = random_tf_policy.RandomTFPolicy(
        environment.time_step_spec(), environment.action_spec()
    )
    steps, episodes = tf_metrics.EnvironmentSteps(), tf_metrics.NumberOfEpisodes()
    returned = tf_metrics.AverageReturnMetric(batch_size=3)
    observers = [steps, episodes, returned]
    driver = dynamic_step_driver.DynamicStepDriver(environment, policy, observers, num_steps=30)
    tf.function(driver.run, autograph=False)()
    assert 30 <= int(steps.result()) <= 32
    assert int(episodes.result()) >= 30 // 6
    assert -2.0 <= float(returned.result()) <= 2.0
    before = int(episodes.result())
    driver = dynamic_episode_driver.DynamicEpisodeDriver(
        environment, policy, observers, num_episodes=4
    )
    tf.function(driver.run, autograph=False)()
    assert int(episodes.result()) >= before + 4


def test_errors_say_what_was_expected(streams, make_model):
    arrays, model = streams(2), make_model()
    with pytest.raises(ValueError, match="'sign' or 'probability'; got 'label'"):
        StreamEnvironment(arrays, model, reward="label")
    with pytest.raises(ValueError, match="ask_at missing"):
        StreamEnvironment({k: v for k, v in arrays.items() if k != "ask_at"}, model)
    with pytest.raises(ValueError, match="at least one item; got 2 streams, the shortest of 0"):
        StreamEnvironment({**arrays, "length": np.array([3, 0])}, model)
