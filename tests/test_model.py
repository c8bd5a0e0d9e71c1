"""StreamReader: fit, evaluate, predict, save and load; XLA and shards change no number."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf import retention
from lemn_tf.episode import random_past
from lemn_tf.learning import ActorCritic, Hindsight
from lemn_tf.learning.objectives import entropy_at
from lemn_tf.model import StreamReader
from lemn_tf.pipelines import babi
from lemn_tf.pipelines.babi_generator import generate
from lemn_tf.readers import Answer, MemN2N, Reader
from lemn_tf.text import Vocabulary

SEED, ENTROPY = tf.constant([3, 4]), tf.constant([0.1, 0.02])


def make_model(policy="s-lemn", words=9, length=3, vocabulary=None, slots=2, hops=2):
    keras.utils.set_random_seed(1)
    reader = MemN2N(words, length, units=8, hops=hops, max_slots=8)
    return StreamReader(reader, slots, policy, vocabulary)


def make_batch(rows=4, steps=6, seed=0):
    """Random streams with two questions each, one row shorter than the others."""
    generator = np.random.default_rng(seed)
    length = np.array([steps, steps - 2, steps, steps])[:rows]
    ask_at = np.stack([length, length - generator.integers(1, 3, rows)], axis=1)
    ask_at[-1, 1] = -1
    arrays = {
        "items": generator.integers(1, 9, [rows, steps, 3]),
        "length": length,
        "questions": generator.integers(1, 9, [rows, 2, 3]),
        "ask_at": ask_at,
        "answers": np.where(ask_at >= 0, generator.integers(1, 9, [rows, 2]), -1),
        "support": generator.integers(0, 2, [rows, 2, 1]),
    }
    return {name: tf.constant(array, tf.int32) for name, array in arrays.items()}


@pytest.fixture(scope="module")
def stories():
    """The first eight facts and the first question of generated stories."""
    return [
        babi.Story(story.facts[:8], story.questions[:1]) for story in generate("noisy", 16, seed=1)
    ]


def test_fit_evaluate_predict_save_load(stories, tmp_path):
    vocabulary = Vocabulary.from_texts(babi.texts(stories), babi.answers(stories))
    arrays = babi.encode(stories, vocabulary)
    data = babi.dataset(arrays, 8)
    model = make_model("st-lemn", vocabulary.size, arrays["items"].shape[-1], vocabulary)
    objectives = [Hindsight(), ActorCritic()]
    model.compile(keras.optimizers.Adam(1e-2), retention=objectives, jit_compile=False)
    board = keras.callbacks.TensorBoard(tmp_path / "logs")
    history = model.fit(data, validation_data=data, epochs=2, callbacks=[board], verbose=0).history
    shown = {"loss", "accuracy", "support_recall", "entropy", "value_loss", "return", "hindsight"}
    assert shown <= set(history)
    assert {"val_accuracy", "val_support_recall"} <= set(history)
    assert all(np.all(np.isfinite(values)) for values in history.values())
    assert list(tmp_path.glob("logs/train/*"))
    assert list(tmp_path.glob("logs/validation/*"))

    result = model.evaluate(data, verbose=0, return_dict=True)
    assert result["accuracy"] == pytest.approx(history["val_accuracy"][-1])
    logits = model.predict(data, verbose=0)
    assert logits.shape == (16, 1, vocabulary.size)
    assert np.mean(logits.argmax(-1) == arrays["answers"]) == pytest.approx(result["accuracy"])

    model.save(tmp_path / "model.keras")
    twin = keras.saving.load_model(tmp_path / "model.keras", compile=False)
    batch = next(iter(data))
    ours, theirs = model.outcome(batch), twin.outcome(batch)
    assert {k: int(v) for k, v in ours.items()} == {k: int(v) for k, v in theirs.items()}
    np.testing.assert_allclose(twin(batch), model(batch), atol=1e-6)
    text = tf.constant([stories[0].facts[0]])
    np.testing.assert_array_equal(twin.vocabulary(text), vocabulary(text))


def test_compiled_or_not():
    """Law 10 for training: every draw, loss and gradient is the same under XLA."""
    model, batch = make_model(slots=1, hops=1), make_batch(2, 4)  # XLA takes its time
    objectives = [Hindsight(), ActorCritic(reward="probability")]
    results = []
    for jit_compile in (False, True):
        model.compile("sgd", retention=objectives, jit_compile=jit_compile)
        results.append(model._gradients(batch, SEED, ENTROPY))
    (plain, _, _, logs), (compiled, _, _, compiled_logs) = results
    assert set(logs) == set(compiled_logs)
    for name, value in logs.items():
        np.testing.assert_allclose(compiled_logs[name], value, rtol=1e-4, atol=1e-5, err_msg=name)
    for variable, one, other in zip(model.trainable_variables, plain, compiled, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5, err_msg=variable.path)


def test_each_update_draws_one_of_several_sizes():
    model, batch, drawn = make_model(slots=1, hops=1), make_batch(2, 4), []
    model.compile("sgd", retention=[Hindsight()], slots=(1, 2), jit_compile=False)
    model._gradients = lambda *given: drawn.append(given[-1]) or model.gradients(*given)
    for _ in range(6):
        model.update(batch)
    assert set(drawn) == {1, 2}


def test_shards_give_the_mean_of_their_gradients():
    batch, model = make_batch(), make_model()
    options = {"retention": [Hindsight()], "jit_compile": False, "seed": 7}
    model.compile(keras.optimizers.SGD(1.0), shards=2, **options)
    model._gradients = model.gradients  # as they are, without a graph
    before = [np.array(v) for v in model.trainable_variables]
    halves = [
        model.gradients(
            {n: x[2 * k : 2 * k + 2] for n, x in batch.items()}, [7, k], tf.constant([0.1])
        )
        for k in range(2)
    ]
    logs = model.train_step(batch)
    for variable, old, one, other in zip(
        model.trainable_variables, before, halves[0][0], halves[1][0], strict=True
    ):
        np.testing.assert_allclose(old - np.array(variable), (one + other) / 2, atol=1e-5)
    mean = (halves[0][1] + halves[1][1]) / 2
    np.testing.assert_allclose(logs["loss"], mean, rtol=1e-5)


def test_more_room_while_training():
    """With a slot for every item nothing is lost in training; `evaluate` keeps to the model's."""
    model, batch = make_model(slots=1), make_batch()
    recall = []
    for slots in (None, batch["items"].shape[1]):
        model.compile("sgd", retention=[Hindsight()], slots=slots, jit_compile=False)
        *_, logs = model.gradients(batch, SEED, tf.constant([0.1]), *model.training_slots)
        recall.append(float(logs["support_recall"]))
        shown = model.evaluate(tf.data.Dataset.from_tensors(batch), verbose=0, return_dict=True)
        assert shown["support_recall"] < 1.0
    assert recall[0] < recall[1] == 1.0


def test_objectives_that_differ_in_their_schedule_share_a_program():
    model, batch = make_model(), make_batch()
    programs, bonus = [], []
    for schedule in ({"entropy": 0.1}, {"entropy": 3.0, "final_entropy": 1.0}, {"discount": 0.5}):
        model.compile("sgd", retention=Hindsight(**schedule), updates=4, jit_compile=False)
        programs.append(model._gradients)
        model.optimizer.iterations.assign(2)
        bonus.append(float(entropy_at(model.objectives[0], 0.5)))
    assert programs[0] is programs[1]
    assert programs[1] is not programs[2]
    assert bonus == pytest.approx([0.1, 2.0, 0.1])
    one, other = (model._gradients(batch, SEED, tf.constant([weight]))[3] for weight in (0.0, 1.0))
    assert float(other["total_loss"]) < float(one["total_loss"])  # entropy is a bonus
    np.testing.assert_allclose(other["hindsight"], one["hindsight"])


def test_the_schedule_reaches_the_loss():
    """Half-way from 3 to 1 the bonus weighs 2."""
    batch, losses = make_batch(), []
    for schedule in ({"entropy": 3.0, "final_entropy": 1.0}, {"entropy": 2.0}):
        model = make_model()
        model.compile("sgd", retention=Hindsight(**schedule), updates=4, seed=7, run_eagerly=True)
        model.optimizer.build(model.trainable_variables)
        model.optimizer.iterations.assign(2)
        losses.append(float(model.train_step(batch)["total_loss"]))
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_random_past():
    batch, share = make_batch(), (0.5, 1.0)
    batch["ask_at"] = tf.constant([[6, 3], [4, 0], [6, 5], [6, -1]])
    past = [
        tf.function(lambda: random_past(batch, share, SEED), jit_compile=jit)().numpy()
        for jit in (False, True)
    ]
    np.testing.assert_array_equal(*past)
    for b, q in np.ndindex(4, 2):
        for t, found in enumerate(past[0][b, q]):
            assert found in (-1, t)
            assert found < max(int(batch["ask_at"][b, q]), 0)
    many = {"items": tf.zeros([400, 50, 1]), "ask_at": tf.fill([400, 2], 50)}
    kept = np.mean(random_past(many, share, SEED).numpy() >= 0, axis=-1)
    assert np.mean(kept) == pytest.approx(0.75, abs=0.01)  # uniform between the two shares
    assert np.std(kept) == pytest.approx(np.sqrt(0.5**2 / 12 + 0.18 / 50), abs=0.01)
    assert abs(np.corrcoef(kept[:, 0], kept[:, 1])[0, 1]) < 0.15
    other = random_past(many, share, SEED + 1).numpy() >= 0
    assert abs(np.corrcoef(kept.ravel(), np.mean(other, axis=-1).ravel())[0, 1]) < 0.15


def test_random_past_reaches_only_so_far_back():
    batch = {"items": tf.zeros([2, 9, 1]), "ask_at": tf.constant([[9, 2], [5, -1]])}
    found = random_past(batch, (1.0, 1.0), SEED, window=3).numpy()
    held = [[sorted(set(row.tolist()) - {-1}) for row in rows] for rows in found]
    assert held == [[[6, 7, 8], [0, 1]], [[2, 3, 4], []]]


def test_memories_at_the_questions_against_lists():
    model, batch = make_model(), make_batch()
    decisions, kept = model.act(batch, training=True, seed=SEED)
    for b in range(4):
        held = []
        memories = [[]]
        for t in range(int(batch["length"][b])):
            held.append(t)
            if len(held) > 2:
                del held[int(decisions.slot[b, t])]
            memories.append(list(held))
        for q in range(2):
            asked = max(int(batch["ask_at"][b, q]), 0)
            assert [i for i in kept[b, q].numpy().tolist() if i >= 0] == memories[asked]


def test_answers_come_from_what_was_kept_alone():
    model, batch = make_model("fifo"), make_batch()
    plain = model(batch)[:, 0]  # asked at the end, when two items are left
    changed = batch["items"].numpy()
    changed[:, :2] = 5
    np.testing.assert_allclose(
        model({**batch, "items": tf.constant(changed)})[:, 0], plain, atol=1e-6
    )
    changed[0, -1] = 6
    other = model({**batch, "items": tf.constant(changed)})[:, 0]
    assert np.abs(other[0] - plain[0]).max() > 1e-4
    np.testing.assert_allclose(other[1:], plain[1:], atol=1e-6)


@pytest.mark.parametrize("policy", ["lru", "oracle", "im-lemn", "uniform"])
def test_every_policy_acts_and_travels(policy, tmp_path):
    model, batch = make_model(policy), make_batch()
    model.save(tmp_path / "model.keras")
    twin = keras.saving.load_model(tmp_path / "model.keras", compile=False)
    np.testing.assert_allclose(twin(batch), model(batch), atol=1e-6)
    other = model.with_policy("fifo", slots=3)
    assert other.reader is model.reader
    assert other.act(batch)[1].shape == (4, 2, 3)


def test_training_under_another_policy_leaves_ours_alone():
    model, batch = make_model(), make_batch()
    model.compile(keras.optimizers.SGD(0.1), acting="fifo", on_subsets=0.0, jit_compile=False)
    _, kept = model._act(batch)
    assert kept[0, 0].numpy().tolist() == [4, 5]
    gradients, *_ = model.gradients(batch, SEED, ENTROPY[:0])
    moved = {
        v.path: float(tf.norm(g)) for v, g in zip(model.trainable_variables, gradients, strict=True)
    }
    assert moved[model.reader.words.path] > 0
    assert all(moved[weight.path] == 0 for weight in model.memory.policy.trainable_weights)


def test_errors_say_what_was_expected():
    with pytest.raises(ValueError, match="'fifo' has nothing to learn"):
        make_model("fifo").compile(retention=Hindsight())
    with pytest.raises(ValueError, match="no retention with acting="):
        make_model().compile(retention=Hindsight(), acting="fifo")


class Vote(Reader):
    """Entries are a vector and a label, nested; the answer is the label of the likest vector."""

    def __init__(self, labels=4, **kwargs):
        super().__init__(**kwargs)
        self.labels = labels
        self.scale = self.add_weight(shape=(), initializer="ones", name="scale")
        self.built = True

    def encode(self, entries):
        return tf.concat([entries["vector"], tf.one_hot(entries["label"], self.labels)], axis=-1)

    def ask(self, question):
        return question

    def read(self, query, codes, ids, **options):
        vectors, labels = codes[..., : -self.labels], codes[..., -self.labels :]
        score = self.scale * tf.einsum("...d,...md->...m", query, vectors)
        attention = tf.nn.softmax(tf.where(ids >= 0, 5.0 * score, -1e9))
        return Answer(10.0 * tf.einsum("...m,...ml->...l", attention, labels), attention)

    def get_config(self):
        return {**super().get_config(), "labels": self.labels}


def vote_batch(rows=24, steps=4):
    """One-hot vectors with labels; the newest item is asked for, so every label can be right."""
    generator = np.random.default_rng(0)
    vector = np.eye(steps, dtype=np.float32)[np.tile(np.arange(steps), [rows, 1])]
    label = generator.integers(0, 4, [rows, steps])
    return {
        "items": {"vector": tf.constant(vector), "label": tf.constant(label, tf.int32)},
        "length": tf.fill([rows], steps),
        "questions": tf.constant(vector[:, -1:]),
        "ask_at": tf.fill([rows, 1], steps),
        "answers": tf.constant(label[:, -1:], tf.int32),
    }


def test_items_of_any_kind_every_label_and_no_support(tmp_path):
    """Also label 1, which stands for an unknown word only where there are words."""
    keras.saving.get_custom_objects()["Vote"] = Vote
    model, batch = StreamReader(Vote(), 2, "fifo"), vote_batch()
    data = tf.data.Dataset.from_tensors(batch)
    model.compile("sgd", metrics=["sparse_categorical_accuracy"], run_eagerly=True)
    shown = model.evaluate(data, verbose=0, return_dict=True)
    assert 1 in batch["answers"].numpy()
    assert shown["accuracy"] == shown["sparse_categorical_accuracy"] == 1.0
    assert "support_recall" not in shown
    history = model.fit(data, verbose=0).history
    assert history["accuracy"] == [1.0]
    counts = model.outcome(batch)
    assert (int(counts["right"]), int(counts["labelled"])) == (24, 0)
    learner = StreamReader(Vote(), 2, "st-lemn")
    learner.compile("adam", run_eagerly=True)
    assert np.isfinite(learner.fit(data, verbose=0).history["hindsight"][0])
    learner.save(tmp_path / "model.keras")
    twin = keras.saving.load_model(tmp_path / "model.keras", compile=False)
    np.testing.assert_allclose(twin(batch), learner(batch), atol=1e-6)


def test_a_name_and_its_object_behave_alike():
    batch = make_batch()
    for name in ("oracle", "im-lemn", "lru", "st-lemn"):
        models = [make_model(policy) for policy in (name, retention.get(name))]
        assert models[0].memory.policy.get_config() == models[1].memory.policy.get_config()
        models[1].set_weights(models[0].get_weights())
        kept = [model.act(batch)[1] for model in models]
        np.testing.assert_array_equal(*kept)
    assert models[0].memory.encoder.matching is None
    by_object = make_model(retention.get("im-lemn"))
    assert by_object.memory.encoder.matching is by_object.memory.policy.similarity


def test_compile_means_what_it_means_in_keras():
    model, batch = make_model(), make_batch()
    data = tf.data.Dataset.from_tensors(batch)
    own = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    shown = []
    for loss in (None, own, lambda y, p: 2.0 * own.call(y, p)):
        model.compile("sgd", loss, run_eagerly=True)
        shown.append(model.evaluate(data, verbose=0, return_dict=True)["loss"])
    assert shown[0] == pytest.approx(shown[1], rel=1e-5)
    assert shown[2] == pytest.approx(2 * shown[0], rel=1e-5)
    with pytest.raises(ValueError, match="Could not interpret loss identifier"):
        model.compile("sgd", "nonsense")


def test_an_oracle_needs_to_be_told():
    batch = make_batch()
    del batch["support"]
    with pytest.raises(ValueError, match="expected 'support' in the episodes"):
        make_model("oracle").act(batch)
