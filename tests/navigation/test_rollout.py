"""Walking in the graph against the Gymnasium environment and the memory layer, step by step."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf.mazes import MazeEnv, Rules, imaze_world, single_indicator_world
from lemn_tf.memory import EMPTY
from lemn_tf.navigation.navigator import Navigator
from lemn_tf.navigation.rollout import outcome, walk
from lemn_tf.pipelines.frames import cut

TINY = {"units": 6, "width": 4, "filters": (2, 3)}
STEPS = 14


@pytest.fixture(scope="module")
def world():
    return imaze_world([4, 5], rules=Rules(-0.04, STEPS))


@pytest.fixture(scope="module")
def course(world):
    return cut(world.tables(), range(len(world.mazes)))


def agent(reader="mqn", policy="st-lemn", slots=3):
    keras.utils.set_random_seed(1)
    return Navigator(reader, slots, policy, **TINY)


SCRIPT = np.array(
    [
        [0] * STEPS,
        [1, 0, 0, 2, 2, 0, 0, 1, 0, 0, 0, 0, 2, 0],
        [2, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],  # to a goal
        [0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ],
    np.int32,
)
STARTS = ((0, 1), (1, 2), (2, 0), (3, 2))  # map and heading of each row


def test_a_walk_is_what_the_environment_does(world, course):
    starts = tf.constant([course.spawn[maze, heading] for maze, heading in STARTS])
    walked, longest = walk(agent("mqn", "fifo"), course, starts, STEPS, script=tf.constant(SCRIPT))
    images = course.palette[course.frames]
    lengths, ended = [], outcome(walked, tf.constant(course.indicator))
    for row, (maze, heading) in enumerate(STARTS):
        env = MazeEnv(world)
        frame, _ = env.reset(options={"maze": maze, "heading": heading})
        total = 0.0
        for t in range(STEPS):
            assert walked.valid[row, t]
            np.testing.assert_array_equal(images[walked.frame[row, t]], frame)
            assert walked.action[row, t] == SCRIPT[row, t]
            frame, reward, done, cut, info = env.step(int(SCRIPT[row, t]))
            total += reward
            assert float(walked.reward[row, t]) == pytest.approx(reward)
            if done or cut:
                break
        lengths.append(t + 1)
        assert not walked.valid[row, t + 1 :].numpy().any()
        assert not walked.reward[row, t + 1 :].numpy().any()
        assert bool(ended.success[row]) == info["success"]
        assert bool(ended.finished[row]) == done
        assert int(ended.steps[row]) == t + 1
        assert float(ended.total[row]) == pytest.approx(total, abs=1e-5)
    assert int(longest) == max(lengths)
    assert min(lengths) < STEPS  # a goal was reached
    assert any(ended.finished.numpy())


@pytest.mark.parametrize(
    ("reader", "policy"),
    [("frmqn", "lru"), ("mqn", "im-lemn"), ("frmqn", "s-lemn"), ("mqn", "st-lemn")],
)
def test_the_memory_is_that_of_the_layer(course, reader, policy):
    """Acting on rows of tables is acting on raw frames with `observe`, one step after the other."""
    model = agent(reader, policy)
    rows, steps = 2, 8
    starts = tf.constant(course.spawn[:rows, 3])
    walked, _ = walk(model, course, starts, steps, details=True)
    images = course.palette[course.frames]
    state, carry = model.memory.initial_state(rows), model.reader.initial_carry(rows)
    for t in range(steps):
        alive = walked.valid[:, t].numpy()
        frames = tf.constant(images[walked.frame[:, t]])
        query, codes = model.reader.ask(frames), model.reader.encode(state.entries)
        seen = model.reader.glance(query, codes, state.ids, carry)
        carry = seen.carry
        np.testing.assert_array_equal(state.ids.numpy()[alive], walked.ids[:, t, :-1][alive])
        np.testing.assert_allclose(
            seen.attention.numpy()[alive], walked.shown["attention"][:, t][alive], atol=1e-4
        )
        chances = tf.nn.softmax(model.reader.actor(seen.output)).numpy()
        np.testing.assert_allclose(chances[alive], walked.shown["actions"][:, t][alive], atol=1e-4)
        state = model.memory.attend(state, seen.attention)
        state, decision = model.memory.observe(state, frames)
        np.testing.assert_array_equal(decision.slot.numpy()[alive], walked.slot[:, t][alive])
        np.testing.assert_allclose(
            1.0 - decision.keep.numpy()[alive], walked.shown["drop"][:, t][alive], atol=1e-4
        )


def test_the_current_frame_is_not_in_the_memory_it_is_read_with(course):
    walked, _ = walk(agent("mqn", "fifo"), course, tf.constant([course.spawn[0, 0]]), STEPS)
    assert (walked.ids[0, 0, :-1].numpy() == EMPTY).all()
    np.testing.assert_array_equal(walked.ids[0, :, -1], np.arange(STEPS))
    np.testing.assert_array_equal(walked.ids[0, 5, :-1], [2, 3, 4])
    np.testing.assert_array_equal(walked.entries[0, :, -1], walked.frame[0])


def test_chance_is_a_function_of_the_seed(course):
    model = agent("mqn", "uniform")
    starts = tf.constant(course.spawn.reshape(-1))

    def sampled(seed):
        return walk(model, course, starts, STEPS, tf.constant(seed))[0]

    first, again, other = sampled([1, 2]), sampled([1, 2]), sampled([1, 3])
    for a, b in zip(first[:-1], again[:-1], strict=True):
        np.testing.assert_array_equal(a, b)
    assert (first.action.numpy() != other.action.numpy()).any()
    assert (first.slot.numpy() != other.slot.numpy()).any()
    shares = np.bincount(first.action.numpy()[first.valid.numpy()], minlength=3)
    assert shares.min() > 0.15 * shares.sum()  # an untrained agent tries everything


def test_compiled_or_not_the_walk_is_the_same(course):
    model = agent("frmqn")
    starts = tf.constant(course.spawn[:, 1])

    def act(seed):
        return walk(model, course, starts, STEPS, seed)

    plain, _ = act(tf.constant([3, 4]))
    compiled, _ = tf.function(act, jit_compile=True)(tf.constant([3, 4]))
    valid = plain.valid.numpy()
    np.testing.assert_array_equal(valid, compiled.valid)
    for name in ("frame", "action", "slot", "entries", "ids"):
        a, b = getattr(plain, name).numpy(), getattr(compiled, name).numpy()
        np.testing.assert_array_equal(a[valid], b[valid])


def test_many_frames_are_looked_at_a_block_at_a_time():
    tables, model = single_indicator_world(count=12).tables(), agent("mqn", "fifo")
    many, few = cut(tables, range(12)), cut(tables, [7])
    assert many.frames.shape[0] > 128
    both = [
        walk(model, c, tf.constant(s), 6)[0]
        for c, s in ((many, many.spawn[7]), (few, few.spawn[0]))
    ]
    np.testing.assert_array_equal(both[0].action, both[1].action)


def test_the_indicator_is_remembered_while_it_is_in_memory(course):
    """One look at the tile, then the corridor: FIFO with 3 slots loses it after three steps."""
    model, maze = agent("mqn", "fifo"), 2  # length 5
    script = np.zeros([2, STEPS], np.int32)
    script[0, 0] = script[0, 1] = 1  # west (the tile ahead), then south and down the corridor
    starts = tf.constant([course.spawn[maze, 0], course.spawn[maze, 3]])
    walked, _ = walk(model, course, starts, STEPS, script=tf.constant(script))
    held = course.indicator[walked.entries[0, :, :-1]] & (walked.ids[0, :, :-1].numpy() != EMPTY)
    np.testing.assert_array_equal(held.any(-1)[:6], [False, False, True, True, True, False])


def test_temperature(course):
    """Played at 0 the likeliest action is taken; at 1 others are too, the same ones every time."""
    starts = tf.constant(course.spawn.reshape(-1))
    cold = agent("mqn", "fifo")
    taken = []
    for model in (cold, cold.playing_at(1.0), cold.playing_at(1.0)):
        lived, _ = walk(model, course, starts, course.longest, details=True)
        likeliest = tf.argmax(lived.shown["actions"], axis=-1, output_type=tf.int32)
        agrees = tf.boolean_mask(lived.action == likeliest, lived.valid)
        assert bool(tf.reduce_all(agrees)) == (model.temperature == 0)
        taken.append(lived.action.numpy())
    np.testing.assert_array_equal(taken[1], taken[2])
    assert (taken[0] != taken[1]).any()
    with pytest.raises(ValueError, match="at least 0, got -1"):
        cold.playing_at(-1.0)
