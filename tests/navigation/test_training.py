"""An agent in training: when it validates, how it ranks, what is shown."""

import types

import pytest

from lemn_tf.navigation.recipe import Recipe
from lemn_tf.navigation.training import AgentTrainee, means

SHOWN = {"frames": 20.0, "success": 0.5, "finished": 1.0, "indicator_in_memory": 0.25, "loss": 2.0}


@pytest.fixture
def trainee():
    """A trainee whose updates cost nothing: 20 frames each, of 90."""
    seen = []

    def update(number, progress):
        seen.append((number, progress))
        return SHOWN

    recipe = Recipe(frames=90, validate_every=2)
    learner = types.SimpleNamespace(model=None, optimizer=None, recipe=recipe)
    made = AgentTrainee(learner, update, lambda: {"success_rate": 75.0, "return": 0.3})
    made.seen = seen
    return made


def test_it_goes_on_to_the_next_validation_and_to_the_end(trainee):
    lines = []
    while not trainee.finished:
        lines.append(trainee.advance())
    assert [(line["update"], line["frames"]) for line in lines] == [(2, 40), (4, 80), (5, 100)]
    assert [one[0] for one in trainee.seen] == [0, 1, 2, 3, 4]
    assert [one[1] for one in trainee.seen] == pytest.approx(
        [0, 20 / 90, 40 / 90, 60 / 90, 80 / 90]
    )
    assert lines[0]["success"] == 50.0
    assert trainee.rank(lines[0]) == (75.0, 0.3)
    assert trainee.where() == "100 of 90 frames"


def test_means_are_over_updates_and_rates_in_percent():
    other = {**SHOWN, "success": 1.0, "loss": 1.0}
    assert means([SHOWN, other]) == {
        "success": 75.0,
        "finished": 100.0,
        "indicator_in_memory": 25.0,
        "loss": 1.5,
    }
