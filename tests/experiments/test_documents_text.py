"""Text in and text out for readers of documents: live, exported and served, the same answers."""

import numpy as np
import pytest
import tensorflow as tf

from lemn_tf.experiments.documents_reading import Reading
from lemn_tf.experiments.documents_text import Passages, _packed, _unpacked, documents_servable
from lemn_tf.experiments.documents_words import arrival
from lemn_tf.export import MemoryClient, Server, export
from lemn_tf.live import LiveReader
from lemn_tf.model import StreamReader
from lemn_tf.pipelines import documents as files
from lemn_tf.pipelines import spans, tokens
from lemn_tf.pipelines.embeddings import Words
from lemn_tf.readers import MemN2N
from tests.experiments.conftest import span_model


@pytest.fixture(scope="module")
def collection(towns) -> files.Collection:
    return files.read(towns.qa, towns.evidence)


@pytest.fixture(scope="module")
def blind(towns) -> StreamReader:
    return span_model(towns)


@pytest.fixture(scope="module")
def expected(blind, collection):
    """What `lemn evaluate` would answer to the first questions of two documents."""
    told = [one for one in Reading(blind, collection).answer(blind) if one.document in (0, 3)]
    assert len({one.text for one in told}) > 1
    return told[::3]


def check(reader, collection, expected):
    """Reads each document at once into `reader`, and asks."""
    for one in expected:
        reader.reset()
        reader.observe_many([collection[one.document].text])
        reply = reader.ask(collection.questions[one.question].text)
        assert reply.text == one.text
        assert reply.source.id == one.slot
        assert one.text in reply.source.text
        assert reply.probability == pytest.approx(one.confidence, abs=1e-5)


def test_a_live_reader_answers_as_in_the_evaluation(blind, collection, expected):
    check(LiveReader(blind, Passages(blind)), collection, expected)


@pytest.mark.slow
def test_paragraphs_one_by_one_are_read_as_many(blind):
    reader = LiveReader(blind, Passages(blind))
    texts = [
        "The gate of Rome is red. " * 2,
        "Nothing ever happens there.",
        "It rains, they say,\nall day there.",
    ]
    many = reader.observe_many(texts)
    assert [one.entry.text for one in many] == [
        "The gate of Rome is red.",
        "The gate of Rome is red.",
        "Nothing ever happens there.",
        "It rains, they say, all day",
        "there.",
    ]
    assert [one.entry.id for one in many] == list(range(5))
    kept, stems = reader.memory(), reader.state.stream["stems"].numpy()
    reader.reset()
    last = [reader.observe(text) for text in texts]
    assert last[0].entry.id == 1  # of its last slot
    assert [(one.id, one.text) for one in reader.memory()] == [(one.id, one.text) for one in kept]
    assert (reader.state.stream["stems"].numpy() == stems).all()
    assert reader.unknown_words("The zeppelin of Rome") == ["zeppelin", "rome"]
    question = "What colour is the gate?"
    assert reader.predict([texts], [question]) == [reader.ask(question).text]


def test_an_empty_memory_has_no_answer(blind):
    reply = LiveReader(blind, Passages(blind)).ask("What colour is the gate?")
    assert (reply.text, reply.probability, reply.source) == ("", 0.0, None)


def test_a_blind_policy_need_not_be_told_the_question(blind):
    with pytest.raises(ValueError, match="just ask"):
        LiveReader(blind, Passages(blind)).expect("What?")


@pytest.mark.slow
def test_a_memory_stays_small_whatever_the_words(blind):
    reader = LiveReader(blind, Passages(blind, text_limit=50))
    reader.observe("x" * 10_000 + " and\u00a0more \udcff".encode("utf-8", "replace").decode())
    assert [len(entry.text) for entry in reader.memory()] == [50]
    assert reader.ask("x?").text


@pytest.mark.slow
def test_a_policy_that_knows_the_question_is_told_it_first(towns, collection):
    model = span_model(towns, question_aware=True)
    reader = LiveReader(model, Passages(model))
    with pytest.raises(ValueError, match=r"expect\(question\)"):
        reader.observe("The gate of Rome is red.")
    for one in [one for one in Reading(model, collection).answer(model) if one.document == 1][:2]:
        question = collection.questions[one.question].text
        reader.reset()
        reader.expect(question)
        reader.observe_many([collection[one.document].text])
        assert reader.ask(question).text == one.text
        assert reader.state.entries["asked"].numpy()[0, 0].decode() == question


def test_what_is_no_reader_of_documents():
    with pytest.raises(ValueError, match="expected a model of documents"):
        Passages(StreamReader(MemN2N(9, 3), 2, "fifo"))


@pytest.fixture(scope="module")
def exported(blind, tmp_path_factory):
    return export(documents_servable(blind), tmp_path_factory.mktemp("models") / "towns" / "1")


@pytest.mark.slow
def test_served_answers_are_those_of_the_evaluation(exported, collection, expected):
    with Server(exported.parent, port=0, rest_port=0) as server:
        for target in (exported, server.rest_url, f"grpc://127.0.0.1:{server.port}"):
            with MemoryClient(target) as client:
                check(client, collection, expected[:2])
                seen = client.observe_many(["", "Nothing happens. " * 4, "It is quiet."])
                assert [one.entry.text.split()[0] for one in seen] == ["Nothing"] * 2 + ["It"]
                assert client.observe("   ") is None


@pytest.mark.slow
def test_the_exported_model_needs_core_operations_only(exported, collection, expected):
    graph = tf.saved_model.load(str(exported)).signatures["serving_default"]
    one = expected[0]
    out = graph(
        sentences=tf.constant([[collection[one.document].text]]),
        question=tf.constant([collection.questions[one.question].text]),
    )
    assert out["answer"].numpy()[0].decode() == one.text
    assert out["source"].numpy()[0] == one.slot
    used = {node.op for node in graph.graph.as_graph_def().node}
    for function in graph.graph.as_graph_def().library.function:
        used |= {node.op for node in function.node_def}
    assert not {op for op in used if "Tokenize" in op or op.startswith("TFText")}
    assert not [op for op in used if op.startswith("PyFunc")]


@pytest.mark.slow
def test_a_policy_that_knows_the_question_is_served(towns, collection, tmp_path):
    model = span_model(towns, question_aware=True)
    path = export(documents_servable(model), tmp_path / "aware" / "1")
    one = Reading(model, collection).answer(model)[0]
    with MemoryClient(path) as client:
        assert client.aware
        with pytest.raises(ValueError, match=r"expect\(question\)"):
            client.observe("The gate of Rome is red.")
        client.expect(collection.questions[one.question].text)
        client.observe_many([collection[one.document].text])
        assert client.ask(collection.questions[one.question].text).text == one.text


def test_the_stems_of_a_stream_are_carried_in_bits():
    flags = np.random.default_rng(0).random([3, tokens.IDF]) < 0.3
    packed = _packed(tf.constant(flags))
    assert packed.shape == (3, tokens.IDF // 32)
    assert (_unpacked(packed).numpy() == flags).all()


def test_arrival_goes_on_where_it_stopped(collection):
    words = Words(["the", "gate", "is"])
    batch = next(iter(spans.dataset(collection, words, 2)))
    items, paragraph = batch["items"], batch["paragraph"]
    seen = tf.zeros([2, tokens.IDF], tf.bool)
    parts = []
    for part in (slice(0, 2), slice(2, None)):
        some = {name: leaf[:, part] for name, leaf in items.items()}
        parts.append(arrival(some, paragraph[:, part], seen, part.start))
        stems = tf.reshape(some["stem"] % tokens.IDF, [2, -1])
        seen |= tf.reduce_any(tf.one_hot(stems, tokens.IDF, True, False), axis=1)
    np.testing.assert_allclose(tf.concat(parts, 1), arrival(items, paragraph), atol=1e-6)
