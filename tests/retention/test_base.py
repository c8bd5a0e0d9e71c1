"""What policies say of themselves, and names for policies of a user's own."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf import EpisodicMemory, retention
from lemn_tf.retention import RetentionPolicy


class Plain(RetentionPolicy):
    def score(self, seen, cells, carry):
        return self.opinion(-cells.vectors[..., 0])


class Holding(RetentionPolicy):
    """Learns by a layer that it does not build itself."""

    def __init__(self, width: int = 3, **kwargs):
        super().__init__(**kwargs)
        self.dense = keras.Sequential([keras.layers.Dense(width), keras.layers.Dense(1)])

    def score(self, seen, cells, carry):
        return self.opinion(self.dense(cells.vectors)[..., 0])


class Weighing(Plain):
    """Learns by a weight of its own."""

    def build(self, shape):
        self.direction = self.add_weight(shape=(shape[-1],), name="direction")

    def score(self, seen, cells, carry):
        return self.opinion(tf.linalg.matvec(cells.vectors, tf.convert_to_tensor(self.direction)))


class Measuring(Plain):
    """Overrides `build`, but has nothing to train in the end."""

    def build(self, shape):
        self.width = shape[-1]


class Waiting(retention.FIFO):
    """A rule with a weight added: no longer a rule."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.patience = self.add_weight(shape=(), initializer="ones", name="patience")


def learning(policy):
    """What it says before and after it is built."""
    before = policy.learns
    EpisodicMemory(2, policy)(tf.zeros([1, 3, 4]))
    return before, policy.learns


def test_the_built_in_policies_say_what_they_are():
    told = {name: retention.get(name) for name in retention.NAMES}
    learned = {"im-lemn", "s-lemn", "st-lemn"}
    assert {name for name, policy in told.items() if policy.learns} == learned
    assert {name for name, policy in told.items() if policy.listens} == {"lru"}
    assert {name for name, policy in told.items() if policy.clairvoyant} == {"oracle"}
    assert {name for name, policy in told.items() if policy.stochastic} == {"uniform"}
    assert {name for name, policy in told.items() if policy.suited} == {"im-lemn"}
    for name, policy in told.items():
        assert learning(policy) == (name in learned, name in learned)


def test_what_is_known_of_a_policy_is_what_its_class_says(names):
    retention.register("holding")(Holding)
    for name in retention.names():
        policy, facts = retention.get(name), retention.facts(name)
        assert (policy.learns, policy.clairvoyant) == (facts.learns, facts.clairvoyant)
        assert (type(policy).options(), policy.suited) == (facts.options, facts.suited)
    assert retention.find("holding") is Holding
    assert retention.facts("holding") == (True, False, ("width",), {})


def test_whoever_has_weights_learns():
    assert learning(Plain()) == (False, False)
    assert learning(Holding()) == (True, True)
    assert learning(Weighing()) == (True, True)
    assert learning(Waiting()) == (True, True)
    assert learning(Measuring()) == (True, False)
    frozen = retention.get("st-lemn", trainable=False)
    assert learning(frozen) == (False, False)


def test_a_subclass_may_just_say_so():
    class Silent(Holding):
        learns = False
        listens = True

    assert (Silent().learns, Silent().listens) == (False, True)


def test_layers_that_are_held_are_built_with_the_policy(tmp_path):
    """So that every weight is there before anybody trains or loads."""
    policy = Holding(width=5)
    policy.build((None, None, 4))
    assert [w.shape for w in policy.weights] == [(4, 5), (5,), (5, 1), (1,)]
    assert policy.dense.built


def test_options_are_read_off_the_class():
    class Further(Holding):
        def __init__(self, depth: int = 2, *, name: str = "further", **kwargs):
            super().__init__(name=name, **kwargs)

    class Closed(Holding):
        def __init__(self, depth: int = 2):
            super().__init__()

    assert retention.find("fifo").options() == ()
    assert retention.find("im-lemn").options() == ("similarity", "skip")
    spatial = ("units", "hidden", "shuffle", "skip", "reservoir")
    assert retention.find("st-lemn").options() == spatial
    assert Further.options() == ("depth", "width")
    assert Closed.options() == ("depth",)


@pytest.fixture
def names():
    """Forgets what a test registers."""
    before = dict(retention._POLICIES)
    yield
    retention._POLICIES.clear()
    retention._POLICIES.update(before)


def test_names_of_ones_own(names, tmp_path):
    assert retention.register("holding")(Holding) is Holding
    assert retention.names() == (*retention.names()[:-1], "holding")
    assert "holding" not in retention.NAMES
    policy = retention.get("holding", width=2)
    assert (type(policy), policy.name) == (Holding, "holding")
    assert retention.register("holding")(Holding) is Holding  # again, as a notebook does
    with pytest.raises(ValueError, match=r"unknown policy 'best'; known are .*, holding$"):
        retention.get("best")
    by_name, by_object = EpisodicMemory(2, "holding"), EpisodicMemory(2, Holding(name="holding"))
    items = tf.random.stateless_normal([2, 7, 4], [0, 1])
    state, _ = by_name(items)
    by_object(items)
    by_object.set_weights(by_name.get_weights())
    np.testing.assert_array_equal(by_object(items)[0].ids, state.ids)
    twin = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(by_name))
    twin(items)
    twin.set_weights(by_name.get_weights())
    np.testing.assert_array_equal(twin(items)[0].ids, state.ids)


def test_a_name_is_given_once(names):
    with pytest.raises(
        ValueError,
        match=r"the policy name 'fifo' is taken by lemn_tf.retention.rules.FIFO; .*Plain",
    ):
        retention.register("fifo")(Plain)
    retention.register("mine")(Plain)
    with pytest.raises(ValueError, match=r"'mine' is taken by .*Plain; expected a new one for"):
        retention.register("mine")(Holding)
    with pytest.raises(TypeError, match="expected a class of RetentionPolicy to name 'x'; got"):
        retention.register("x")(keras.layers.Dense)
    with pytest.raises(TypeError, match="register takes the policy's name"):
        retention.register(Plain)


class Spoiling(RetentionPolicy):
    """A carry that becomes NaN by itself, and would stay so."""

    def carry_spec(self):
        return tf.TensorSpec([], tf.float32)

    def score(self, seen, cells, carry):
        seen_before = carry + cells.vectors[..., 0]
        return self.opinion(seen_before, tf.math.log(seen_before) * 0 + seen_before)


def test_a_carry_recovers():
    layer = EpisodicMemory(2, Spoiling())
    items = tf.constant([[[1.0], [2.0], [-9.0], [3.0], [4.0], [1.0]]])
    state, decisions = layer(items)
    assert np.all(np.isfinite(state.carry))
    assert np.all(np.isfinite(decisions.keep))
    assert np.all(np.isfinite(layer.replay(items, decisions).logits))
