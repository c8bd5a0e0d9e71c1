"""MemoryModel: learned memories in models of any make, by Keras' own `compile` and `fit`."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf import EpisodicMemory, MemoryModel
from lemn_tf.learning import ActorCritic, Hindsight

T, N, D, CLASSES = 8, 2, 6, 2


def task(count=64, seed=0, steps=T):
    """One item of each stream is flagged; at the end its class is asked for."""
    generator = np.random.default_rng(seed)
    items = generator.normal(size=[count, steps, D]).astype(np.float32)
    items[..., 0] = 0.0
    which = generator.integers(0, steps - 2, count)
    label = generator.integers(0, CLASSES, count)
    items[np.arange(count), which, 0] = 3.0
    items[:, :, 1 : 1 + CLASSES] = np.eye(CLASSES)[generator.integers(0, CLASSES, [count, steps])]
    items[np.arange(count), which, 1 : 1 + CLASSES] = np.eye(CLASSES)[label]
    return items, label


@keras.saving.register_keras_serializable("test_memory_model")
class Attend(keras.layers.Layer):
    """Looks for the flagged entry in `[..., N, D]`, and says its class."""

    def __init__(self, units=CLASSES, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.look = keras.layers.Dense(16, activation="relu")
        self.score, self.out = keras.layers.Dense(1), keras.layers.Dense(units)

    def build(self, shapes):
        self.look.build((None, shapes[0][-1]))
        self.score.build((None, 16))
        self.out.build((None, shapes[0][-1]))

    def call(self, inputs):
        entries, filled = inputs
        score = tf.where(filled, self.score(self.look(entries))[..., 0], -1e4)
        weights = tf.nn.softmax(tf.cast(score, entries.dtype))
        return self.out(tf.einsum("...n,...nd->...d", weights, entries))

    def get_config(self):
        return {**super().get_config(), "units": self.units}


def functional(policy="st-lemn", head=None, slots=N, **options):
    keras.utils.set_random_seed(0)
    stream = keras.Input((None, D))
    state, _ = EpisodicMemory(slots, policy)(stream)
    answer = (head or Attend())([state.entries, state.filled])
    return MemoryModel(stream, answer, **options)


class Subclass(MemoryModel):
    """The same model as a class."""

    def __init__(self, policy="st-lemn"):
        super().__init__()
        self.memory, self.head = EpisodicMemory(N, policy), Attend()

    def call(self, inputs, training=False):
        state, _ = self.memory(inputs, training=training)
        return self.head([state.entries, state.filled])


class WithAnswer(Subclass):
    """It says what comes behind its memory."""

    def answer(self, state, inputs, training=False):
        return self.head([state.entries, state.filled])


LOSS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def compiled(model, **options):
    """Compiled to run as it is, which is soonest for a few updates, and with no warm-up."""
    eager = "jit_compile" not in options
    options = {"warmup": 0, "run_eagerly": eager, **options}
    model.compile(keras.optimizers.Adam(1e-2), LOSS, metrics=["accuracy"], **options)
    return model


def subclassed(cls):
    keras.utils.set_random_seed(0)
    return cls()


def test_learns_to_keep_what_is_asked_for():
    model, (x, y) = compiled(functional(), jit_compile=False, warmup=None), task(512)
    history = model.fit(x, y, batch_size=64, epochs=40, verbose=0).history
    accuracy = model.evaluate(*task(256, seed=1), verbose=0, return_dict=True)["accuracy"]
    assert accuracy > 0.9
    assert {"loss", "accuracy", "hindsight", "entropy", "random_memory_loss"} <= set(history)


def test_all_makes_give_the_same_gradients():
    """Cut out of a graph, by a method or by running everything again: the same lesson."""
    x, y = task(8)
    found, weights = [], None
    for make in (functional, lambda: subclassed(Subclass), lambda: subclassed(WithAnswer)):
        model = compiled(make())
        model(x)
        weights = weights or model.get_weights()
        model.set_weights(weights)
        gradients, loss, _, _ = model.gradients(
            (x, tf.constant(y)), tf.constant([1, 2]), tf.constant([0.1])
        )
        found.append([loss, *gradients])
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6)


def test_credit_against_lists():
    """Every variant is what the head makes of a memory that was built by hand."""
    model, (x, y) = compiled(functional()), task(6)
    seen = []

    class Spy(Hindsight):
        def __call__(self, rollout):
            seen.append((rollout, rollout.flipped()))
            return super().__call__(rollout)

    model = compiled(model, retention=Spy())
    model.losses_of((tf.constant(x), tf.constant(y)), tf.constant([3, 4]), tf.constant([0.1]), None)
    (rollout, flipped), head = seen[0], model.layers[-1]

    def probability(row, held):
        entries = np.zeros([1, N + 1, D], np.float32)
        entries[0, : len(held)] = x[row, held]
        filled = np.arange(N + 1)[None] < len(held)
        logits = head([tf.constant(entries), tf.constant(filled)])
        return tf.nn.softmax(logits)[0, y[row]]

    for row in range(6):
        held = [int(i) for i in rollout.kept[row, 0] if i >= 0]
        np.testing.assert_allclose(rollout.probability[row, 0], probability(row, held), rtol=1e-4)
        for item in range(T):
            other = sorted({*held} ^ {item})
            expected = probability(row, other)
            np.testing.assert_allclose(flipped[row, 0, item], expected, rtol=1e-4)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_xla_and_shards_change_no_number(jit_compile):
    x, y = task(16)
    weights = []
    plain = {"random_memories": 0.0}  # which each shard draws for itself
    for options in ({"run_eagerly": True}, {"jit_compile": jit_compile, "shards": 2}):
        model = functional("fifo")
        model.compile(keras.optimizers.SGD(0.1), LOSS, **plain, **options)
        model.fit(x, y, batch_size=16, verbose=0)
        weights.append(model.get_weights())
    for one, other in zip(*weights, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_save_and_load(tmp_path):
    model, (x, y) = functional(), task(32)
    compiled(model, retention=[Hindsight(entropy=0.2), ActorCritic(reward="probability")])
    model.fit(x, y, batch_size=32, verbose=0)
    model.save(tmp_path / "model.keras")
    twin = keras.saving.load_model(tmp_path / "model.keras")
    assert isinstance(twin, MemoryModel)
    np.testing.assert_allclose(twin.predict(x, verbose=0), model.predict(x, verbose=0), atol=1e-6)
    assert twin.objectives == model.objectives
    assert twin.objectives[0].entropy == 0.2
    for one in (model, twin):  # optimizer, critic and all: they go on alike
        one.fit(x, y, batch_size=32, verbose=0, shuffle=False)
    for one, other in zip(model.get_weights(), twin.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_a_model_with_a_query_is_saved_after_fit(tmp_path):
    """Inputs that meet the memory's output directly still belong to the model."""
    stream, query = keras.Input((None, D), name="stream"), keras.Input((3,), name="query")
    state, _ = EpisodicMemory(N, "st-lemn")(stream)
    seen = keras.layers.GlobalMaxPooling1D()(state.entries)
    answer = keras.layers.Dense(CLASSES)(keras.layers.Concatenate()([seen, query]))
    model = compiled(MemoryModel({"stream": stream, "query": query}, {"answer": answer}))
    items, label = task(32)
    x, y = {"stream": items, "query": items[:, 0, :3]}, {"answer": label}
    for _ in range(2):  # a loaded one can be trained and saved again
        model.fit(x, y, batch_size=32, verbose=0)
        model.save(tmp_path / "model.keras")
        twin = keras.saving.load_model(tmp_path / "model.keras")
        expected = model.predict(x, verbose=0)["answer"]
        np.testing.assert_allclose(twin.predict(x, verbose=0)["answer"], expected, atol=1e-6)
        model = twin


@pytest.mark.parametrize("first", ["memory", "embedding"])
def test_an_encoder_that_the_head_uses_too_is_saved_once(tmp_path, first):
    stream, query = keras.Input((None,), dtype="int32"), keras.Input((1,), dtype="int32")
    embed = keras.layers.Embedding(9, 4)
    asked = embed(query) if first == "embedding" else None
    state, _ = EpisodicMemory(N, "st-lemn", encoder=embed)(stream)
    seen = [embed(state.entries), embed(query) if asked is None else asked]
    seen = [keras.layers.GlobalAveragePooling1D()(one) for one in seen]
    model = MemoryModel([stream, query], keras.layers.Dense(2)(keras.layers.Concatenate()(seen)))
    model.save(tmp_path / "model.keras")
    twin = keras.saving.load_model(tmp_path / "model.keras")
    x = [np.arange(16).reshape(2, 8) % 9, np.array([[1], [2]])]
    np.testing.assert_allclose(twin.predict(x, verbose=0), model.predict(x, verbose=0), atol=1e-6)
    assert len(twin.weights) == len(model.weights)


def test_padding_anywhere_changes_nothing():
    """Masked streams, padded in front, in the middle or behind, give the same gradients."""
    x, y = task(4)
    stream = keras.Input((None, D))
    masked = keras.layers.Masking(-7.0)(stream)
    keras.utils.set_random_seed(0)
    state, _ = EpisodicMemory(N, "st-lemn")(masked)
    model = compiled(MemoryModel(stream, Attend()([state.entries, state.filled])))
    model(x)
    found = []
    for places in (range(T), range(3, T + 3), [0, 1, 2, 5, 6, 7, 9, 10]):
        padded = np.full([4, T + 3, D], -7.0, np.float32)
        padded[:, list(places)] = x
        _, loss, _, logs = model.gradients(
            (tf.constant(padded), tf.constant(y)), tf.constant([1, 2]), tf.constant([0.1])
        )
        found.append([loss, logs["hindsight"]])
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-5)
    for other in found[1:]:
        np.testing.assert_allclose(found[0], other, rtol=1e-4)


def test_questions_along_the_stream():
    """Asked at two points: the credit of each goes to the memory of its own time."""
    stream, ask_at = keras.Input((None, D)), keras.Input((2,), dtype="int32")
    keras.utils.set_random_seed(0)
    recalled, _ = EpisodicMemory(N, "st-lemn")(stream, ask_at=ask_at)
    model = MemoryModel([stream, ask_at], Attend()([recalled.entries, recalled.filled]))
    compiled(model, jit_compile=False, warmup=None)
    x, y = task(512)
    when = np.tile([[T - 2, T]], [512, 1]).astype(np.int32)
    answers = np.stack([y, y], axis=1)
    model.fit([x, when], answers, batch_size=64, epochs=40, verbose=0)
    shown = model.evaluate([x, when], answers, verbose=0, return_dict=True)
    assert shown["accuracy"] > 0.9
    assert model.predict([x, when], verbose=0).shape == (512, 2, CLASSES)


def test_two_memories_in_one_model():
    first, second = keras.Input((None, D)), keras.Input((None, D))
    keras.utils.set_random_seed(0)
    one, _ = EpisodicMemory(N, "st-lemn", name="one")(first)
    two, _ = EpisodicMemory(N, "s-lemn", name="two")(second)
    heads = [Attend()([state.entries, state.filled]) for state in (one, two)]
    model = compiled(MemoryModel([first, second], keras.layers.Concatenate()(heads)))
    (x, y), (z, _) = task(16), task(16, seed=1)
    weights = [w for name in ("one", "two") for w in model.get_layer(name).trainable_weights]
    kernels = [w for w in weights if "kernel" in w.name]  # a softmax does not feel all the biases
    before = [np.array(w) for w in kernels]
    model.fit([x, z], y, batch_size=16, verbose=0)
    assert all(np.any(np.array(a) != b) for a, b in zip(kernels, before, strict=True))


def test_any_loss_metric_and_weight():
    """Regression with two outputs, weights of losses and samples, targets of any size."""
    stream = keras.Input((None, D))
    state, _ = EpisodicMemory(N, "st-lemn")(stream)
    pair = [state.entries, state.filled]
    outputs = {"size": Attend(1, name="size")(pair), "kind": Attend(name="kind")(pair)}
    model = MemoryModel(stream, outputs)
    model.compile(
        keras.optimizers.Adam(1e-2),
        {"size": "mse", "kind": LOSS},
        loss_weights={"size": 0.01, "kind": 1.0},
        metrics={"size": ["mae"], "kind": ["accuracy"]},
        run_eagerly=True,
    )
    x, y = task(32)
    targets = {"size": 100.0 * y[:, None].astype(np.float32), "kind": y}
    history = model.fit(x, targets, batch_size=32, epochs=2, verbose=0).history
    assert {"size_mae", "kind_accuracy", "hindsight"} <= set(history)
    assert all(np.all(np.isfinite(v)) for v in history.values())
    weight = np.zeros(32, np.float32)
    model = compiled(functional())
    data = tuple(map(tf.constant, (x, y, weight)))
    gradients, *_ = model.gradients(data, tf.constant([1, 2]), tf.constant([0.0]))
    assert all(
        np.all(np.asarray(g) == 0) for g in gradients
    )  # what counts for nothing teaches nothing


def test_outputs_that_do_not_come_from_behind_the_memory():
    """One of the inputs alone, what memory held, and a stream's own features are outputs too."""
    stream, query = keras.Input((None, D)), keras.Input((D,))
    state, _ = EpisodicMemory(N, "st-lemn")(stream)
    kind = Attend(name="kind")([state.entries, state.filled])
    aside = keras.layers.Dense(CLASSES, name="aside")(query)
    outputs = {"kind": kind, "aside": aside, "held": state.ids}
    model = MemoryModel([stream, query], outputs)
    model.compile(
        keras.optimizers.Adam(1e-2),
        {"kind": LOSS, "aside": LOSS, "held": None},
        run_eagerly=True,
    )
    x, y = task(16)
    history = model.fit([x, x[:, 0]], {"kind": y, "aside": y}, batch_size=16, verbose=0).history
    assert history["hindsight"][0] != 0.0
    assert model.predict([x, x[:, 0]], verbose=0)["held"].shape == (16, N)


def test_outputs_may_have_the_names_of_what_is_shown():
    stream = keras.Input((None, 4))
    state, _ = EpisodicMemory(3, "st-lemn")(stream)
    pooled = keras.layers.GlobalAveragePooling1D()(state.entries)
    heads = {name: keras.layers.Dense(1)(pooled) for name in ("total", "first")}
    model = MemoryModel(stream, heads)
    model.compile("adam", dict.fromkeys(heads, "mse"))
    y = dict.fromkeys(heads, np.ones([8, 1], "float32"))
    told = model.fit(np.ones([8, 6, 4], "float32"), y, verbose=0).history
    assert told["total_loss"][0] >= 0.0  # a squared error, not what the update minimises
    assert told["total_loss"][0] + told["first_loss"][0] == pytest.approx(told["loss"][0], rel=1e-4)
    assert np.isfinite(told["retention_total_loss"][0])


@pytest.mark.parametrize("loss", ["binary_crossentropy", "mse", keras.losses.BinaryCrossentropy()])
def test_labels_may_lack_the_last_dimension(loss):
    """As in Keras: one number a sample, whether the labels are `[B]` or `[B, 1]`."""
    x, y = task(16)
    y = (y > 0).astype(np.float32)
    found = []
    for truth in (y, y[:, None]):
        keras.utils.set_random_seed(0)
        model = functional(head=Attend(1))
        model.compile("sgd", loss, run_eagerly=True)
        data = (tf.constant(x), tf.constant(truth))
        *_, logs = model.gradients(data, tf.constant([1, 2]), tf.constant([0.1]))
        found.append(float(logs["hindsight"]))
    assert found[0] == found[1] != 0.0


def test_a_scale_of_the_targets_does_not_matter():
    """Credit for a regression is the same whether it is in metres or in millimetres."""
    x, y = task(16)
    found = []
    for scale in (1.0, 1000.0):
        keras.utils.set_random_seed(0)
        model = functional(head=Attend(1))
        model.layers[-1].out.set_weights([w * scale for w in model.layers[-1].out.get_weights()])
        model.compile("sgd", "mse", run_eagerly=True)
        data = (tf.constant(x), tf.constant(scale * y[:, None].astype(np.float32)))
        *_, logs = model.gradients(data, tf.constant([1, 2]), tf.constant([0.1]))
        found.append(float(logs["hindsight"]))
    assert found[0] == pytest.approx(found[1], rel=1e-3)
    assert abs(found[0]) > 1e-6


def test_long_streams_are_tried_in_part():
    """The estimate from a part of the items is right on average."""
    x, y = task(4, steps=40)
    data = (tf.constant(x), tf.constant(y))
    model = compiled(functional())

    def credit(variants, seed):
        compiled(model, variants=variants)
        seen = []
        model.objectives = (lambda rollout: (seen.append(rollout.flipped()) or tf.zeros([4]), {}),)
        # The same evictions each time; only which items are tried changes.
        model.losses_of(data, tf.constant([1, 2]), tf.zeros([1]), None)
        return seen[0].numpy()

    whole, part = credit(64, 0), credit(8, 0)
    assert np.count_nonzero(np.abs(part - np.median(part, -1, keepdims=True)) > 1e-9) < whole.size
    assert np.all(np.isfinite(part))


def test_a_head_of_fixed_width_is_warned_of_and_still_trained():
    class Flat(keras.layers.Layer):
        def build(self, shapes):
            self.out = keras.layers.Dense(CLASSES)
            self.out.build((None, N * D))

        def call(self, inputs):
            return self.out(tf.reshape(inputs[0], [-1, N * D]))

    model, (x, y) = compiled(functional(head=Flat())), task(32)
    with pytest.warns(UserWarning, match="takes exactly 2 slots"):
        history = model.fit(x, y, batch_size=32, verbose=0).history
    assert np.isfinite(history["hindsight"][0])


@pytest.mark.parametrize("policy", ["fifo", "uniform"])
def test_a_rule_trains_nothing_but_the_rest(policy):
    model, (x, y) = compiled(functional(policy)), task(32)
    history = model.fit(x, y, batch_size=32, verbose=0).history
    assert "hindsight" not in history


@pytest.mark.parametrize("policy", ["im-lemn", "s-lemn"])
def test_every_learned_policy(policy):
    model, (x, y) = compiled(functional(policy)), task(32)
    before = [np.array(w) for w in model.layers[1].trainable_weights]
    model.fit(x, y, batch_size=32, verbose=0)
    moved = [np.any(a != b) for a, b in zip(model.layers[1].trainable_weights, before, strict=True)]
    assert all(moved)


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
def test_mixed_precision(dtype):
    keras.config.set_dtype_policy(dtype)
    try:
        model, (x, y) = compiled(functional()), task(32)
        history = model.fit(x, y, batch_size=32, epochs=2, verbose=0).history
    finally:
        keras.config.set_dtype_policy("float32")
    assert all(np.all(np.isfinite(v)) for v in history.values())


def test_entries_of_any_kind():
    """Token ids with an encoder, and a nest."""
    tokens, number = keras.Input((None, 4), dtype="int32"), keras.Input((None, 1))

    class Encoder(keras.layers.Layer):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.embed = keras.layers.Embedding(10, D)
            self.embed.build((None,))

        def call(self, entries):
            words = tf.reduce_mean(self.embed(entries["tokens"]), axis=-2)
            return tf.concat([words, entries["number"]], axis=-1)

    encoder = Encoder()
    state, _ = EpisodicMemory(N, "st-lemn", encoder=encoder)({"tokens": tokens, "number": number})
    codes = encoder(state.entries)
    model = compiled(MemoryModel([tokens, number], Attend()([codes, state.filled])))
    generator = np.random.default_rng(0)
    x = [generator.integers(0, 10, [32, T, 4]), generator.normal(size=[32, T, 1])]
    history = model.fit(x, generator.integers(0, CLASSES, 32), batch_size=32, verbose=0).history
    assert np.isfinite(history["hindsight"][0])


class TestErrors:
    def test_no_memory(self):
        stream = keras.Input((None, D))
        model = MemoryModel(stream, keras.layers.GlobalAveragePooling1D()(stream))
        model.compile("sgd", LOSS, run_eagerly=True)
        with pytest.raises(ValueError, match="expected an EpisodicMemory in the model"):
            model.fit(*task(4), verbose=0)

    def test_a_loss_without_values_for_samples(self):
        model, (x, y) = functional(), task(8)
        model.compile("sgd", lambda y, p: tf.reduce_mean(LOSS(y, p)), run_eagerly=True)
        with pytest.raises(ValueError, match=r"needs the loss of each sample.*got shape \(\)"):
            model.fit(x, y, verbose=0)

    def test_a_memory_that_nothing_uses(self):
        stream, query = keras.Input((None, D)), keras.Input((3,))
        EpisodicMemory(N, "st-lemn")(stream)
        answer = keras.layers.Dense(CLASSES)(query)
        model = compiled(MemoryModel([stream, query], answer))
        x, y = task(8)
        with pytest.raises(ValueError, match="expected an EpisodicMemory"):
            model.fit([x, np.zeros([8, 3])], y, verbose=0)

        class Unused(Subclass):
            def call(self, inputs, training=False):
                self.memory(inputs, training=training)
                return self.head([inputs, tf.ones(tf.shape(inputs)[:2], tf.bool)])

        model = compiled(Unused())
        with pytest.raises(ValueError, match="nothing uses the memory"):
            model.fit(x, y, verbose=0)

    def test_a_memory_that_no_loss_depends_on(self):
        stream = keras.Input((None, D))
        state, _ = EpisodicMemory(N, "st-lemn")(stream)
        outputs = {"kind": keras.layers.GRU(CLASSES)(stream), "held": state.entries}
        model = MemoryModel(stream, outputs)
        model.compile("adam", {"kind": LOSS, "held": None}, run_eagerly=True)
        x, y = task(8)
        with pytest.raises(ValueError, match="expected an output that has a loss"):
            model.fit(x, {"kind": y}, verbose=0)

    def test_a_head_for_one_size_of_batch(self):
        class Eight(Attend):
            def call(self, inputs):
                entries, filled = inputs
                return super().call([tf.reshape(entries, [8, -1, D]), tf.reshape(filled, [8, -1])])

        x, y = task(8)
        with pytest.raises(ValueError, match="cannot run what comes behind the memory"):
            compiled(functional(head=Eight())).fit(x, y, batch_size=8, verbose=0)
        model = functional(head=Eight())
        compiled(model, retention="actor-critic", random_memories=0.0)
        model.fit(x, y, batch_size=8, verbose=0)  # which needs the loss of the batch alone

    def test_streams_that_fit_into_the_memory(self):
        model, (x, y) = compiled(functional(slots=T)), task(8)
        with pytest.warns(UserWarning, match="8 items fit into the 8 slots"):
            model.fit(x, y, verbose=0)

    def test_unknown_objective(self):
        with pytest.raises(ValueError, match="unknown objective 'best'; known are hindsight"):
            functional().compile("sgd", "mse", retention="best")

    def test_sign_needs_to_know_what_is_right(self):
        model, (x, y) = compiled(functional(), retention=ActorCritic()), task(8)
        with pytest.raises(ValueError, match="needs to know which answers are right"):
            model.fit(x, y, verbose=0)


def test_actor_critic_trains_too():
    model, (x, y) = compiled(functional(), retention="actor-critic"), task(32)
    history = model.fit(x, y, batch_size=32, verbose=0).history
    assert {"value_loss", "return"} <= set(history)
    assert any("critic" in v.path for v in model.trainable_variables)


def test_a_policy_of_a_users_own_trains():
    from lemn_tf import RetentionPolicy

    class Linear(RetentionPolicy):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.judgement = keras.layers.Dense(1)

        def score(self, seen, cells, carry):
            return self.opinion(self.judgement(cells.vectors)[..., 0])

    model, (x, y) = compiled(functional(Linear()), jit_compile=True, warmup=None), task(512)
    model.fit(x, y, batch_size=64, epochs=40, verbose=0)
    accuracy = model.evaluate(*task(256, seed=1), verbose=0, return_dict=True)["accuracy"]
    assert accuracy > 0.9
