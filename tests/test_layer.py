"""EpisodicMemory as a Keras layer: in someone's own model, with masks, nests, seeds; bad input."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf import EpisodicMemory, memory, retention


def test_in_a_functional_model(tmp_path):
    items = keras.Input((None, 6))
    state, decisions = EpisodicMemory(3, "st-lemn")(keras.layers.Masking()(items))
    assert state.entries.shape == (None, 3, 6)
    assert state.ids.dtype == "int64"
    assert decisions.keep.shape == (None, None, 4)
    pooled = keras.layers.GlobalAveragePooling1D()(state.entries, mask=state.filled)
    model = keras.Model(items, {"out": keras.layers.Dense(1)(pooled), "ids": state.ids})
    x = np.random.default_rng(0).normal(size=[8, 7, 6]).astype(np.float32)
    x[4:, 2:] = 0.0  # padding, which Masking marks
    before = model.predict(x, verbose=0)
    assert before["ids"][5].tolist() == [-1, 0, 1]
    model.get_layer(index=2).policy.trainable = False  # the answer's loss does not train it
    model.compile("adam", {"out": "mse", "ids": None})
    history = model.fit(x, {"out": x[:, :1, 0]}, epochs=2, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    for name, value in model.predict(x, verbose=0).items():
        np.testing.assert_allclose(loaded.predict(x, verbose=0)[name], value, atol=1e-6)


@keras.saving.register_keras_serializable("test")
class Bag(keras.layers.Layer):
    """Entries {tokens, text} to vectors: the sum of word embeddings."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.words = keras.layers.Embedding(20, 6)

    def build(self, shape):
        self.words.build(None)

    def call(self, entries):
        return tf.reduce_sum(self.words(entries["tokens"]), axis=-2)


def told(rows=2, steps=7):
    tokens = np.random.default_rng(0).integers(1, 20, [rows, steps, 4])
    text = [[f"{t} in {row}" for t in range(steps)] for row in range(rows)]
    return {"tokens": tf.constant(tokens, tf.int32), "text": tf.constant(text)}


def test_entries_may_be_nests_of_anything():
    layer = EpisodicMemory(3, "st-lemn", encoder=Bag())
    items = told()
    state, _ = layer(items)
    for row in range(2):
        for slot, i in enumerate(state.ids[row].numpy()):
            assert state.entries["text"][row, slot] == f"{i} in {row}"
            np.testing.assert_array_equal(
                state.entries["tokens"][row, slot], items["tokens"][row, i]
            )
    held = layer.initial_state(2)  # of the kind it has seen
    for t in range(7):
        held, _ = layer.observe(held, {k: v[:, t] for k, v in items.items()})
    np.testing.assert_array_equal(held.ids, state.ids)
    np.testing.assert_array_equal(held.entries["text"], state.entries["text"])


def test_with_an_encoder_inside_a_subclassed_model(tmp_path):
    @keras.saving.register_keras_serializable("test")
    class Own(keras.Model):
        def __init__(self, remember=None, **kwargs):
            super().__init__(**kwargs)
            self.remember = remember or EpisodicMemory(3, "st-lemn", encoder=Bag())
            self.head = keras.layers.Dense(2)

        def call(self, items):
            state, _ = self.remember(items)
            return self.head(tf.reduce_mean(self.remember.encode(state.entries), axis=1))

        def get_config(self):
            return {"remember": keras.saving.serialize_keras_object(self.remember)}

        @classmethod
        def from_config(cls, config):
            return cls(keras.saving.deserialize_keras_object(config["remember"]))

    model, items = Own(), told()
    expected = model(items)
    model.save(tmp_path / "own.keras")
    np.testing.assert_allclose(
        keras.models.load_model(tmp_path / "own.keras")(items), expected, atol=1e-6
    )


def test_entries_keep_their_type():
    items = tf.constant(np.random.default_rng(0).normal(size=[2, 5, 4]))
    assert items.dtype == tf.float64
    layer = EpisodicMemory(2, "s-lemn")
    state, decisions = layer(items)
    assert state.entries.dtype == tf.float64
    again, _ = layer(items, initial_state=state)
    assert again.entries.dtype == tf.float64
    assert layer.replay(layer.encode(items), decisions).logits.dtype == tf.float32


def test_slots_are_chosen_at_call_time():
    layer = EpisodicMemory(2, "st-lemn")
    items = tf.random.stateless_normal([1, 6, 4], [0, 1])
    for slots in (1, 3, 9):
        state, _ = layer(items, slots=slots)
        assert state.ids.shape == (1, slots)
    assert len(layer.weights) == len(EpisodicMemory.from_config(layer.get_config()).weights)


def test_masks_of_keras_are_heeded():
    """Attached to the items, with or without a state to go on from, or to part of a nest."""
    tokens = tf.constant([[1, 2, 0, 0], [3, 4, 5, 6]])
    vectors = keras.layers.Embedding(7, 3, mask_zero=True)(tokens)
    layer = EpisodicMemory(4, "lifo")
    state, _ = layer(vectors)
    assert state.clock.numpy().tolist() == [2, 4]
    again, _ = layer(vectors, initial_state=state)
    assert again.clock.numpy().tolist() == [4, 8]

    class First(keras.layers.Layer):
        supports_masking = True

        def call(self, entries):
            return entries[0]

    nested, _ = EpisodicMemory(4, "lifo", First())((vectors, tokens))
    assert nested.clock.numpy().tolist() == [2, 4]


def test_padding_in_the_middle_changes_nothing():
    items = tf.random.stateless_normal([1, 8, 4], [0, 1])
    layer = EpisodicMemory(3, "st-lemn")
    plain, _ = layer(items)
    spread = tf.concat([items[:, :2], items[:, :3], items[:, 2:]], 1)
    mask = tf.constant([[True] * 2 + [False] * 3 + [True] * 6])
    padded, _ = layer(spread, mask=mask)
    for one, other in zip(tf.nest.flatten(plain), tf.nest.flatten(padded), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_sampling():
    layer = EpisodicMemory(3, "uniform")
    items = tf.zeros([4, 12, 2])

    @tf.function(autograph=False)
    def seeded(seed):
        return layer(items, training=True, seed=seed)[0].ids

    def ids(seed=None, training=False):
        if seed is not None:
            return seeded(tf.constant(seed)).numpy().tolist()
        return layer(items[:, :9], training=training)[0].ids.numpy().tolist()

    assert ids(seed=[1, 2]) == ids(seed=[1, 2])
    assert ids(seed=[1, 2]) != ids(seed=[1, 3])
    assert ids(training=True) != ids(training=True)  # the layer draws a seed
    assert ids() == ids()
    rows = ids(seed=[1, 2])
    assert rows[0] != rows[1]
    padded, _ = layer(tf.zeros([4, 15, 2]), mask=tf.sequence_mask([12] * 4, 15), seed=[1, 2])
    assert padded.ids.numpy().tolist() == rows


def test_pins_and_forgetting_between_steps():
    layer = EpisodicMemory(2, "fifo")
    items = tf.reshape(tf.range(1.0, 7.0), [1, 6, 1])

    def after_step(t, state):
        state = memory.pin(state, 1)
        return memory.forget(state, tf.where(t == 5, tf.constant(5, tf.int64), -7)[None])

    state, _ = layer(items, after_step=after_step)
    assert state.ids.numpy().tolist() == [[1, -1]]
    assert state.entries.numpy().tolist() == [[[2.0], [0.0]]]  # forgotten, contents and all


def test_time_to_live():
    layer = EpisodicMemory(2, "lifo")
    state = layer.initial_state(1, tf.TensorSpec([1]))
    for ttl in (None, 2, None, None):
        state, decision = layer.observe(state, tf.zeros([1, 1]), ttl=ttl)
    assert decision.evicted.numpy().tolist() == [1]  # LIFO alone would have refused item 3
    assert state.ids.numpy().tolist() == [[0, 3]]


def test_gradients_through_a_compiled_stream():
    """XLA differentiates loops over known shapes only: let it compile for each shape."""
    layer = EpisodicMemory(2, "st-lemn")
    layer.initial_state(1, tf.TensorSpec([4]))
    weights = [w.value for w in layer.trainable_weights]

    @tf.function(input_signature=[tf.TensorSpec([2, 5, 4])], jit_compile=True)
    def gradients(items):
        with tf.GradientTape() as tape:
            _, decisions = layer(items, training=True, seed=[1, 2])
            loss = tf.reduce_sum(decisions.log_prob + decisions.entropy)
        return tape.gradient(loss, weights)

    for gradient in gradients(tf.random.stateless_normal([2, 5, 4], [0, 1])):
        assert np.all(np.isfinite(gradient))


def test_a_bad_item_leaves_gradients_whole():
    """Through an encoder that learns, too: NaN times 0 would be NaN."""
    layer = EpisodicMemory(2, "st-lemn", encoder=keras.layers.Dense(3))
    items = np.random.default_rng(0).normal(size=[1, 6, 4]).astype(np.float32)
    items[0, 2] = np.nan
    _, decisions = layer(items)
    weights = [w.value for w in layer.trainable_weights]
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer.replay(layer.encode(items), decisions).logits ** 2)
    gradients = tape.gradient(loss, weights)
    assert len(gradients) == len(layer.policy.weights) + 2
    for gradient in gradients:
        assert np.all(np.isfinite(gradient))


@pytest.mark.parametrize("precision", ["mixed_bfloat16", "mixed_float16"])
def test_inside_a_model_of_mixed_precision(precision):
    """What the memory keeps is what it keeps in float32, of numbers that Keras does not round."""

    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.remember = EpisodicMemory(3, "st-lemn")
            self.head = keras.layers.Dense(2)

        def call(self, items):
            state, decisions = self.remember(items)
            return self.head(tf.reduce_mean(state.entries, axis=1)), decisions.slot

    items = tf.random.stateless_normal([2, 8, 4], [0, 1])
    items = tf.cast(tf.cast(items, tf.bfloat16), tf.float32)
    plain = Own()
    _, expected = plain(items)
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(precision)
    try:
        mixed = Own()
        mixed(items)
    finally:
        keras.config.set_dtype_policy(before)
    mixed.set_weights(plain.get_weights())
    answer, slots = mixed(items)
    assert answer.dtype == precision.removeprefix("mixed_")
    np.testing.assert_array_equal(slots, expected)


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"slots": 0}, ValueError, "at least 1 slot; got slots=0"),
        ({"slots": "5"}, TypeError, "whole number; got '5'"),
        ({"policy": "belady"}, ValueError, "unknown policy 'belady'; known are fifo, lifo"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        EpisodicMemory(**arguments)


@pytest.mark.parametrize(
    ("items", "options", "error", "message"),
    [
        (tf.zeros([3]), {}, ValueError, r"got shape \(3,\)"),
        (tf.zeros([2, 3]), {}, ValueError, r"\[B, T, D\]; got shape \(2, 3\)"),
        (tf.zeros([2, 3, 4, 5]), {}, ValueError, r"\[B, T, D\]; got shape"),
        (tf.zeros([2, 0, 4]), {}, ValueError, "at least one step"),
        (tf.zeros([2, 3, 4], tf.int32), {}, TypeError, "float tensor of vectors; got int32"),
        (tf.zeros([2, 3, 4]), {"mask": tf.ones([2, 3])}, TypeError, "mask must be bool; got float"),
        (
            tf.zeros([2, 3, 4]),
            {"mask": tf.fill([2, 4], True)},
            ValueError,
            r"mask must be \[B, T\]",
        ),
        (tf.zeros([2, 3, 4]), {"mask": tf.fill([2], True)}, ValueError, r"mask must be \[B, T\]"),
        (tf.zeros([2, 3, 4]), {"seed": [1, 2, 3]}, ValueError, "seed must be two integers; got"),
        (tf.zeros([2, 3, 4]), {"seed": [0.5, 1.0]}, ValueError, "seed must be two integers; got"),
        (tf.zeros([2, 3, 4]), {"slots": 0}, ValueError, "at least 1 slot; got slots=0"),
    ],
)
def test_bad_streams(items, options, error, message):
    with pytest.raises(error, match=message):
        EpisodicMemory(2, "fifo")(items, **options)


def test_mismatched_states():
    layer = EpisodicMemory(2, "st-lemn")
    items = tf.zeros([3, 4, 8])
    good = layer.initial_state(3, tf.TensorSpec([8]))
    other_policy = EpisodicMemory(2, "fifo").initial_state(3, tf.TensorSpec([8]))
    other_width = EpisodicMemory(2, retention.get("st-lemn", hidden=5))
    cases = [
        (other_policy, ValueError, "another policy than 'st-lemn': expected a carry .* got "),
        (other_width.initial_state(3, tf.TensorSpec([8])), ValueError, "another policy"),
        (layer.initial_state(2, tf.TensorSpec([8])), ValueError, r"shape \(2, 8\); got \(3, 8\)"),
        (good._replace(entries=tf.zeros([3, 2, 5])), ValueError, r"\(3, 5\); got \(3, 8\)"),
        (good._replace(entries=tf.zeros([3, 2, 8], tf.int32)), TypeError, "must be int32; got"),
        (good._replace(clock=tf.zeros([3])), TypeError, "state.clock must be int64"),
        (tuple(good), TypeError, "expected a MemoryState; got tuple"),
    ]
    for state, error, message in cases:
        with pytest.raises(error, match=message):
            layer(items, initial_state=state)
        with pytest.raises(error, match=message):
            layer.observe(state, items[:, 0])
    with pytest.raises(ValueError, match="initial_state has 2 slots; got slots=5"):
        layer(items, initial_state=good, slots=5)


def test_initial_state_needs_to_know_the_items():
    with pytest.raises(ValueError, match="has not seen an item yet"):
        EpisodicMemory(2).initial_state(3)
    with pytest.raises(ValueError, match="must be encoded as vectors"):
        EpisodicMemory(2, encoder=keras.layers.Flatten()).initial_state(3, tf.TensorSpec([4]))


def test_ragged_streams_are_padded_streams():
    """Streams of any length, one row each, give what a mask gives."""
    items = np.random.default_rng(0).normal(size=[3, 7, 4]).astype(np.float32)
    lengths = np.array([7, 2, 5])
    remember = EpisodicMemory(3, "st-lemn")
    ragged = tf.RaggedTensor.from_tensor(tf.constant(items), lengths=lengths)
    state, decisions = remember(ragged)
    same, others = remember(items, mask=tf.sequence_mask(lengths, 7))
    np.testing.assert_array_equal(state.ids, same.ids)
    np.testing.assert_array_equal(decisions.evicted, others.evicted)


def test_memory_at_points_of_the_stream():
    """What `ask_at` recalls is the memory of a stream that ended there, padding or not."""
    items = np.random.default_rng(0).normal(size=[2, 9, 4]).astype(np.float32)
    mask = np.ones([2, 9], bool)
    mask[1, [0, 4]] = False
    remember = EpisodicMemory(3, "st-lemn")
    recalled, _ = remember(
        items, mask=tf.constant(mask), ask_at=tf.constant([[1, 5, 9], [2, 7, -1]])
    )
    for row, places in enumerate([[1, 5, 9], [2, 7, -1]]):
        for question, seen in enumerate(places):
            if seen < 0:
                assert np.all(recalled.ids[row, question] == -1)
                continue
            stream = items[row][mask[row]][None, :seen]
            state, _ = remember(stream)
            np.testing.assert_array_equal(recalled.ids[row, question], state.ids[0])
            np.testing.assert_allclose(recalled.entries[row, question], state.entries[0])
    with pytest.raises(ValueError, match="ask_at must be integers"):
        remember(items, ask_at=tf.constant([1, 2]))
