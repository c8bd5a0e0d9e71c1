"""Recipes: what is refused, and what changes in the course of a training."""

import pytest

from lemn_tf.navigation.recipe import AGENT_RECIPES, Recipe


def test_episodes_must_fit_the_maps():
    with pytest.raises(ValueError, match="multiple of maps; got 10 and 4"):
        Recipe(episodes=10, maps=4)


def test_the_recipe_for_corridors_is_the_one_that_solved_them():
    recipe = AGENT_RECIPES["imaze", "mqn"]
    assert (recipe.entropy, recipe.clip, recipe.guidance) == (0.07, 0.5, 0.0)


def test_weights_fall_as_the_training_goes_on():
    recipe = Recipe(
        learning_rate=0.01, final_rate=0.1, entropy=0.4, final_entropy=0.2, guidance=1.0
    )
    assert recipe.at(0.0) == (0.01, 0.4, 1.0)
    assert recipe.at(0.25) == pytest.approx((0.00775, 0.35, 0.5))
    assert recipe.at(0.5).guidance == recipe.at(1.0).guidance == 0.0
    assert recipe.at(1.0) == pytest.approx((0.001, 0.2, 0.0))
    assert Recipe(entropy=0.3).at(1.0).entropy == 0.3
    assert Recipe(guidance=1.0, guided=2.0).at(1.0).guidance == 0.5


def test_guidance_takes_some_time():
    with pytest.raises(ValueError, match="guided to be a share above 0, got 0"):
        Recipe(guided=0)


def test_going_on_is_unguided_and_begins_where_the_recipe_ended():
    later = AGENT_RECIPES["single-indicator", "frmqn"].further()
    assert (later.guidance, later.entropy, later.episodes, later.maps) == (0.0, 0.01, 64, 4)
    assert AGENT_RECIPES["imaze", "mqn"].further().maps is None
    assert later.at(1.0).entropy == 0.01
