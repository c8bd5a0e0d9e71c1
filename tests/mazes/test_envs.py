import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from lemn_tf.mazes import (
    Camera,
    MazeEnv,
    Rules,
    build,
    imaze,
    imazes,
    random_mazes,
    save_jsonl,
    shortest_ways,
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
        ("lemn/FarIndicator-v0", {"count": 2}),
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


def test_the_far_indicator_is_beyond_a_corridor():
    world = gymnasium.make("lemn/FarIndicator-v0", count=2, far=12).unwrapped.world
    assert [maze.rows for maze in world.mazes] == [one.rows for one in random_mazes(2, far=12)]
    assert world.limit.tolist() == [74, 74]
    assert gymnasium.make("lemn/FarIndicator-v0", count=1).unwrapped.world.limit.tolist() == [130]


def test_an_episode_that_wins_and_one_that_is_cut_off(world):
    env = MazeEnv(world)
    actions = shortest_ways(world).argmax(1)
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
