"""The adapter to TF-Agents against the Gymnasium environment."""

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.drivers import dynamic_step_driver
from tf_agents.policies import random_tf_policy
from tf_agents.trajectories import time_step as ts

from lemn_tf.agents.maze_environment import MazeEnvironment
from lemn_tf.mazes import Rules, imaze_world

ROWS = 5


@pytest.fixture(scope="module")
def world():
    return imaze_world([4], rules=Rules(-0.04, 12))


def test_it_steps_as_the_tables_say(world):
    environment = MazeEnvironment(world, ROWS, seed=3)
    step = tf.function(environment.step)
    now = environment.reset()
    assert (now.step_type.numpy() == ts.StepType.FIRST).all()
    pose, steps = environment.pose.numpy(), np.zeros(ROWS, int)
    assert np.isin(pose, world.spawn).all()
    generator, ended = np.random.default_rng(0), 0
    for _ in range(60):
        np.testing.assert_array_equal(now.observation, world.rgb[world.frame[pose]])
        last = now.is_last().numpy()
        action = np.where(generator.random(ROWS) < 0.7, 0, generator.integers(3, size=ROWS))
        now = step(tf.constant(action, tf.int32))
        new = environment.pose.numpy()
        for row in range(ROWS):
            if last[row]:  # a new episode
                assert new[row] in world.spawn
                assert now.is_first()[row]
                assert now.reward[row] == 0
                steps[row] = 0
                continue
            steps[row] += 1
            assert new[row] == world.next[pose[row], action[row]]
            assert now.reward[row] == world.reward[new[row]]
            done = world.done[new[row]]
            assert bool(now.is_last()[row]) == bool(done or steps[row] == 12)
            assert now.discount[row] == (0.0 if done else 1.0)
            ended += int(now.is_last()[row])
        pose = new
    assert ended > 5


def test_drivers_of_tf_agents_can_drive_it(world):
    environment = MazeEnvironment(world, ROWS)
    policy = random_tf_policy.RandomTFPolicy(
        environment.time_step_spec(), environment.action_spec()
    )
    seen = []
    driver = dynamic_step_driver.DynamicStepDriver(
        environment, policy, [lambda step: seen.append(step.observation.shape)], num_steps=20
    )
    final, _ = driver.run()
    assert final.observation.shape == (ROWS, 32, 32, 3)
    assert seen
    assert environment.current_time_step().observation.shape == (ROWS, 32, 32, 3)


def test_starts_are_drawn_evenly(world):
    environment = MazeEnvironment(world, 400, seed=1)
    environment.reset()
    first = environment.pose.numpy()
    counts = [np.sum(first == pose) for pose in world.spawn.reshape(-1)]
    assert sum(counts) == 400
    assert min(counts) > 20
    environment.reset()
    assert (environment.pose.numpy() != first).any()


def test_no_walkers_are_refused(world):
    with pytest.raises(ValueError, match="expected at least one game, got batch_size=0"):
        MazeEnvironment(world, 0)
