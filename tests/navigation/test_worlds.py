"""Any world: what is learned from is what was lived, and something is learned."""

import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf import retention
from lemn_tf.navigation import worlds
from lemn_tf.navigation.recipe import Recipe

STEPS = 7


class First(gymnasium.Env):
    """Shows a row of cards; whoever names the first of them is paid, 1 in all."""

    observation_space = gymnasium.spaces.Dict(
        card=gymnasium.spaces.Discrete(3), left=gymnasium.spaces.Box(0.0, 1.0, [1])
    )
    action_space = gymnasium.spaces.Discrete(3, start=1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps, self.end = 0, int(self.np_random.integers(STEPS - 3, STEPS + 1))
        self.first = self._deal()
        return self._seen(self.first), {}

    def _deal(self):
        return int(self.np_random.integers(3))

    def _seen(self, card):
        return {"card": card, "left": np.array([1 - self.steps / self.end], np.float32)}

    def step(self, action):
        self.steps += 1
        reward = float(action == self.first + 1) / self.end
        return self._seen(self._deal()), reward, self.steps == self.end, False, {}


class Painted(First):
    """The same cards as pictures."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, [3, 3, 3], np.float32)

    def _seen(self, card):
        return np.broadcast_to(np.eye(3, dtype=np.float32)[card], [3, 3, 3])


@pytest.fixture(scope="module", autouse=True)
def registered():
    gymnasium.register("lemn-test/First-v0", entry_point=First)
    gymnasium.register("lemn-test/Painted-v0", entry_point=Painted)


def small(rows=4, env="First", **sizes):
    keras.utils.set_random_seed(1)
    envs = worlds.make(f"lemn-test/{env}-v0", rows)
    agent = worlds.agent_for(envs, **{"units": 8, "width": 4, "slots": 2, **sizes})
    return agent, worlds.Life(agent, envs)


@pytest.mark.parametrize(("reader", "policy"), [("mqn", "st-lemn"), ("frmqn", "im-lemn")])
def test_learning_goes_over_the_very_steps_that_were_lived(reader, policy):
    agent, life = small(reader=reader, policy=policy)
    agent.when.ages.assign(np.random.default_rng(0).normal(size=agent.when.ages.shape))
    draws = tf.constant([3, 4])
    lived = life(0, draws)
    recipe = Recipe(practice=1.0, hindsight=1.0)
    learner, acted = worlds.WorldLearner(agent, recipe, jit_compile=False), []
    state = agent.initial_state(4)
    for t in range(STEPS):
        seen = tf.nest.map_structure(lambda x, t=t: x[:, t], lived.seen)
        move, state = agent.consider(seen, state, draws)
        acted.append(move)
        alive = lived.valid[:, t].numpy()
        np.testing.assert_array_equal(move.action[alive], lived.action[:, t][alive])
        np.testing.assert_array_equal(move.decision.slot[alive], lived.slot[:, t][alive])
    output, vectors = learner.replayed(lived, agent.look(lived.seen))
    logits = agent.reader.actor(output)[:, :STEPS]
    np.testing.assert_allclose(logits, np.stack([m.logits for m in acted], 1), atol=1e-5)
    assert vectors.shape == (4, lived.action.shape[1], 3, 4)
    verdict = learner.verdict(lived, draws)
    log_pi = tf.nn.log_softmax(np.stack([m.logits for m in acted], 1))
    drawn = tf.gather(log_pi, lived.action[:, :STEPS], batch_dims=2)
    np.testing.assert_allclose(verdict.moved[:, :STEPS], drawn, atol=1e-5)
    assert (verdict.worth is not None) == (reader == "mqn")
    gradients, shown = learner.gradients((lived, verdict), tf.constant(0.01), 0.0, draws)
    assert ("practice" in shown) == ("hindsight" in shown) == (reader == "mqn")
    for variable, gradient in zip(agent.trainable_variables, gradients, strict=True):
        assert gradient is not None, variable.path
    steps = lived.valid.numpy().sum(axis=1)
    assert float(shown["frames"]) == steps.sum()
    assert STEPS - 3 <= steps.min() < steps.max() <= STEPS
    assert float(shown["return"]) == pytest.approx(lived.reward.numpy().sum() / 4)


def test_the_same_seeds_give_the_same_life():
    _, life = small()
    one, again, other = (life(seed, tf.constant([1, 2])) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one.seen["card"], again.seen["card"])
    np.testing.assert_array_equal(one.action, again.action)
    assert np.any(one.seen["card"].numpy() != other.seen["card"].numpy())


def test_each_different_picture_is_encoded_once():
    agent, life = small(rows=32, env="Painted")
    draws = tf.constant([3, 4])
    lived = life(0, draws)
    once = worlds.distinct(lived)
    assert once.seen.shape == (256, 3, 3, 3)
    assert len(np.unique(once.view)) == 4  # three cards, and nothing after the end
    np.testing.assert_array_equal(tf.gather(once.seen, once.view), lived.seen)
    learner = worlds.WorldLearner(agent, Recipe(practice=1.0, hindsight=1.0), jit_compile=False)
    verdicts = [learner.verdict(batch, draws) for batch in (lived, once)]
    for one, other in zip(*verdicts, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    both = [
        learner.gradients((batch, verdicts[0]), tf.constant(0.01), 0.0, draws)[0]
        for batch in (lived, once)
    ]
    for variable, one, other in zip(agent.trainable_variables, *both, strict=True):
        one, other = (tf.convert_to_tensor(x) for x in (one, other))  # tables have slices
        np.testing.assert_allclose(one, other, atol=1e-5, err_msg=variable.path)
    judged = []
    learner._judge = lambda batch, seed: judged.append(batch) or verdicts[0]
    learner.learn(lived, draws, 0.0)
    assert judged[0].view is not None


def test_episodes_in_which_much_is_different_stay_as_they_are():
    _, life = small(env="Painted")
    lived = life(0)
    assert worlds.distinct(lived) is lived


@pytest.mark.slow
def test_it_learns_to_keep_the_first():
    """With one slot: FIFO has it no longer from the third step on."""
    agent, life = small(rows=32, slots=1, units=16)
    recipe = Recipe(learning_rate=1e-2, entropy=0.01)
    learner = worlds.WorldLearner(agent, recipe)
    before = worlds.summary([life(999)])
    for number in range(60):
        draws = tf.constant([0, number])
        learner.learn(life(number * 100, draws), draws, 0.0)
    after = worlds.summary([life(999)])
    assert before["return"] < 0.6
    assert after["return"] > 0.9
    assert after["episodes"] == 32
    assert STEPS - 3 <= after["length"] <= STEPS


def test_episodes_are_cut_where_asked():
    agent, life = small()
    short = worlds.Life(agent, life.envs, longest=2)(0)
    assert short.valid.numpy().sum(axis=1).tolist() == [2] * 4


def test_a_policy_that_learns_begins_with_a_fair_sample(tmp_path):
    agent, _ = small(hidden=3)
    assert (agent.memory.policy.reservoir, agent.memory.policy.hidden) == (True, 3)
    agent.save(tmp_path / "agent.keras")
    again = keras.saving.load_model(tmp_path / "agent.keras")
    assert (again.memory.policy.name, again.memory.policy.reservoir) == ("st-lemn", True)
    assert again.with_memory("lifo").memory.policy.name == "lifo"
    given = small(policy=retention.get("st-lemn"))[0]
    assert not given.memory.policy.reservoir


def test_worlds_that_are_none():
    with pytest.raises(ValueError, match=r"doesn't exist.* say --import MODULE"):
        worlds.make("NoSuchWorld-v0")
    with pytest.raises(ValueError, match="expected discrete actions, got Box"):
        worlds.agent_for(worlds.make("Pendulum-v1"))
