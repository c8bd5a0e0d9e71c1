"""Law 11: everything works in 16 bits too, whether Keras mixes types or not."""

import numpy as np
import pytest
import tensorflow as tf

from lemn_tf import EpisodicMemory, memory, retention

PRECISIONS = ["mixed_bfloat16", "mixed_float16", "bfloat16", "float16"]
NARROW = (tf.bfloat16, tf.float16)


@pytest.mark.parametrize("precision", PRECISIONS, indirect=True)
def test_law_11_the_same_kinds_of_outputs_and_nearly_the_same_numbers(subject, expected, precision):
    narrow = subject.make()
    assert narrow.compute_dtype == precision.removeprefix("mixed_") or "float16" in subject.name
    outputs = subject.run(narrow, subject.inputs(4))
    assert set(outputs) == set(expected)
    for name, value in outputs.items():
        wanted = expected[name]
        assert value.shape == wanted.shape, name
        if name not in ("vectors", "match"):  # what is seen may be narrow, what is said may not
            assert value.dtype == wanted.dtype, name
        if value.dtype.is_floating:
            assert np.all(np.isfinite(tf.cast(value, tf.float32))), name
    if subject.kind == "memory":
        agree_where_it_is_clear(outputs, expected)
    else:
        for name, value in outputs.items():
            wanted, value = expected[name].numpy(), tf.cast(value, tf.float32).numpy()
            np.testing.assert_allclose(value, wanted, atol=0.05 * np.abs(wanted).max() + 0.02)


def agree_where_it_is_clear(outputs, expected):
    """Until the first step at which two candidates were nearly as likely to leave."""
    differ = outputs["slot"].numpy() != expected["slot"].numpy()
    for row in np.flatnonzero(differ.any(axis=1)):
        step = np.argmax(differ[row])
        keep = expected["keep"][row, step].numpy()
        ours, theirs = (int(told["slot"][row, step]) for told in (outputs, expected))
        assert keep[ours] - keep[theirs] < 0.05


@pytest.mark.parametrize("precision", PRECISIONS, indirect=True)
@pytest.mark.parametrize("name", retention.NAMES)
def test_law_11_a_policy_may_be_narrow_itself(name, precision):
    """Built with a `dtype` of its own, it computes in it; what it carries is as it declares."""
    policy = retention.get(name, dtype=precision)
    assert policy.compute_dtype == precision.removeprefix("mixed_")
    layer = EpisodicMemory(3, policy)
    items = np.abs(np.random.default_rng(0).normal(size=[2, 8, 6])).astype(np.float32)
    state, decisions = layer(tf.constant(items))
    held = layer.initial_state(2, tf.TensorSpec([6]))
    for t in range(8):
        held, decision = layer.observe(held, tf.constant(items[:, t]))
        np.testing.assert_array_equal(decision.slot, decisions.slot[:, t])
    np.testing.assert_array_equal(held.ids, state.ids)
    for spec, leaf in zip(
        tf.nest.flatten(policy.carry_spec()), tf.nest.flatten(state.carry), strict=True
    ):
        assert leaf.dtype == spec.dtype
        assert leaf.dtype not in NARROW
    memory.check_state(state)
    scores = layer.replay(layer.encode(tf.constant(items)), decisions)
    assert scores.logits.dtype == scores.features.dtype == decisions.keep.dtype == tf.float32


@pytest.mark.parametrize("precision", ["mixed_bfloat16", "mixed_float16"], indirect=True)
@pytest.mark.parametrize("name", ["im-lemn", "s-lemn", "st-lemn"])
def test_law_11_gradients(name, precision):
    layer = EpisodicMemory(3, name)
    items = tf.random.stateless_normal([2, 8, 6], [0, 1])
    _, decisions = layer(items)
    weights = layer.trainable_weights
    with tf.GradientTape() as tape:
        scores = layer.replay(layer.encode(items), decisions)
        loss = tf.reduce_sum(tf.where(decisions.free[..., None], scores.logits, 0.0) ** 2)
    for weight, gradient in zip(
        weights, tape.gradient(loss, [w.value for w in weights]), strict=True
    ):
        assert gradient.dtype == tf.float32
        assert np.any(np.asarray(gradient) != 0), weight.path
