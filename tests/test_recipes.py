"""Recipes: what can be changed about them, and what fits which memory."""

import pytest

from lemn_tf import recipes


def test_recipes_can_be_changed():
    phases = recipes.get("lemn", episodes={"policy": 64}, entropy=0.2)
    assert [phase.episodes for phase in phases][2:] == [40_000, 64, 80_000]
    assert [phase.entropy for phase in phases] == [0.1, 0.1, 0.2, 0.2, 0.2]  # where a policy learns
    for wrong, message in (
        ({"recipe": "best"}, "unknown recipe 'best'; known are lemn, a2c, paper"),
        ({"recipe": "lemn", "trainer": "dqn"}, "unknown trainer 'dqn'"),
        ({"recipe": "lemn", "episodes": {"joint": 1}}, "no phase 'joint'"),
    ):
        with pytest.raises(ValueError, match=message):
            recipes.get(**wrong)


def test_the_actor_critic_alone_has_a_recipe_of_its_own():
    ours, alone = recipes.get("lemn"), recipes.get(recipes.chosen("lemn", "a2c"), "a2c")
    assert alone[:2] == ours[:2]  # the same reader
    *constant, last = alone[2:]
    assert all(phase.final_rate == 1 and phase.final_entropy is None for phase in constant)
    assert last.final_rate < 1
    assert last.final_entropy < last.entropy
    for phase in alone[2:]:
        assert phase.objectives == ("a2c",)
        assert phase.reward == "sign"
        assert phase.slots is None
        assert phase.batch_size % phase.rollouts == 0
    assert sum(p.episodes for p in constant) > 2 * last.episodes
    assert constant[0].at_most < 10
    assert last.at_most is None  # in the end with its own slots
    for recipe, trainer in (("lemn", None), ("lemn", "both"), ("paper", "a2c")):
        assert recipes.chosen(recipe, trainer) == recipe


def test_a_phase_with_more_room_is_for_smaller_memories():
    def lengths(**options):
        return {phase.name: phase.episodes for phase in recipes.get("lemn", **options)[2:]}

    assert lengths(slots=9) == {"roomy": 40_000, "policy": 40_000, "polish": 80_000}
    assert lengths(slots=10) == {"policy": 80_000, "polish": 80_000}
    given = {"policy": 50}  # a length that was asked for stays as it is
    assert lengths(slots=10, episodes=given) == {"policy": 50, "polish": 80_000}
    with pytest.raises(ValueError, match="no phase 'roomy' for such a policy"):
        recipes.get("lemn", slots=10, episodes={"roomy": 5})
