"""Evaluation: every map from every heading, counted once."""

import keras
import numpy as np
import pytest

from lemn_tf.mazes import MazeEnv, single_indicator_world
from lemn_tf.mazes.maps import CYAN, RED
from lemn_tf.mazes.render import PALETTE
from lemn_tf.navigation.evaluation import Endings, Evaluator
from lemn_tf.navigation.navigator import Navigator


class Blind(Navigator):
    """Turns right once, then walks ahead for ever: easy to play by hand."""

    def __init__(self):
        keras.utils.set_random_seed(0)
        super().__init__("mqn", 1, "fifo", units=2, width=2, filters=(1, 1))
        reader = self.reader
        for weight in reader.weights:
            weight.assign(np.zeros(weight.shape))
        # With nothing in memory the output is 0; afterwards it is the value vector, 1.
        reader.value.bias.assign([1.0, 1.0])
        reader.actor.kernel.assign([[5.0, 0.0, -5.0], [0.0, 0.0, 0.0]])
        reader.actor.bias.assign([0.0, 0.0, 1.0])


@pytest.fixture(scope="module")
def world():
    return single_indicator_world(count=5)


def test_every_episode_is_played_as_in_the_environment(world):
    scores = Evaluator(Blind(), world, jit_compile=False)()
    assert scores.success.shape == (5, 4)
    env = MazeEnv(world)
    for maze in range(5):
        for heading in range(4):
            frame, _ = env.reset(options={"maze": maze, "heading": heading})
            goal = PALETTE[RED if world.mazes[maze].goal == "R" else CYAN]
            total, done, cut, shown = 0.0, False, False, []
            while not (done or cut):
                shown.append((frame == goal).all(-1).any())
                frame, reward, done, cut, info = env.step(0 if len(shown) > 1 else 2)
                total += reward
            steps = len(shown)
            known = steps - shown.index(True) if any(shown) else 0
            assert scores.known[maze, heading] == known
            assert scores.success[maze, heading] == info["success"]
            assert scores.finished[maze, heading] == done
            assert scores.steps[maze, heading] == steps
            assert scores.total[maze, heading] == pytest.approx(total, abs=1e-4)


def test_maps_in_groups_are_the_maps_all_at_once(world):
    model = Blind()
    whole = Evaluator(model, world, jit_compile=False)()
    for chunk in (1, 2):  # kept from one call to the next, or not
        parts = Evaluator(model, world, chunk=chunk, jit_compile=False)
        for _ in range(2):
            for a, b in zip(whole, parts(), strict=True):
                np.testing.assert_allclose(a, b, atol=1e-5)


def test_the_summary_counts():
    success = np.array([[True, False, False, True], [False] * 4])
    finished = np.array([[True, True, False, True], [True, False, False, False]])
    scores = Endings(
        success=success,
        finished=finished,
        steps=np.full([2, 4], 10),
        total=np.full([2, 4], 0.5),
        remembered=np.array([[True, True, True, False], [False] * 4]),
        known=np.array([[20, 20, 20, 20], [20, 0, 10, 11]]),
        winnable=np.array([[True] * 4, [True, True, True, False]]),
    )
    assert scores.summary() == {
        "success_rate": 25.0,
        "wrong_rate": 25.0,
        "unfinished_rate": 50.0,
        "overlooked_rate": 25.0,
        "winnable_rate": 87.5,
        "indicator_in_memory": 50.0,
        "return": 0.5,
        "length": 10.0,
        "episodes": 8,
    }
    assert scores.summary(np.array([1]))["wrong_rate"] == 25.0
    assert scores.summary(np.array([0]))["success_rate"] == 50.0
