import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from lemn_tf.mazes import (
    Camera,
    MazeEnv,
    MazeVectorEnv,
    Rules,
    best_actions,
    build,
    imaze,
    imazes,
    random_mazes,
    save_jsonl,
    single_indicator_world,
)


@pytest.fixture(scope="module")
def world():
    return build([*imazes([5, 7]), *random_mazes(3)], Rules(limit=20))


@pytest.mark.parametrize(
    ("name", "kwargs"),
    [
        ("lemn/IMaze-v0", {}),
        ("lemn/IMaze-v0", {"length": [5, 7], "indicator": "L"}),
        ("lemn/SingleIndicator-v0", {"count": 4, "split": "large", "seed": 2}),
        ("lemn/SingleIndicator-v0", {"maps": random_mazes(2), "camera": Camera(20, 20)}),
    ],
)
def test_gymnasium_accepts_them(name, kwargs):
    env = gymnasium.make(name, render_mode="rgb_array", **kwargs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)
    env.reset(seed=0)
    assert env.render().shape == (*(8 * n for n in env.observation_space.shape[:2]), 3)


def test_lengths_and_maps_reach_the_world(tmp_path):
    env = gymnasium.make("lemn/IMaze-v0", length=200).unwrapped
    assert env.world.limit.tolist() == [500, 500]
    path = tmp_path / "maps.jsonl"
    save_jsonl(path, random_mazes(3, split="large"))
    env = gymnasium.make("lemn/SingleIndicator-v0", maps=str(path)).unwrapped
    assert len(env.world.mazes) == 3
    assert set(env.world.limit) == {100}
    with pytest.raises(ValueError, match="train, test, large; got 'none'"):
        single_indicator_world(split="none")


def test_an_episode_that_wins_and_one_that_is_cut_off(world):
    env = MazeEnv(world)
    actions = best_actions(world)
    _, info = env.reset(seed=3, options={"maze": 1, "heading": 0})
    assert info["maze"] == 1
    assert env.maze == imaze(5, "L")
    total, over = 0.0, False
    while not over:
        _, reward, over, truncated, info = env.step(actions[info["pose"]])
        assert not truncated
        total += reward
    assert info["success"]
    assert total == pytest.approx(1 - 0.04 * 8)
    env.reset()
    for _ in range(19):
        assert env.step(1)[2:4] == (False, False)
    _, reward, terminated, truncated, info = env.step(1)
    assert (terminated, truncated, info["success"]) == (False, True, False)
    assert reward == pytest.approx(-0.04)


def test_starts_are_even_and_seeded(world):
    env = MazeEnv(world)
    seen = [env.reset(seed=0)[1]["pose"]] + [env.reset()[1]["pose"] for _ in range(599)]
    counts = np.array([seen.count(pose) for pose in world.spawn.ravel()])
    assert counts.sum() == 600
    assert counts.min() > 5
    again = [env.reset(seed=0)[1]["pose"]] + [env.reset()[1]["pose"] for _ in range(9)]
    assert again == seen[:10]


def test_errors_say_what_was_expected(world):
    env = MazeEnv(world)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"action 0, 1 or 2 .* got 3"):
        env.step(3)
    with pytest.raises(ValueError, match="maze 0 to 6 and heading 0 to 3, got 7 and 1"):
        env.reset(options={"maze": 7, "heading": 1})
    with pytest.raises(ValueError, match="options maze and heading, got map"):
        env.reset(options={"map": 7})
    with pytest.raises(ValueError, match="render_mode None or 'rgb_array', got 'human'"):
        MazeEnv(world, render_mode="human")


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
