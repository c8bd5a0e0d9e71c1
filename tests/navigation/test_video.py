"""Films: what is told of an episode, and the file."""

import keras
import numpy as np
import pytest
from PIL import Image

from lemn_tf.mazes import imaze_world
from lemn_tf.navigation.navigator import Navigator
from lemn_tf.navigation.video import episode, film


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(0)
    return Navigator("mqn", 3, "st-lemn", units=6, width=4, filters=(2, 3))


def test_an_episode_tells_what_was_seen(model):
    world = imaze_world(5)
    told = episode(model, world, maze=1, heading=2)
    steps = len(told["action"])
    assert told["frames"].shape == (steps, 4, 32, 32, 3)
    np.testing.assert_allclose(told["actions"].sum(-1), 1.0, atol=1e-5)
    np.testing.assert_allclose(told["drop"].sum(-1), 1.0, atol=1e-5)
    np.testing.assert_allclose(told["attention"][1:].sum(-1), 1.0, atol=1e-5)
    assert not told["attention"][0].any()
    for t in range(steps):
        here = (world.maze == 1) & (world.cell == told["cell"][t]).all(1)
        pose = int(np.flatnonzero(here & (world.heading == told["heading"][t]))[0])
        np.testing.assert_array_equal(told["frames"][t, -1], world.view(pose))
    assert tuple(told["cell"][0]) == world.mazes[1].spawn
    with pytest.raises(ValueError, match="expected a map 0 to 1 and a heading 0 to 3, got 2 and 0"):
        episode(model, world, 2, 0)


@pytest.mark.slow
def test_a_film_is_an_animation_of_the_episode(model, tmp_path):
    told = film(model, imaze_world(5), tmp_path / "video.gif", maze=1, heading=2)
    seen = episode(model, imaze_world(5), 1, 2)
    assert told["steps"] == len(seen["action"])
    assert told["return"] == pytest.approx(seen["reward"].sum(), abs=1e-4)
    assert told["success"] == (seen["reward"][-1] > 0.5)
    with Image.open(tmp_path / "video.gif") as gif:
        assert 1 < gif.n_frames <= told["steps"]  # equal pictures are joined
        assert gif.size[0] > 300
    with pytest.raises(ValueError, match="ends in"):
        film(model, imaze_world(5), tmp_path / "video.mp4")
