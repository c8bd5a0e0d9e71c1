"""Acting one step at a time: the state is a value, and all that an agent knows is in it."""

import numpy as np
import pytest
import tensorflow as tf

from lemn_tf import memory, runs
from lemn_tf.mazes import imaze_world
from lemn_tf.mazes.vector import MazeVectorEnv
from lemn_tf.navigation.agent import MemoryAgent, draw
from lemn_tf.navigation.navigator import Navigator
from lemn_tf.navigation.observations import ObservationEncoder
from lemn_tf.navigation.rollout import walk
from lemn_tf.pipelines import frames

TINY = {"units": 6, "width": 4, "filters": (2, 3)}
CARDS = {"kind": "discrete", "size": 4}


def stream(steps, rows=2, seed=0):
    return np.random.default_rng(seed).integers(4, size=[steps, rows])


def informed(agent):
    """With weights in the place of the zeros that what it did, and when it saw, begin with."""
    draw_some = np.random.default_rng(0).normal
    for layer in (agent.when, agent.past):
        for weight in layer.weights if layer is not None else ():
            weight.assign(draw_some(size=weight.shape))
    return agent


def lived(agent, cards, state=None, seed=None):
    """Actions `[T, B]`, dropped ids `[T, B]`, and the state at the end."""
    state = agent.initial_state(cards.shape[1]) if state is None else state
    actions, dropped = [], []
    for observation in cards:
        action, state, decision = agent.act(observation, state, seed)
        actions.append(action.numpy())
        dropped.append(decision.evicted.numpy())
    return np.array(actions), np.array(dropped), state


@pytest.mark.parametrize(
    ("reader", "policy", "temperature", "rows", "knows"),
    [
        ("mqn", "st-lemn", 0.0, 8, {}),
        ("mqn", "st-lemn", 0.0, 8, {"dated": True, "acted": 2}),
        ("frmqn", "lru", 0.0, 8, {"acted": 1}),
        ("frmqn", "fifo", 1.0, 1, {}),
    ],
)
def test_acting_step_by_step_is_walking(reader, policy, temperature, rows, knows):
    """The fast path over tables of poses takes the same actions and drops the same frames."""
    world = imaze_world([5])
    agent = informed(Navigator(reader, 3, policy, temperature=temperature, **TINY, **knows))
    course = frames.cut(world.tables(), range(2))
    starts = course.spawn.reshape(-1)[:rows]
    walked, _ = walk(agent, course, tf.constant(starts), course.longest)
    envs = MazeVectorEnv(world, len(starts))
    given = {"maze": np.repeat([0, 1], 4)[:rows], "heading": np.tile(range(4), 2)[:rows]}
    seen, _ = envs.reset(options=given)
    state = agent.initial_state(len(starts))
    for t in range(12):
        action, state, decision = agent.act(seen, state)
        alive = walked.valid[:, t].numpy()
        np.testing.assert_array_equal(action[alive], walked.action[:, t][alive])
        np.testing.assert_array_equal(decision.slot[alive], walked.slot[:, t][alive])
        seen, *_ = envs.step(action.numpy())


@pytest.mark.parametrize(("reader", "acted"), [("mqn", 0), ("mqn", 4), ("frmqn", 0), ("lstm", 2)])
def test_the_state_is_all_an_agent_knows(reader, acted, tmp_path):
    """It can be saved and loaded between two steps, and acting twice from it gives the same."""
    eyes = ObservationEncoder(CARDS, 8)
    agent = informed(MemoryAgent(eyes, 3, reader, 3, units=8, temperature=1.0, acted=acted))
    first, then = stream(5), stream(9, seed=1)
    *_, state = lived(agent, first)
    expected = lived(agent, then, state)
    memory.save(state, tmp_path / "state.lemn")
    again = memory.load(tmp_path / "state.lemn", like=agent.initial_state(2))
    agent.save(tmp_path / "agent.keras")
    got = lived(runs.load(tmp_path / "agent.keras"), then, again)
    for a, b in zip(expected[:2], got[:2], strict=True):
        np.testing.assert_array_equal(a, b)
    if reader != "mqn" or acted:
        forgetful = state._replace(stream=tf.nest.map_structure(tf.zeros_like, state.stream))
        assert np.abs(agent((then[0], state)).output - agent((then[0], forgetful)).output).max() > 0


def test_a_row_alone_is_that_row_in_a_batch():
    agent = MemoryAgent(ObservationEncoder(CARDS, 8), 3, "frmqn", 3, units=8, temperature=1.0)
    cards = stream(9, rows=3)
    actions, dropped, _ = lived(agent, cards)
    for row in range(3):
        alone = lived(agent, cards[:, row : row + 1])
        np.testing.assert_array_equal(alone[0][:, 0], actions[:, row])
        np.testing.assert_array_equal(alone[1][:, 0], dropped[:, row])
    assert len(np.unique(actions)) > 1


def test_an_lstm_does_not_read():
    agent = MemoryAgent(ObservationEncoder(CARDS, 8), 3, "lstm", 3, units=8)
    *_, state = lived(agent, stream(5))
    other = state._replace(entries=state.entries * 0)
    card = np.array([1, 2])
    np.testing.assert_array_equal(agent((card, state)).output, agent((card, other)).output)


def test_readers_may_know_when():
    eyes = ObservationEncoder(CARDS, 8)
    agent = MemoryAgent(eyes, 3, "mqn", 3, "fifo", units=8)
    agent.when.ages.assign(np.random.default_rng(0).normal(size=agent.when.ages.shape))
    *_, state = lived(agent, np.array([[1], [2], [3]]))
    *_, swapped = lived(agent, np.array([[3], [2], [1]]))
    card = np.array([0])
    assert np.abs(agent((card, state)).output - agent((card, swapped)).output).max() > 1e-3
    undated = MemoryAgent(eyes, 3, "mqn", 3, "fifo", units=8, dated=False)
    a, b = (undated((card, one)).output for one in (state, swapped))
    np.testing.assert_allclose(a, b, atol=1e-6)


def test_readers_may_be_told_what_was_done():
    """The last two actions, in their order, and none from before."""
    agent = informed(MemoryAgent(ObservationEncoder(CARDS, 8), 3, units=8, acted=2))
    state = agent.initial_state(1)

    def after(*actions):
        carry = state.stream
        for action in actions:
            carry = agent.carry_on(carry, tf.constant([action]))
        return agent((np.array([1]), state._replace(stream=carry))).output.numpy()

    np.testing.assert_array_equal(after(0, 1, 2), after(2, 1, 2))
    for other in ((2, 1), (1, 1), (2,), ()):
        assert np.abs(after(1, 2) - after(*other)).max() > 1e-3


def test_a_rule_in_the_place_of_what_was_learned():
    agent = MemoryAgent(ObservationEncoder(CARDS, 8), 3, "mqn", 3, "st-lemn", units=8)
    other = agent.with_memory("fifo", 5)
    _, dropped, state = lived(other, stream(9))
    assert state.ids.shape == (2, 5)
    assert dropped[-1].tolist() == [3, 3]
    with pytest.raises(ValueError, match="s-lemn is learned"):
        agent.with_memory("s-lemn")


def test_drawing_follows_the_logits():
    logits = tf.math.log(tf.constant([[0.7, 0.2, 0.1]] * 4000))
    clock = tf.zeros([4000], tf.int64)
    drawn = draw(logits, clock, tf.constant([1, 2])).numpy()
    np.testing.assert_allclose(np.bincount(drawn) / 4000, [0.7, 0.2, 0.1], atol=0.03)
    assert set(draw(logits, clock, tf.constant([1, 2]), 0.0).numpy()) == {0}
