"""The vector environment against single ones, agent by agent."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from lemn_tf.mazes import MazeEnv, MazeVectorEnv, Rules, build, imazes, random_mazes


@pytest.fixture(scope="module")
def world():
    return build([*imazes([5, 7]), *random_mazes(3)], Rules(limit=20))


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_the_vector_env_is_many_single_ones(world, mode):
    """Every agent's stream, replayed in a single environment from the starts it drew."""
    envs = MazeVectorEnv(world, num_envs=6, autoreset_mode=mode)
    rng = np.random.default_rng(1)
    frames, info = envs.reset(seed=5)
    singles = [MazeEnv(world) for _ in range(6)]
    over = np.zeros(6, bool)

    def start(agent, info):
        pose = info["pose"][agent]
        options = {"maze": int(world.maze[pose]), "heading": int(world.heading[pose])}
        return singles[agent].reset(options=options)[0]

    for agent in range(6):
        np.testing.assert_array_equal(frames[agent], start(agent, info))
    endings = 0
    for _ in range(120):
        actions = rng.choice(3, size=6, p=[0.6, 0.2, 0.2])
        frames, rewards, terminated, truncated, info = envs.step(actions)
        for agent, single in enumerate(singles):
            if over[agent]:  # NEXT_STEP only
                assert (rewards[agent], terminated[agent], truncated[agent]) == (0, False, False)
                np.testing.assert_array_equal(frames[agent], start(agent, info))
                continue
            frame, reward, done, cut, single_info = single.step(actions[agent])
            assert (rewards[agent], terminated[agent], truncated[agent]) == (reward, done, cut)
            endings += done or cut
            if (done or cut) and mode is AutoresetMode.SAME_STEP:
                np.testing.assert_array_equal(info["final_obs"][agent], frame)
                assert info["final_info"]["success"][agent] == single_info["success"]
                np.testing.assert_array_equal(frames[agent], start(agent, info))
            else:
                np.testing.assert_array_equal(frames[agent], frame)
                assert info["success"][agent] == single_info["success"]
        over = (terminated | truncated) & (mode is AutoresetMode.NEXT_STEP)
    assert endings > 20


def test_reset_by_hand(world):
    envs = MazeVectorEnv(world, 4, autoreset_mode="Disabled")
    envs.reset(seed=0, options={"maze": np.array([0, 1, 2, 3]), "heading": 2})
    assert world.maze[envs.pose].tolist() == [0, 1, 2, 3]
    assert (world.heading[envs.pose] == 2).all()
    for _ in range(20):
        over = envs.step(np.ones(4, int))[3]
    assert over.all()
    with pytest.raises(ValueError, match=r"reset of finished environments \[0 1 2 3\]"):
        envs.step(np.ones(4, int))
    before = envs.pose
    mask = np.array([True, False, True, False])
    envs.reset(options={"reset_mask": mask, "maze": 1, "heading": 0})
    assert (envs.pose[~mask] == before[~mask]).all()
    assert (envs.pose[mask] == world.spawn[1, 0]).all()


def test_make_vec():
    envs = gymnasium.make_vec("lemn/IMaze-v0", num_envs=3, length=7, render_mode="rgb_array")
    assert isinstance(envs.unwrapped, MazeVectorEnv)
    frames, _ = envs.reset(seed=0)
    assert frames in envs.observation_space
    assert envs.step(envs.action_space.sample())[0] in envs.observation_space
    assert len(envs.render()) == 3
    same = gymnasium.make_vec(
        "lemn/SingleIndicator-v0", num_envs=2, count=2, autoreset_mode=AutoresetMode.SAME_STEP
    )
    assert same.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP


def test_vector_errors(world):
    with pytest.raises(ValueError, match="num_envs=0"):
        MazeVectorEnv(world, 0)
    envs = MazeVectorEnv(world, 2)
    envs.reset(seed=0)
    with pytest.raises(ValueError, match=r"actions \[2\], got \[3\]"):
        envs.step(np.zeros(3, int))
    with pytest.raises(ValueError, match="0, 1 or 2"):
        envs.step(np.array([0, -1]))
    with pytest.raises(ValueError, match="0, 1 or 2"):
        envs.step(np.array([0.5, 1.0]))
    for options, message in (
        ({"heading": -1}, "expected heading 0 to 3, got -1"),
        ({"maze": [0, 77]}, "expected maze 0 to"),
        ({"reset_mask": [True]}, r"reset_mask \[2\], got \[1\]"),
    ):
        with pytest.raises(ValueError, match=message):
            envs.reset(options=options)
    with pytest.raises(ValueError, match="got map"):
        envs.reset(options={"map": 1})
