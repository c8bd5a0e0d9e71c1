"""Any policy and any kind of item can be served by the same code."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf import memory, retention
from lemn_tf.export import Servable, export, savedmodel, text_servable
from lemn_tf.export.signatures import flat_signatures
from lemn_tf.layer import EpisodicMemory

POLICIES = [name for name in retention.NAMES if name != "oracle"]


@pytest.mark.parametrize("policy", ["uniform", "lru", "im-lemn"])
def test_a_policy_decides_as_in_the_library(make, policy):
    model = make.model(policy, slots=3)
    call = {name: s.function for name, s in flat_signatures(text_servable(model)).items()}
    items = tf.constant([make.sentences(9), make.sentences(9, seed=5)])
    state, decisions = tf.function(model.memory.__call__)(model.vocabulary(items, length=8))
    served = call["initial_state"]({"batch": tf.zeros([2], tf.int32)})
    names = set(served)
    served = call["observe_many"](served | {"items": items[:, :8]})
    served = {name: served[name] for name in names}
    question = tf.constant(make.questions(2))
    answer = call["answer"](served | {"question": question})
    assert ("attend" in call) == (policy == "lru")
    if policy == "lru":
        told = call["attend"](served | {"attention": answer["attention"]})
        used = answer["attention"].numpy() > 1 / 3
        np.testing.assert_array_equal(told["carry"].numpy() == 8, used)
    served = call["observe"](served | {"item": items[:, 8]})
    np.testing.assert_array_equal(served["ids"], state.ids)
    np.testing.assert_array_equal(served["entries__tokens"], state.entries)
    np.testing.assert_array_equal(served["slot"], decisions.slot[:, -1])
    expected = memory.to_flat(state)
    assert names - set(expected) == {"entries__tokens", "entries__text"}
    if "carry" in names:
        np.testing.assert_allclose(served["carry"], expected["carry"], atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_can_be_exported(make, policy, tmp_path):
    path = export(make.model(policy, slots=2), tmp_path / "model" / "1")
    call = tf.saved_model.load(str(path)).signatures
    items = tf.constant([make.sentences(6)])
    out = call["serving_default"](sentences=items, question=tf.constant(make.questions(1)))
    assert (out["ids"].numpy() >= 0).all()


def test_the_oracle_is_not_served(make):
    with pytest.raises(ValueError, match="needs to know the future"):
        text_servable(make.model("oracle", slots=2))


def frames() -> Servable:
    """A walker who remembers what it saw and where, and is asked which way to go."""
    head = keras.layers.Dense(4)
    head.build((None, 5))

    def see(entries):
        pixels = tf.cast(entries["frame"], tf.float32) / 255.0
        return tf.concat([tf.reduce_mean(pixels, [-3, -2]), entries["place"]], -1)

    def answer(state, question):
        summary = tf.reduce_mean(see(state.entries), axis=1)
        logits = head(summary + tf.pad(question["goal"], [[0, 0], [0, 3]]))
        return {"action": tf.argmax(logits, -1), "probabilities": tf.nn.softmax(logits)}

    item = {"frame": tf.TensorSpec([4, 4, 3], tf.uint8), "place": tf.TensorSpec([2], tf.float32)}
    return Servable(
        memory=EpisodicMemory(3, "fifo", see),
        entry=item,
        item=item,
        question={"goal": tf.TensorSpec([2], tf.float32)},
        encode=lambda items: dict(items),
        answer=answer,
        layers=(head,),
        identity={"kind": "walker"},
    )


def test_items_need_not_be_text(tmp_path):
    path = export(frames(), tmp_path / "walker" / "7")
    call = tf.saved_model.load(str(path)).signatures
    draw = np.random.default_rng(0)
    seen = tf.constant(draw.integers(0, 256, [2, 5, 4, 4, 3]), tf.uint8)
    where = tf.constant(draw.normal(size=[2, 5, 2]), tf.float32)
    goal = tf.constant(draw.normal(size=[2, 2]), tf.float32)
    shot = call["serving_default"](frames=seen, places=where, goal=goal)
    packed = tf.constant(["", ""])
    for t in range(5):
        inputs = {"frame": seen[:, t], "place": where[:, t]}
        packed = call["observe_packed"](state=packed, **inputs)["state"]
    np.testing.assert_array_equal(call["unpack"](state=packed)["entries__frame"], seen[:, 2:])
    answer = call["answer_packed"](state=packed, goal=goal)
    np.testing.assert_allclose(shot["probabilities"], answer["probabilities"], atol=1e-6)
    facts = savedmodel.read_facts(path)
    assert facts["version"] == "7"
    assert facts["state"]["strings"] == 0
    assert facts["state"]["packed_at_most"] == len(packed.numpy()[0])


def test_the_fingerprint_is_the_models_and_no_other(make, model, tmp_path):
    mark = text_servable(model).fingerprint
    assert mark == text_servable(make.model()).fingerprint
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert mark == text_servable(again).fingerprint
    others = [make.model(seed=1), make.model(slots=6), make.model("s-lemn"), again]
    again.reader.bias.assign_add(tf.ones_like(again.reader.bias.value))
    marks = {text_servable(other).fingerprint for other in others}
    assert len(marks | {mark}) == 5
