"""The runs of the maze experiments."""

import pytest

from lemn_tf.experiments.maze_cells import plan
from lemn_tf.navigation import navigator, recipe


def test_the_plan():
    names = [cell.name for cell in plan(seeds=2)]
    assert "imaze-mqn-st-lemn-4-seed1" in names
    assert "single-indicator-frmqn-fifo-5-seed0" in names
    assert len(names) == len(set(names)) == 12
    with pytest.raises(ValueError, match=r"expected readers among mqn, frmqn, got .'dqn'."):
        plan(readers=["dqn"])
    with pytest.raises(ValueError, match=r"expected policies among fifo.*, got .'nosuch'."):
        plan(policies=["fifo", "nosuch"])


def test_the_readers_are_those_that_there_are():
    assert set(recipe.READERS) == set(navigator.READERS)
