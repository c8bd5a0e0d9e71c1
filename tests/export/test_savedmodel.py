"""The exported model does what the library does, and refuses what it must."""

import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from lemn_tf import memory
from lemn_tf.export import export, text_servable
from lemn_tf.export import savedmodel as savedmodel_module
from lemn_tf.export.packed import Packing

STATE = {
    "ids": (tf.int64, [None, 5]),
    "pinned": (tf.bool, [None, 5]),
    "expiry": (tf.int64, [None, 5]),
    "clock": (tf.int64, [None]),
    "entries__tokens": (tf.int32, [None, 5, 8]),
    "entries__text": (tf.string, [None, 5]),
    "carry": (tf.float32, [None, 5, 5]),
}
ANSWER = {"answer", "probability", "probabilities", "answers", "attention", "texts", "ids"}
STEP = {"evicted", "slot", "keep"}
STRING = (tf.string, [None])


def state_of(served, outputs):
    return {name: outputs[name] for name in served.state_names}


def fresh(served, batch=1):
    return served.initial_state(batch=tf.zeros([batch], tf.int32))


def read(served, items, batch=1):
    """A memory that has seen `items`."""
    stream = tf.repeat(tf.constant([items]), batch, axis=0)
    return state_of(served, served.observe_many(**fresh(served, batch), items=stream))


def same(one, two, **tolerance):
    assert set(one) == set(two)
    for name in one:
        if one[name].dtype.is_floating:
            np.testing.assert_allclose(one[name], two[name], **{"atol": 1e-6, **tolerance})
        else:
            np.testing.assert_array_equal(one[name], two[name], err_msg=name)


@pytest.mark.parametrize(
    ("name", "inputs", "outputs"),
    [
        ("initial_state", {"batch": (tf.int32, [None])}, set(STATE)),
        ("observe", {**STATE, "item": STRING}, set(STATE) | STEP),
        ("observe_many", {**STATE, "items": (tf.string, [None, None])}, set(STATE) | STEP),
        ("answer", {**STATE, "question": STRING}, ANSWER),
        ("forget", {**STATE, "id": (tf.int64, [None])}, set(STATE)),
        ("pin", {**STATE, "id": (tf.int64, [None])}, set(STATE)),
        ("unpin", {**STATE, "id": (tf.int64, [None])}, set(STATE)),
        (
            "serving_default",
            {"sentences": (tf.string, [None, None]), "question": STRING},
            ANSWER,
        ),
        ("initial_state_packed", {"batch": (tf.int32, [None])}, {"state"}),
        ("observe_packed", {"state": STRING, "item": STRING}, {"state"} | STEP),
        (
            "observe_many_packed",
            {"state": STRING, "items": (tf.string, [None, None])},
            {"state"} | STEP,
        ),
        ("answer_packed", {"state": STRING, "question": STRING}, ANSWER),
        ("forget_packed", {"state": STRING, "id": (tf.int64, [None])}, {"state"}),
        ("pack", STATE, {"state"}),
        ("unpack", {"state": STRING}, set(STATE)),
    ],
)
def test_signatures_have_plain_names(served, name, inputs, outputs):
    function = getattr(served, name)
    got = function.structured_input_signature[1]
    assert {key: (spec.dtype, spec.shape.as_list()) for key, spec in got.items()} == inputs
    assert set(function.structured_outputs) == outputs
    assert all(spec.shape[0] is None for spec in function.structured_outputs.values())


def test_500_observes_and_50_questions_as_in_the_library(make, model, served):
    rows, steps = 5, 100
    items = np.reshape(make.sentences(rows * steps), [steps, rows])
    asked = np.reshape(make.questions(50), [10, rows])

    @tf.function
    def observe(state, texts):
        return model.memory.observe(state, model.vocabulary(texts, length=8))

    @tf.function
    def answer(state, texts):
        return model.reader(model.vocabulary(texts, length=8), state)

    state = model.memory.initial_state(rows, tf.TensorSpec([8], tf.int32))
    flat, packed = fresh(served, rows), tf.fill([rows], "")
    evicted = 0
    for step in range(steps):
        item = tf.constant(items[step])
        state, decision = observe(state, item)
        outputs = served.observe(**flat, item=item)
        flat = state_of(served, outputs)
        twin = served.observe_packed(state=packed, item=item)
        packed = twin["state"]
        for name in ("evicted", "slot"):
            np.testing.assert_array_equal(getattr(decision, name), outputs[name])
            np.testing.assert_array_equal(twin[name], outputs[name])
        np.testing.assert_allclose(decision.keep, outputs["keep"], atol=1e-5)
        evicted += np.sum(decision.evicted >= 0)
        if step % 10 == 9:
            question = tf.constant(asked[step // 10])
            expected = answer(state, question)
            got = served.answer(**flat, question=question)
            words = model.vocabulary.text(tf.argmax(expected.logits, -1)[:, None])
            np.testing.assert_array_equal(words, got["answer"])
            np.testing.assert_allclose(expected.attention, got["attention"], atol=1e-5)
            same(got, served.answer_packed(state=packed, question=question))
            for row, ids in enumerate(state.ids.numpy()):
                texts = [items[i, row].encode() for i in ids]
                assert got["texts"].numpy()[row].tolist() == texts
    assert evicted == rows * (steps - 5)
    same(flat, served.unpack(state=packed))
    expected = memory.to_flat(state)
    expected["entries__tokens"] = expected.pop("entries")
    same(expected, {k: v for k, v in flat.items() if k != "entries__text"}, atol=1e-5)


def test_many_at_once_is_one_by_one_and_padding_is_nothing(make, served):
    items = make.sentences(12)
    rows = tf.constant([items[:3] + [""] * 2 + items[3:], [""] + items[:4] + [""] * 9])
    whole = served.observe_many(**fresh(served, 2), items=rows)
    state, steps = fresh(served, 2), []
    for t in range(rows.shape[1]):
        outputs = served.observe(**state, item=rows[:, t])
        state = state_of(served, outputs)
        steps.append(outputs)
    same(state, state_of(served, whole), atol=1e-5)
    for name in STEP:
        one_by_one = tf.stack([step[name] for step in steps], axis=1)
        np.testing.assert_allclose(one_by_one, whole[name], atol=1e-5)
    assert state["clock"].numpy().tolist() == [12, 4]
    assert whole["slot"].numpy()[0, 3] == whole["evicted"].numpy()[0, 3] == -1
    packed = served.observe_many_packed(state=tf.constant(["", ""]), items=rows)
    same(state_of(served, whole), served.unpack(state=packed["state"]))


def test_one_shot_is_observe_and_answer(make, served):
    items, question = make.sentences(9), tf.constant(make.questions(1))
    shot = served.serving_default(sentences=tf.constant([items]), question=question)
    same(shot, served.answer(**read(served, items), question=question))


def test_a_row_is_not_disturbed_by_its_batch(make, served):
    items = make.sentences(8)
    state = read(served, items, batch=3)
    three = served.observe(**state, item=tf.constant(["Mary left.", "John left.", "The end"]))
    alone = {name: tensor[1:2] for name, tensor in state.items()}
    alone = served.observe(**alone, item=tf.constant(["John left."]))
    same(alone, {name: tensor[1:2] for name, tensor in three.items()})


def test_forget_erases_and_pin_keeps(make, served):
    state = read(served, make.sentences(5))
    gone = served.forget(**state, id=tf.constant([2], tf.int64))
    assert gone["ids"].numpy().tolist() == [[0, 1, -1, 3, 4]]
    assert gone["entries__text"].numpy()[0, 2] == b""
    state = served.pin(**state, id=tf.constant([1], tf.int64))
    state = served.observe_many(**state, items=tf.constant([make.sentences(60, seed=3)]))
    assert 1 in state["ids"].numpy()
    free = served.unpin(**state_of(served, state), id=tf.constant([1], tf.int64))
    assert not free["pinned"].numpy().any()


@pytest.mark.parametrize("item", [b"\xff\xfe Mary", b"Mary\x00left", b"   ", "é" * 2000])
def test_any_bytes_may_be_observed_and_come_back_as_text(served, item):
    state = state_of(served, served.observe(**fresh(served), item=tf.constant([item])))
    text = state["entries__text"].numpy()[0, -1].decode()
    assert len(text) <= 512
    answer = served.answer(**state, question=tf.constant([item]))
    assert np.isfinite(answer["probabilities"]).all()
    same(state, served.unpack(state=served.pack(**state)["state"]))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("ids", lambda x: x + 99),
        ("ids", lambda x: x - 99),
        ("ids", lambda x: x[:, ::-1]),
        ("ids", lambda x: tf.concat([x[:, :1], x[:, :1], x[:, 2:]], 1)),
        ("clock", lambda x: -x),
        ("clock", lambda x: x * 0 + tf.int64.max),
        ("entries__tokens", lambda x: x + 1000),
        ("entries__tokens", lambda x: x - 1000),
        ("carry", lambda x: x * np.nan),
        ("carry", lambda x: x + np.inf),
    ],
)
@pytest.mark.parametrize("call", ["observe", "observe_many", "answer", "forget", "pack"])
def test_a_state_that_cannot_be_is_refused_by_name(make, served, call, name, change):
    state = read(served, make.sentences(7))
    more = {
        "observe": {"item": tf.constant(["Mary left."])},
        "observe_many": {"items": tf.constant([["Mary left."]])},
        "answer": {"question": tf.constant(["Where is Mary?"])},
        "forget": {"id": tf.constant([1], tf.int64)},
        "pack": {},
    }[call]
    function = getattr(served, call)
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"{name}: expected"):
        function(**{**state, name: change(state[name])}, **more)
    function(**state, **more)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("ids", lambda x: x[:, ::-1]),
        ("ids", lambda x: x * 0),
        ("carry", lambda x: x * np.nan),
        ("clock", lambda x: -x),
    ],
)
def test_a_forged_packed_state_is_refused(make, model, served, name, change):
    """With a right checksum: what is inside is checked like any other state."""
    packing = Packing.of(text_servable(model))
    state = read(served, make.sentences(7))
    forged = packing.pack({**state, name: change(state[name])})
    for call, more in (("observe_packed", "item"), ("answer_packed", "question")):
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"{name}: expected"):
            getattr(served, call)(state=forged, **{more: tf.constant(["Mary left."])})
    assert served.unpack(state=packing.pack(state))["clock"].numpy() == [7]


def test_wrong_shapes_are_refused(make, served):
    state = read(served, make.sentences(7))
    with pytest.raises(tf.errors.InvalidArgumentError, match="same first dimension"):
        served.observe(**state, item=tf.constant(["Mary left.", "John left."]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="at least one step"):
        served.observe_many(**state, items=tf.zeros([1, 0], tf.string))
    with pytest.raises((tf.errors.InvalidArgumentError, TypeError, ValueError)):
        served.observe(**{**state, "ids": state["ids"][:, :3]}, item=tf.constant(["Mary left."]))


BARE = """
import importlib.machinery, sys
blocked = {"lemn_tf", "tf_agents", "tf_keras", "tensorflow_text", "keras"}
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in blocked:
            return importlib.machinery.ModuleSpec(name, self, origin="/blocked/__init__.py")
    def create_module(self, spec):
        raise ImportError("blocked: " + spec.name)
    def exec_module(self, module): ...
sys.meta_path.insert(0, Block())
import tensorflow as tf
call = tf.saved_model.load(sys.argv[1]).signatures
state = call["initial_state"](batch=tf.constant([0]))
out = call["observe"](**state, item=tf.constant(["Mary went to the garden."]))
out = call["answer"](**{k: out[k] for k in state}, question=tf.constant(["Where is Mary?"]))
packed = call["observe_packed"](state=tf.constant([""]), item=tf.constant(["Mary left."]))
print(out["texts"].numpy()[0, -1].decode(), packed["state"].numpy()[0][:6].decode())
assert not blocked & {name.split(".")[0] for name in sys.modules}
"""


def test_loads_with_tensorflow_alone(exported):
    command = [sys.executable, "-c", BARE, str(exported)]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", timeout=300)
    assert done.stdout.strip() == "Mary went to the garden. lemn1.", done.stderr[-2000:]


def test_writes_all_or_nothing(model, exported, tmp_path, monkeypatch):
    with pytest.raises(FileExistsError, match="overwrite=True"):
        export(model, exported)
    kept = tmp_path / "kept" / "1"
    kept.mkdir(parents=True)
    (kept / "old").touch()

    def fail(servable, path, *_):
        path.mkdir()
        raise OSError("disk full")

    monkeypatch.setattr(savedmodel_module, "_write", fail)
    with pytest.raises(OSError, match="disk full"):
        export(model, kept, overwrite=True)
    assert [p.name for p in kept.parent.iterdir()] == ["1"]
    assert (kept / "old").exists()
    monkeypatch.setattr(savedmodel_module, "_write", lambda servable, path, *_: path.mkdir())
    export(model, kept, overwrite=True)
    assert [p.name for p in kept.parent.iterdir()] == ["1"]
    assert not (kept / "old").exists()
    assert kept.stat().st_mode & 0o755 == 0o755


def test_says_what_it_cannot_export(make, model, tmp_path):
    with pytest.raises(TypeError, match="expected a StreamReader or a Servable; got dict"):
        export({}, tmp_path / "1")
    words, model_without = model.vocabulary, make.model(slots=2)
    model_without.vocabulary = None
    with pytest.raises(ValueError, match="needs the model's words"):
        export(model_without, tmp_path / "1")
    assert words is not None
    assert not list(tmp_path.iterdir())


def test_lemn_json_tells_the_truth(exported, served):
    facts = savedmodel_module.read_facts(exported)
    assert (facts["name"], facts["version"], facts["slots"]) == ("small", "1", 5)
    assert facts["state"]["names"] == list(STATE)
    assert facts["state"]["bytes"] == 5 * (8 + 1 + 8 + 8 * 4 + 5 * 4) + 8
    state = read(served, ["\U0001f600" * 600] * 5)
    packed = served.pack(**state)["state"].numpy()[0]
    assert len(packed) == facts["state"]["packed_at_most"]
    assert packed.decode().split(".")[1] == facts["fingerprint"]
    for name, function in served.loaded.signatures.items():
        said = facts["signatures"][name]
        for side, specs in (
            ("inputs", function.structured_input_signature[1]),
            ("outputs", function.structured_outputs),
        ):
            assert said[side] == {
                key: {"dtype": s.dtype.name, "shape": [-1 if d is None else d for d in s.shape]}
                for key, s in specs.items()
            }
        rows = json.loads(json.dumps(said["example"]))["instances"]
        function(
            **{
                key: tf.constant([row[key] for row in rows], spec.dtype)
                for key, spec in function.structured_input_signature[1].items()
            }
        )
    card = (exported / "CARD.md").read_text()
    assert "For tests." in card
    assert all(f"`{name}`" in card for name in facts["signatures"])


def test_warm_up_requests_run(exported, served):
    apis = pytest.importorskip("tensorflow_serving.apis.prediction_log_pb2")
    path = exported / "assets.extra" / "tf_serving_warmup_requests"
    seen = []
    for record in tf.data.TFRecordDataset([str(path)]):
        request = apis.PredictionLog.FromString(record.numpy()).predict_log.request
        inputs = {key: tf.constant(tf.make_ndarray(x)) for key, x in request.inputs.items()}
        getattr(served, request.model_spec.signature_name)(**inputs)
        assert request.model_spec.name == "small"
        seen.append(request.model_spec.signature_name)
    assert sorted(seen) == sorted(served.loaded.signatures)


# -- operations -----------------------------------------------------------------------------------

CORE = set(dir(tf.raw_ops))
"""Core TensorFlow: `tf.raw_ops` is made when TensorFlow is built, libraries do not add to it."""


def graph_of(exported):
    model = saved_model_pb2.SavedModel()
    model.ParseFromString((exported / "saved_model.pb").read_bytes())
    (meta,) = model.meta_graphs
    return meta.graph_def


def test_only_core_operations(exported):
    graph = graph_of(exported)
    nodes = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
    used = {node.op for node in nodes}
    functions = {f.signature.name for f in graph.library.function}
    assert len(nodes) > 1000
    assert used - CORE - functions == set()
    assert "StringSplitV2" in used, "the tokenizer should be inside the graph"
    assert not {op for op in used if "Xla" in op or op.startswith("PyFunc") or op == "EagerPyFunc"}


def test_nothing_is_compiled_by_xla(exported):
    graph = graph_of(exported)
    holders = [*graph.node, *graph.library.function]
    holders += [node for f in graph.library.function for node in f.node_def]
    assert not any(holder.attr["_XlaMustCompile"].b for holder in holders)


def test_probabilities_come_with_their_words(model, served):
    state = read(served, ["Mary took the milk.", "Mary went to the garden."], batch=2)
    answer = served.answer(**state, question=tf.constant(["Where is the milk?"] * 2))
    words, chances = answer["answers"].numpy(), answer["probabilities"].numpy()
    assert words.shape == chances.shape
    for row in range(2):
        assert words[row, chances[row].argmax()] == answer["answer"].numpy()[row]
    assert [word.decode() for word in words[1][2:]] == list(model.vocabulary.words)


def test_unknown_words_are_named(served):
    texts = tf.constant(["Mary took Zoë's milk, twice.", "Mary?", ""])
    words = served.unknown_words(text=texts)["words"].numpy().tolist()
    assert [word.decode() for word in words] == ["zoë's twice", "", ""]


def test_the_card_shows_the_models_own_data(make, tmp_path):
    from lemn_tf import Vocabulary
    from lemn_tf.model import StreamReader
    from lemn_tf.readers.memn2n import MemN2N

    example = {"item": ["Rex bit Tom.", "Tom ran."], "question": "Who bit Tom?"}
    words = Vocabulary(["rex", "bit", "tom", "ran", "who"], example=example)
    model = StreamReader(MemN2N(words.size, 4), slots=2, policy="fifo", vocabulary=words)
    model.save(tmp_path / "model.keras")
    from lemn_tf import load

    path = export(load(tmp_path / "model.keras"), tmp_path / "dogs" / "1")
    card = (path / "CARD.md").read_text()
    assert '{"sentences": ["Rex bit Tom.", "Tom ran."], "question": "Who bit Tom?"}' in card
    assert "Mary" not in card
