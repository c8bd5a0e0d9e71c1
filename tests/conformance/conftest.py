"""The list of everything that must obey the laws of the design, each named once.

A `Subject` is anything that maps batch-major tensors to batch-major tensors: a memory under some
policy, a reader, or what a policy sees of an entry. Whatever is added to `SUBJECTS` is run through
`test_subjects.py` and `test_precision.py`; memories are also run through `test_memories.py`. A
reader joins with a function like `memory_under` that says how to make it, feed it, run it and pad
what it is fed.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf import EpisodicMemory, memory, retention
from lemn_tf.navigation.agent import RetentionView
from lemn_tf.readers import FRMQN, MQN, BiDAF, LiteReader, MemN2N, PolicyView, Reader
from lemn_tf.readers.mqn import FrameEncoder

STEPS, SLOTS, WIDTH = 9, 3, 6
Tensors = dict[str, tf.Tensor]


@dataclass(frozen=True)
class Subject:
    """Something under the laws.

    Attributes:
        name: for the test's id.
        make: makes the layer, built, with weights that depend on `keras.utils.set_random_seed`.
        inputs: from a number of rows to what it is fed.
        run: the layer and its inputs to its outputs; a pure function.
        pad: inputs with padding added, and a function that takes its traces off the outputs.
        scalars: the layer and its inputs to numbers on which every weight has an influence.
        kind: "memory", "reader" or "view".
        weights: the layer to the weights that are its own to train; default all of them.
    """

    name: str
    make: Callable[[], keras.layers.Layer]
    inputs: Callable[[int], Tensors]
    run: Callable[[keras.layers.Layer, Tensors], Tensors]
    pad: Callable[[Tensors], tuple[Tensors, Callable[[Tensors], Tensors]]]
    scalars: Callable[[keras.layers.Layer, Tensors], tf.Tensor]
    kind: str
    weights: Callable[[keras.layers.Layer], list] = lambda layer: layer.trainable_weights


@contextlib.contextmanager
def precision_of(name: str):
    """Keras' global dtype policy, for a while."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(name)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def with_weights(layer: keras.layers.Layer) -> keras.layers.Layer:
    """The layer with weights that are always the same."""
    generator = np.random.default_rng(1)
    for weight in layer.weights:
        weight.assign(generator.normal(scale=0.5, size=weight.shape))
    return layer


def memory_under(policy: str, precision: str = "", **options) -> Subject:
    """EpisodicMemory with a policy; one that shuffles is run as in training, with a seed."""
    seed = tf.constant([5, 6]) if options.get("shuffle") else None

    def make():
        with precision_of(precision) if precision else contextlib.nullcontext():
            layer = EpisodicMemory(SLOTS, retention.get(policy, **options))
            layer.initial_state(1, tf.TensorSpec([WIDTH]))
            layer.build((None, None, WIDTH))
        return with_weights(layer)

    def inputs(rows):
        generator = np.random.default_rng(2)
        items = generator.normal(size=[rows, STEPS, WIDTH]).astype(np.float32)
        if retention.get(policy).clairvoyant:  # whose items say when they will be needed
            items = np.floor(np.abs(items) * STEPS)
        length = np.array([STEPS, 2, 6, STEPS][:rows])
        return {"items": tf.constant(items), "mask": tf.sequence_mask(length, STEPS)}

    def run(layer, given):
        state, decisions = layer(given["items"], mask=given["mask"], seed=seed)
        live = given["mask"]
        shown = {  # what a padded step would have done is of no interest
            "slot": tf.where(live, decisions.slot, -1),
            "evicted": decisions.evicted,
            "keep": tf.where(live[..., None], decisions.keep, 0.0),
            "entropy": decisions.entropy,
            "free": decisions.free,
        }
        return {**shown, **memory.to_flat(memory.blank_unused(state))}

    def pad(given):
        extra = {
            "items": tf.pad(given["items"], [[0, 0], [0, 2], [0, 0]], constant_values=7.0),
            "mask": tf.pad(given["mask"], [[0, 0], [0, 2]]),
        }

        def cut(outputs):
            over_time = ("slot", "evicted", "keep", "entropy", "free")
            return {k: v[:, :STEPS] if k in over_time else v for k, v in outputs.items()}

        return extra, cut

    def scalars(layer, given):
        _, decisions = layer(given["items"], seed=seed)
        scores = layer.replay(given["items"], decisions, seed=seed)
        return tf.where(decisions.ids >= 0, scores.logits, 0.0)

    name = "-".join(filter(None, [policy, precision, *options]))
    return Subject(name, make, inputs, run, pad, scalars, "memory")


def sentences(rows: int) -> Tensors:
    """One question a row about up to `SLOTS` sentences of word ids, some slots unused."""
    generator = np.random.default_rng(2)
    return {
        "question": tf.constant(generator.integers(1, 9, [rows, 1, 3]), tf.int32),
        "entries": tf.constant(generator.integers(0, 9, [rows, SLOTS, 4]), tf.int32),
        "ids": tf.constant(IDS[:rows], tf.int64),
    }


def frames(rows: int) -> Tensors:
    """The same of small frames."""
    generator = np.random.default_rng(2)
    drawn = generator.integers(0, 256, [rows, SLOTS + 1, 8, 8, 3])
    return {
        "question": tf.constant(drawn[:, :1], tf.uint8),
        "entries": tf.constant(drawn[:, 1:], tf.uint8),
        "ids": tf.constant(IDS[:rows], tf.int64),
    }


def padded_slots(given: Tensors) -> Tensors:
    """Two more slots, unused."""
    rank = given["entries"].shape.rank
    spare = [[0, 0], [0, 2]] + [[0, 0]] * (rank - 2)
    return {
        **given,
        "entries": tf.pad(given["entries"], spare, constant_values=5),
        "ids": tf.pad(given["ids"], [[0, 0], [0, 2]], constant_values=memory.EMPTY),
    }


def reader(name: str, make: Callable[[], Reader], inputs, scalars=None) -> Subject:
    """A reader; `scalars` if its answer to one question does not depend on every weight."""

    def run(layer, given):
        query = layer.ask(given["question"][:, 0])
        answer = layer.read(query, layer.encode(given["entries"]), given["ids"])
        return {"logits": answer.logits, "attention": answer.attention}

    def pad(given):
        return padded_slots(given), lambda outputs: {
            "logits": outputs["logits"],
            "attention": outputs["attention"][:, :SLOTS],
        }

    def logits(layer, given):
        return run(layer, given)["logits"]

    return Subject(
        name, lambda: with_weights(make()), inputs, run, pad, scalars or logits, "reader"
    )


def slots_of_words(rows: int) -> Tensors:
    """The same of slots of words, with what is known of each word; flat, one name a tensor."""
    generator = np.random.default_rng(2)
    found = {"ids": tf.constant(IDS[:rows], tf.int64)}
    for part, lead in (("question", [rows, 1, 3]), ("entries", [rows, SLOTS, 4])):
        for name, most in (("words", 9), ("stem", 9), ("shape", 5), ("suffix", 7)):
            found[f"{part}/{name}"] = tf.constant(generator.integers(1, most, lead), tf.int32)
        for name, most, more in (("chars", 256, 16), ("punctuation", 4, 2)):
            drawn = generator.integers(1, most, [*lead, more])
            found[f"{part}/{name}"] = tf.constant(drawn, tf.int32)
        found[f"{part}/idf"] = tf.constant(generator.random(lead), tf.float32)
        found[f"{part}/features"] = tf.constant(generator.random([*lead, 6]), tf.float32)
    return found


def reader_of_words(name: str, make: Callable[[], Reader]) -> Subject:
    """A reader of slots of words, whose answers are spans."""

    def part(given, which):
        start = f"{which}/"
        return {k.removeprefix(start): v for k, v in given.items() if k.startswith(start)}

    def run(layer, given):
        asked = {k: v[:, 0] for k, v in part(given, "question").items()}
        codes = layer.encode(part(given, "entries"))
        answer = layer.read(layer.ask(asked), codes, given["ids"])
        shown = {"logits": answer.logits, "attention": answer.attention}
        return {**shown, "vectors": layer.vectors(codes)}

    def pad(given):
        padded = dict(given)
        for k, v in given.items():
            if not k.startswith("question"):
                spare = [[0, 0], [0, 2]] + [[0, 0]] * (v.shape.rank - 2)
                padded[k] = tf.pad(v, spare, constant_values=memory.EMPTY if k == "ids" else 1)
        spans = 4 * make().longest

        def cut(outputs):
            ends = {"logits": SLOTS * spans, "attention": SLOTS, "vectors": SLOTS}
            return {k: v[:, : ends[k]] for k, v in outputs.items()}

        return padded, cut

    def scalars(layer, given):
        outputs = run(layer, given)
        logits = tf.where(outputs["logits"] > -1e8, outputs["logits"], 0.0)
        return tf.concat([tf.reshape(x, [-1]) for x in (logits, outputs["vectors"])], axis=0)

    return Subject(name, lambda: with_weights(make()), slots_of_words, run, pad, scalars, "reader")


WORDS = {"words": 4, "kinds": (5, 7, 4), "view": ("hand", "words", "states"), "view_units": 2}


def lite() -> LiteReader:
    return LiteReader(9, width=5, longest=2, units=3, **WORDS)


def bidaf() -> BiDAF:
    return BiDAF(9, width=5, units=3, char_units=2, **WORDS)


def walked(layer: MQN, given: Tensors) -> tf.Tensor:
    """The logits of three steps: what a recurrent reader remembers counts from the second on."""
    parts = (layer.ask(given["question"][:, 0]), layer.encode(given["entries"]), given["ids"])
    return layer.actor(layer.unroll(*(tf.repeat(part[:, None], 3, axis=1) for part in parts))[0])


def view(name: str, make: Callable[[], keras.layers.Layer], inputs, weights, run=None) -> Subject:
    """What a policy sees of entries; `weights` are those that it goes by."""

    def see(layer, given):
        return {"vectors": layer(given["entries"])}

    run = run or see

    def pad(given):
        return padded_slots(given), lambda outputs: {
            name: value[:, :SLOTS] for name, value in outputs.items()
        }

    def scalars(layer, given):
        return tf.concat([tf.reshape(x, [-1]) for x in run(layer, given).values()], axis=0)

    return Subject(name, lambda: with_weights(make()), inputs, run, pad, scalars, "view", weights)


def matched(layer, given: Tensors) -> Tensors:
    """The first sentence put to the memory as a question."""
    vectors = layer.view(given["entries"])
    _, match = layer((vectors[:, 0], vectors, given["ids"]))
    return {"vectors": vectors, "match": match}


def memn2n() -> MemN2N:
    return MemN2N(9, sentence_length=4, units=6, max_slots=8)


def small(cls: type[MQN]) -> MQN:
    return cls(units=6, eyes=FrameEncoder((8, 8), (2, 3)))


def matching_view() -> PolicyView:
    matching = memn2n().matching()
    return PolicyView(matching.reader, matching)


IDS = np.array([[0, 4, 5], [-1, 3, -1], [7, 2, 9], [-1, 1, 6]])
LEXICAL = ("salient", "distinct-salient", "novelty", "salient-first", "overlap")
SUBJECTS = [
    *(memory_under(name) for name in retention.NAMES),
    memory_under("s-lemn", shuffle=True),
    memory_under("st-lemn", shuffle=True),
    memory_under("im-lemn", "mixed_bfloat16"),
    memory_under("st-lemn", "float16"),
    *(memory_under(name) for name in LEXICAL),
    memory_under("im-lemn", skip=True),
    memory_under("s-lemn", skip=True),
    memory_under("st-lemn", reservoir=True),
    reader("memn2n", memn2n, sentences),
    reader_of_words("lite", lite),
    reader_of_words("bidaf", bidaf),
    reader("mqn", lambda: small(MQN), frames),
    reader("frmqn", lambda: small(FRMQN), frames, walked),
    view("policy-view", lambda: PolicyView(memn2n()), sentences, lambda view: [view.reader.words]),
    view(
        "policy-view-matching",
        matching_view,
        sentences,
        lambda view: [view.reader.words, *view.matching.controller.trainable_weights],
    ),
    view(
        "retention-view",
        lambda: RetentionView(small(MQN), width=4),
        frames,
        lambda view: [
            weight
            for part in (view.narrow, view.reader.value, view.reader.eyes)
            for weight in part.trainable_weights
        ],
    ),
    view(
        "matching",
        lambda: memn2n().matching(),
        sentences,
        lambda layer: [layer.reader.words, *layer.controller.trainable_weights],
        matched,
    ),
]
_LAYERS: dict[str, keras.layers.Layer] = {}
_OUTPUTS: dict[str, Tensors] = {}


def pytest_generate_tests(metafunc):
    """Runs a test that takes `subject` over all of them, one that takes `policy` over memories."""
    for argument, kinds in (("subject", ("memory", "reader", "view")), ("remember", ("memory",))):
        if argument in metafunc.fixturenames:
            chosen = [subject for subject in SUBJECTS if subject.kind in kinds]
            rows = [  # what is made once for a subject is made in one process
                pytest.param(one, id=one.name, marks=pytest.mark.xdist_group(one.name))
                for one in chosen
            ]
            metafunc.parametrize(argument, rows, indirect=argument == "remember")


@pytest.fixture
def remember(request) -> EpisodicMemory:
    """The memory layer itself. Its weights are never changed, so it is made once."""
    subject = request.param
    return _LAYERS.setdefault(subject.name, _LAYERS.get(subject.name) or subject.make())


@pytest.fixture
def layer(subject) -> keras.layers.Layer:
    """The subject's layer, made once."""
    if subject.name not in _LAYERS:
        _LAYERS[subject.name] = subject.make()
    return _LAYERS[subject.name]


@pytest.fixture
def expected(subject, layer) -> Tensors:
    """What the subject's layer makes of four rows, computed once."""
    if subject.name not in _OUTPUTS:
        _OUTPUTS[subject.name] = subject.run(layer, subject.inputs(4))
    return _OUTPUTS[subject.name]


@pytest.fixture
def precision(request):
    """Everything made in this test is made under the dtype policy it is parametrised with."""
    with precision_of(request.param):
        yield request.param


@pytest.fixture
def compare():
    """Asserts that two dicts of outputs agree: whole numbers exactly, others to 1e-5."""

    def check(ours, theirs):
        assert set(ours) == set(theirs)
        for name, value in ours.items():
            value, other = np.asarray(value), np.asarray(theirs[name])
            assert value.dtype == other.dtype, name
            if value.dtype.kind == "f":
                np.testing.assert_allclose(value, other, atol=1e-5, rtol=1e-5, err_msg=name)
            else:
                np.testing.assert_array_equal(value, other, err_msg=name)

    return check
