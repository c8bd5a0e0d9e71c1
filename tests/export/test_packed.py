"""A packed state comes back as it was, or is refused."""

import random

import numpy as np
import pytest
import tensorflow as tf

from lemn_tf.export.packed import Packing

SPEC = {
    "clock": tf.TensorSpec([], tf.int64),
    "text": tf.TensorSpec([3], tf.string),
    "frame": tf.TensorSpec([3, 2, 2], tf.uint8),
    "carry": tf.TensorSpec([3, 2], tf.float32),
    "pinned": tf.TensorSpec([3], tf.bool),
    "half": tf.TensorSpec([3], tf.float16),
}


def example(batch):
    draw = np.random.default_rng(0)
    return {
        "clock": tf.constant(draw.integers(0, 2**62, [batch]), tf.int64),
        "text": tf.repeat([["", "naïve", "\x00.\n"]], batch, axis=0),
        "frame": tf.constant(draw.integers(0, 256, [batch, 3, 2, 2]), tf.uint8),
        "carry": tf.constant(draw.normal(size=[batch, 3, 2]), tf.float32),
        "pinned": tf.constant(draw.integers(0, 2, [batch, 3]), tf.bool),
        "half": tf.constant(draw.normal(size=[batch, 3]), tf.float16),
    }


@pytest.fixture(scope="module")
def packing():
    return Packing(SPEC, "0123456789abcdef", example(1))


@pytest.fixture(scope="module")
def unpack(packing):
    return tf.function(packing.unpack, input_signature=[tf.TensorSpec([None], tf.string)])


@pytest.mark.parametrize("batch", [0, 1, 5])
def test_round_trip(packing, unpack, batch):
    state = example(batch)
    got = unpack(packing.pack(state))
    assert list(got) == list(state)
    for name in state:
        np.testing.assert_array_equal(got[name], state[name])
        assert got[name].dtype == state[name].dtype


def test_it_is_printable_and_as_long_as_said(packing):
    (packed,) = packing.pack(example(1)).numpy()
    assert packed.decode().isprintable()
    assert len(packed) == packing.length(len("naïve".encode()) + 3)


def test_an_empty_string_is_a_fresh_memory(unpack):
    got = unpack(tf.constant(["", ""]))
    for name, tensor in example(1).items():
        np.testing.assert_array_equal(got[name][1], tensor[0])


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (b"x", r"state: expected a string lemn1\.\*; got\] \[x\]"),
        (b"\xff\x00", "state: expected a string"),
        (b"lemn2.0123456789abcdef.AAAA", "state: expected a string"),
        (b"lemn1.fedcba9876543210.AAAA", r"this very model, lemn1\.0123456789abcdef"),
        (b"lemn1.0123456789abcdef.", "truncated or damaged"),
        (b"lemn1.0123456789abcdef.\xff", "truncated or damaged"),
    ],
)
def test_a_foreign_state_is_refused(unpack, state, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        unpack(tf.constant([state]))


def test_a_damaged_state_is_refused(packing, unpack):
    (packed,) = packing.pack(example(1)).numpy()
    draw = random.Random(0)
    for _ in range(300):
        at = draw.randrange(len(packed) - 1)  # the very last character has unused bits
        kind = draw.choice(("cut", "change", "insert"))
        other = bytes([draw.randrange(256)])
        if kind == "cut":
            bad = packed[:at] if at else b"l"
        elif kind == "change":
            bad = packed[:at] + other + packed[at + 1 :]
        else:
            bad = packed[:at] + other + packed[at:]
        if bad == packed:
            continue
        with pytest.raises(tf.errors.InvalidArgumentError, match="state: "):
            unpack(tf.constant([packed, bad]))


def test_forged_lengths_are_refused():
    spec = {"text": tf.TensorSpec([2], tf.string)}
    words = Packing(spec, "0" * 16, {"text": tf.constant([["", ""]])})
    numbers = {"lengths": tf.TensorSpec([2], tf.int32)}
    forge = Packing(numbers, "0" * 16, {"lengths": tf.zeros([1, 2], tf.int32)})
    for lengths in ([-5, 5], [1, 0], [2**31 - 1, 1], [-(2**31), 0]):
        state = forge.pack({"lengths": tf.constant([lengths], tf.int32)})
        with pytest.raises(tf.errors.InvalidArgumentError, match="truncated or damaged"):
            words.unpack(state)
