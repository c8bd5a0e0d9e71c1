"""EvictionPolicy: the same decisions as the memory layer, and TF-Agents' specs."""

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.policies import greedy_policy
from tf_agents.utils import nest_utils

from lemn_tf.agents import EvictionPolicy, StreamEnvironment


def policy_for(environment, model):
    return EvictionPolicy(model, environment.time_step_spec(), environment.action_spec())


@pytest.mark.parametrize("name", ["st-lemn", "s-lemn", "im-lemn", "fifo"])
def test_decides_as_the_memory_does(streams, make_model, name):
    arrays, model = streams(4), make_model(name)
    decisions, _ = model.act({k: tf.constant(v) for k, v in arrays.items()})
    environment = StreamEnvironment(arrays, model, 4)
    policy = greedy_policy.GreedyPolicy(policy_for(environment, model))

    @tf.function(autograph=False)
    def move(now, state):
        chosen = policy.action(now, state)
        return environment.step(chosen.action), chosen

    now, state = environment.reset(), policy.get_initial_state(4)
    for t in range(6):
        np.testing.assert_array_equal(now.observation["ids"], decisions.ids[:, t])
        now, chosen = move(now, state)
        state = chosen.state
        np.testing.assert_array_equal(chosen.action, decisions.slot[:, t])


def test_probabilities_are_those_of_the_layer(streams, make_model):
    arrays, model = streams(3), make_model()
    decisions, _ = model.act(
        {k: tf.constant(v) for k, v in arrays.items()}, training=True, seed=tf.constant([1, 2])
    )
    environment = StreamEnvironment(arrays, model, 3)
    policy = policy_for(environment, model)
    now, state = environment.reset(), policy.get_initial_state(3)
    for t in range(6):
        step = policy.distribution(now, state)
        np.testing.assert_allclose(
            1.0 - step.action.probs_parameter(), decisions.keep[:, t], atol=1e-5
        )
        state, now = step.state, environment.step(decisions.slot[:, t])


def test_forced_steps_leave_no_choice(streams, make_model):
    model = make_model()
    environment = StreamEnvironment(streams(3), model, 3)
    policy = policy_for(environment, model)
    step = policy.distribution(environment.reset(), policy.get_initial_state(3))
    np.testing.assert_allclose(step.action.probs_parameter(), [[1.0, 0.0, 0.0]] * 3, atol=1e-6)


def test_steps_meet_their_specs(streams, make_model):
    model = make_model()
    environment = StreamEnvironment(streams(3, lengths=(3, 2)), model, 2)
    policy = policy_for(environment, model)
    now, state = environment.reset(), policy.get_initial_state(2)
    assert state["ids"].numpy().tolist() == [[-1] * 3] * 2
    for _ in range(7):
        step = policy.action(now, state)
        assert nest_utils.is_batched_nested_tensors(step, policy.policy_step_spec)
        now, state = environment.step(step.action), step.state
    # An unbatched initial state, as TF-Agents also asks for.
    assert policy.get_initial_state(None)["ids"].shape == [3]


def test_variables_are_the_models(streams, make_model):
    model = make_model()
    environment = StreamEnvironment(streams(2), model, 2)
    policy = policy_for(environment, model)
    assert {id(v) for v in policy.variables()} == {id(w.value) for w in model.weights}
    assert policy.variables()


@pytest.mark.parametrize("name", ["lru", "oracle"])
def test_refuses_policies_that_need_more(streams, make_model, name):
    environment = StreamEnvironment(streams(2), make_model(), 2)
    with pytest.raises(ValueError, match=f"needs only the candidates; got '{name}'"):
        policy_for(environment, make_model(name))
