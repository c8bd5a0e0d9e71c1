"""Every space that agents take, from Gymnasium to features."""

import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces

from lemn_tf.navigation.observations import ObservationEncoder, describe

SPACES = {
    "discrete": spaces.Discrete(4, start=1),
    "several": spaces.MultiDiscrete([2, 3]),
    "bits": spaces.MultiBinary(5),
    "vector": spaces.Box(-1.0, 1.0, [2, 3]),
    "image": spaces.Box(0, 255, [20, 33, 3], np.uint8),
    "dict": spaces.Dict(b=spaces.Discrete(3), a=spaces.Box(-1.0, 1.0, [2])),
    "tuple": spaces.Tuple([spaces.Discrete(3), spaces.Dict(x=spaces.Box(0.0, 1.0, [7, 7, 4]))]),
}


@pytest.mark.parametrize("name", SPACES)
def test_observations_of_any_space_become_features(name):
    space = SPACES[name]
    space.seed(0)
    eyes = ObservationEncoder(describe(space), units=6, filters=2)
    some = [space.sample() for _ in range(9)]
    seen = eyes(tf.nest.map_structure(lambda *x: np.stack(x), *some))
    assert seen.shape == (9, 6)
    assert np.ptp(seen, axis=0).max() > 0
    again = ObservationEncoder.from_config(eyes.get_config())
    assert again.item == eyes.item


def test_one_bad_number_spoils_nothing():
    eyes = ObservationEncoder({"kind": "vector", "shape": [3]})
    bad, good = eyes(np.array([[1.0, np.nan, 2.0]])), eyes(np.array([[1.0, 0.0, 2.0]]))
    np.testing.assert_array_equal(bad, good)


def test_what_cannot_be_seen_is_refused():
    with pytest.raises(ValueError, match=r"expected observations in a Box, Discrete, .*; got Text"):
        describe(spaces.Dict(mission=spaces.Text(9)))
    with pytest.raises(ValueError, match=r"expected discrete, vector, image.*; got kind 'sound'"):
        ObservationEncoder({"kind": "sound"})
    with pytest.raises(ValueError, match=r"expected observations .*, got shape \(4, 2"):
        ObservationEncoder({"kind": "vector", "shape": [3]})(np.zeros([4, 2]))
