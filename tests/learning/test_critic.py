"""Returns, advantages and losses against loops over plain numbers."""

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.utils import value_ops

from lemn_tf.learning.critic import (
    ActorCritic,
    choice_losses,
    generalised_advantage,
    log_probability,
)

B, T, A = 3, 6, 3


def by_hand(rewards, values, discount, gae_lambda):
    """Advantages of one stream, from the definition: a weighted sum of later TD errors."""
    steps = len(rewards)
    following = [*values[1:], 0.0]
    errors = [rewards[t] + discount * following[t] - values[t] for t in range(steps)]
    return [
        sum((discount * gae_lambda) ** (k - t) * errors[k] for k in range(t, steps))
        for t in range(steps)
    ]


@pytest.fixture
def case():
    generator = np.random.default_rng(0)
    length = np.array([6, 4, 1])
    return {
        "logits": generator.normal(size=[B, T, A]).astype(np.float32),
        "actions": generator.integers(0, A, [B, T]).astype(np.int32),
        "values": generator.normal(size=[B, T]).astype(np.float32),
        "rewards": generator.normal(size=[B, T]).astype(np.float32)
        * (np.arange(T) < length[:, None]),
        "free": (np.arange(T) >= 2) & (np.arange(T) < length[:, None]),
        "valid": np.arange(T) < length[:, None],
    }


def tensors(case):
    return {name: tf.constant(array) for name, array in case.items()}


def test_losses_against_loops(case):
    losses = ActorCritic(discount=0.9, gae_lambda=0.8).losses(**tensors(case))
    advantages = np.zeros([B, T])
    for b in range(B):
        n = case["valid"][b].sum()
        advantages[b, :n] = by_hand(case["rewards"][b, :n], case["values"][b, :n], 0.9, 0.8)
    chosen = advantages[case["free"]]
    for b in range(B):
        policy = value = entropy = 0.0
        for t in range(T):
            pi = np.exp(case["logits"][b, t]) / np.exp(case["logits"][b, t]).sum()
            if case["free"][b, t]:
                normal = (advantages[b, t] - chosen.mean()) / np.sqrt(chosen.var() + 1e-8)
                policy -= np.log(pi[case["actions"][b, t]]) * normal
                entropy -= (pi * np.log(pi)).sum()
            if case["valid"][b, t]:  # the target is advantage plus value
                value += advantages[b, t] ** 2
        np.testing.assert_allclose(losses.policy[b], policy, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(losses.value[b], value, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(losses.entropy[b], entropy, rtol=1e-4, atol=1e-5)


def test_what_was_drawn_with_older_weights_moves_only_so_far(case):
    """PPO's clipped objective, step by step; with the weights that drew it, the plain gradient."""
    given = tensors(case)
    logits, actions, free = given["logits"], given["actions"], given["free"]
    advantages = tf.constant(np.random.default_rng(1).normal(size=[B, T]), tf.float32)
    before = log_probability(logits, actions) + np.random.default_rng(2).normal(size=[B, T]) * 0.5
    loss, _ = choice_losses(logits, actions, advantages, free, tf.cast(before, tf.float32))
    now = log_probability(logits, actions).numpy()
    for b in range(B):
        expected = 0.0
        for t in np.flatnonzero(case["free"][b]):
            ratio, gain = np.exp(now[b, t] - before[b, t]), float(advantages[b, t])
            expected -= min(ratio * gain, np.clip(ratio, 0.8, 1.2) * gain)
        np.testing.assert_allclose(loss[b], expected, rtol=1e-4, atol=1e-5)

    def gradient(before):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            loss = choice_losses(logits, actions, advantages, free, before)[0]
        return tape.gradient(loss, logits)

    same = log_probability(logits, actions)
    np.testing.assert_allclose(gradient(same), gradient(None), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("gae_lambda", [0.0, 0.8, 1.0])
def test_advantages_are_those_of_tf_agents(case, gae_lambda):
    rewards, values = tf.constant(case["rewards"]), tf.constant(case["values"])
    discounts = 0.9 * tf.cast(case["valid"], tf.float32)
    ours = tf.function(generalised_advantage, jit_compile=True)(
        rewards, values, discounts, gae_lambda
    )
    theirs = value_ops.generalized_advantage_estimation(
        values, tf.zeros([B]), discounts, rewards, gae_lambda, time_major=False
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_with_lambda_one_targets_are_returns(case):
    rewards, discount = case["rewards"], 0.9
    returns = value_ops.discounted_return(
        tf.constant(rewards), tf.fill([B, T], discount), time_major=False
    )
    for b in range(B):
        for t in range(T):
            expected = sum(discount ** (k - t) * rewards[b, k] for k in range(t, T))
            np.testing.assert_allclose(returns[b, t], expected, rtol=1e-5, atol=1e-6)
    losses = ActorCritic(discount=discount, gae_lambda=1.0).losses(**tensors(case))
    error = (case["values"] - returns.numpy()) ** 2 * case["valid"]
    np.testing.assert_allclose(losses.value, error.sum(axis=1), rtol=1e-4)


def test_what_stands_behind_the_end_changes_nothing(case):
    plain = ActorCritic(discount=0.9, gae_lambda=0.9).losses(**tensors(case))
    behind = ~case["valid"]
    case["values"] = np.where(behind, 100.0, case["values"]).astype(np.float32)
    case["logits"] = np.where(behind[..., None], -7.0, case["logits"]).astype(np.float32)
    other = ActorCritic(discount=0.9, gae_lambda=0.9).losses(**tensors(case))
    for ours, theirs in zip(plain, other, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_rollouts_of_a_stream_are_told_from_each_other(case):
    """What all of them receive at a step says nothing of what one of them did before it."""
    case = {name: np.concatenate([array[:2]] * 2)[[0, 2, 1, 3]] for name, array in case.items()}
    case["actions"][1::2] = (case["actions"][::2] + 1) % A
    options = {"discount": 0.9, "gae_lambda": 0.8, "rollouts": 2}
    nothing = ActorCritic(**options).losses(**tensors(case))
    np.testing.assert_allclose(nothing.policy, 0, atol=1e-5)  # all fared alike
    case["rewards"][0, 3] += 2  # for the first stream's first rollout
    one = ActorCritic(**options).losses(**tensors(case))
    assert abs(one.policy[0]) > 0.1
    np.testing.assert_allclose(one.policy[2:], 0, atol=1e-5)
    case["rewards"][:2, 3] += 5  # for both: only the values have to learn it
    other = ActorCritic(**options).losses(**tensors(case))
    np.testing.assert_allclose(other.policy, one.policy, rtol=1e-3, atol=1e-5)
    assert np.all(np.abs(other.value - one.value)[:2] > 1)


def test_gradients_reach_logits_and_values_but_no_target(case):
    given = tensors(case)
    with tf.GradientTape() as tape:
        tape.watch([given["logits"], given["values"]])
        losses = ActorCritic(discount=0.9, gae_lambda=0.8).losses(**given)
        total = tf.reduce_sum(losses.policy + losses.value)
    for_logits, for_values = tape.gradient(total, [given["logits"], given["values"]])
    assert np.all((np.abs(for_logits).sum(-1) > 0) == case["free"])
    advantages = np.zeros([B, T])
    for b in range(B):
        n = case["valid"][b].sum()
        advantages[b, :n] = by_hand(case["rewards"][b, :n], case["values"][b, :n], 0.9, 0.8)
    np.testing.assert_allclose(for_values, -2 * advantages, rtol=1e-4, atol=1e-5)


def test_reward_is_checked():
    with pytest.raises(ValueError, match="'sign' or 'probability'; got 'support'"):
        ActorCritic(reward="support")
