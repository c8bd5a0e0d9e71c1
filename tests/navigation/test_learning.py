"""The update: gradients everywhere, the same steps as were acted, and something is learned."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf.mazes import Maze, Rules, build, imaze_world, single_indicator_world
from lemn_tf.memory import EMPTY
from lemn_tf.navigation.learning import Learner, astray, compact, losses
from lemn_tf.navigation.navigator import Navigator
from lemn_tf.navigation.recipe import Recipe
from lemn_tf.navigation.rollout import colours, walk
from lemn_tf.pipelines.frames import cut
from lemn_tf.retention.base import Cells

TINY = {"units": 6, "width": 4, "filters": (2, 3)}
STEPS = 12


SHIFTS = {"importance/bias", "s-lemn/hidden/bias"}
"""Biases that all candidates share: they cancel in the softmax, so nothing can move them."""


def everything(world):
    """All maps of a world, as an element of a stream has them."""
    arrays = cut(world.tables(), range(len(world.mazes)))
    return tf.nest.map_structure(tf.constant, arrays)


@pytest.fixture(scope="module")
def course():
    return everything(imaze_world([4], rules=Rules(-0.04, STEPS)))


def agent(reader="mqn", policy="st-lemn", **knows):
    keras.utils.set_random_seed(2)
    model = Navigator(reader, 3, policy, **TINY, **knows)
    for layer in (model.when, model.past):  # they begin with zeros
        for weight in layer.weights if layer is not None else ():
            weight.assign(keras.random.normal(weight.shape))
    return model


def walked(model, course, details=False):
    starts = tf.reshape(course.spawn, [-1])
    return walk(model, course, starts, STEPS, tf.constant([5, 6]), details)


@pytest.mark.parametrize(
    ("reader", "policy", "knows"),
    [
        ("frmqn", "fifo", {}),
        ("mqn", "im-lemn", {}),
        ("mqn", "s-lemn", {"dated": True, "acted": 2}),
        ("frmqn", "st-lemn", {}),
    ],
)
def test_a_gradient_reaches_every_weight(course, reader, policy, knows):
    model = agent(reader, policy, **knows)
    learner = Learner(model, Recipe(), jit_compile=False)
    lived, steps = walked(model, course)
    gradients, shown = learner.gradients(compact(lived, int(steps), course), tf.constant(0.01))
    for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
        assert gradient is not None, variable.path
        if not variable.path.endswith(tuple(SHIFTS)):
            assert np.abs(tf.convert_to_tensor(gradient)).max() > 0, variable.path
    assert all(np.isfinite(value) for value in shown.values())
    assert ("eviction_entropy" in shown) == (policy != "fifo")


@pytest.mark.parametrize(
    ("reader", "policy", "knows"),
    [
        ("frmqn", "im-lemn", {}),
        ("frmqn", "fifo", {"acted": 1}),
        ("mqn", "st-lemn", {"dated": True, "acted": 3}),
    ],
)
def test_what_is_learned_from_is_what_was_acted(course, reader, policy, knows):
    model = agent(reader, policy, **knows)
    lived, _ = walked(model, course, details=True)
    views = model.look(colours(course.frames, course.palette))
    output, attention = model.unroll(
        tf.gather(views.query, lived.frame),
        tf.gather(views.codes, lived.entries[..., :-1]),
        lived.ids,
        lived.action,
    )
    valid = lived.valid.numpy()
    actions = tf.nn.softmax(model.reader.actor(output)).numpy()
    np.testing.assert_allclose(actions[valid], lived.shown["actions"][valid], atol=1e-4)
    np.testing.assert_allclose(attention[valid], lived.shown["attention"][valid], atol=1e-4)
    if not model.learns:
        return
    cells = Cells(tf.gather(views.vectors, lived.entries), lived.ids, lived.ids[..., -1] + 1)
    drop = tf.nn.softmax(model.memory.policy.replay(cells, lived.slot).logits).numpy()
    free = valid & (lived.ids.numpy() != EMPTY).all(-1)
    np.testing.assert_allclose(drop[free], lived.shown["drop"][free], atol=1e-4)


def test_cutting_and_renumbering_change_no_loss():
    world = single_indicator_world(count=6, rules=Rules(-0.04, 40))
    course, model = everything(world), agent("mqn", "s-lemn")
    assert course.frames.shape[0] > 128
    starts = course.spawn[:, 0]
    script = np.zeros([6, 40], np.int32)
    script[:, ::3] = 1
    lived, _ = walk(model, course, starts, 40, tf.constant([1, 1]), script=tf.constant(script))
    valid = lived.valid & (tf.range(40) < 20)  # as if all had ended by then
    lived = lived._replace(valid=valid, reward=tf.where(valid, lived.reward, 0.0))
    small = compact(lived, 20, course)
    assert small.walk.valid.shape[1] == 24
    assert small.frames.shape[0] < course.frames.shape[0]
    whole = small._replace(
        walk=lived,
        frames=course.frames,
        indicator=course.indicator,
    )
    for batch in (small, whole):
        loss, shown = losses(model, Recipe(), batch, tf.constant(0.05))
        if batch is small:
            expected = (float(loss), {name: float(x) for name, x in shown.items()})
    assert float(loss) == pytest.approx(expected[0], abs=1e-4)
    for name, value in expected[1].items():
        assert float(shown[name]) == pytest.approx(value, abs=1e-4), name


def test_two_choices_share_one_return(course):
    """Without an advantage nothing moves the policies; the entropies alone are left."""
    model = agent()
    lived, steps = walked(model, course)
    batch = compact(lived._replace(reward=tf.zeros_like(lived.reward)), int(steps), course)
    model.critic.kernel.assign(tf.zeros_like(model.critic.kernel))
    recipe = dataclasses.replace(Recipe(), eviction_entropy=0.0)
    learner = Learner(model, recipe, jit_compile=False)
    gradients, shown = learner.gradients(batch, tf.constant(0.0))
    assert shown["value_loss"] == 0
    assert max(float(tf.reduce_max(tf.abs(g))) for g in gradients) < 1e-6


def test_astray_is_minus_the_log_of_the_marked_share():
    logits = np.log([[0.2, 0.3, 0.5], [0.2, 0.3, 0.5], [1.0, 1e-30, 1e-30]])
    marked = [[True, False, True], [False, True, False], [False, True, False]]
    lost = astray(tf.constant(logits, tf.float32), tf.constant(marked))
    np.testing.assert_allclose(lost, -np.log([0.7, 0.3, 1e-30]), rtol=1e-5)


@pytest.mark.slow
def test_guidance_shows_the_way(course):
    """Without any reward, it raises the probability of the shortest way, and only of that."""
    model = agent()
    lived, steps = walked(model, course)
    batch = compact(lived._replace(reward=tf.zeros_like(lived.reward)), int(steps), course)
    recipe = dataclasses.replace(Recipe(), eviction_entropy=0.0, value=0.0, guidance=1.0)
    learner = Learner(model, recipe, jit_compile=False)

    def on_the_way():
        again, _ = walk(
            model,
            course,
            tf.reshape(course.spawn, [-1]),
            STEPS,
            details=True,
            script=lived.action,
        )
        marked = again.shortest.numpy()
        share = (again.shown["actions"].numpy() * marked).sum(-1)
        return share[again.valid.numpy() & marked.any(-1)].mean()

    before = on_the_way()
    assert before < 0.6
    gradients_of = tf.function(learner.gradients)
    for _ in range(30):
        gradients, _ = gradients_of(batch, tf.constant(0.0), tf.constant(1.0))
        learner.optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    assert on_the_way() > before + 0.05


def test_a_short_way_is_learned():
    """The right goal is next to the start: it is reached more and more often."""
    maze = Maze(("#####", "#YSR#", "#.+C#", "#...#", "#####"), goal="R")
    course = everything(build([maze], Rules(-0.1, 8)))
    keras.utils.set_random_seed(2)
    model = Navigator("mqn", 2, "s-lemn", units=64, width=8, filters=(8, 16))
    learner = Learner(model, Recipe(learning_rate=3e-3, entropy=0.01), jit_compile=False)
    starts = tf.tile(course.spawn[0], [8])
    success = [learner.update(course, starts, (0, n), 0.0)["success"] for n in range(60)]
    assert np.mean(success[-10:]) > 0.9 > np.mean(success[:10]) + 0.3
