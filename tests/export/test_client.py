"""MemoryClient: one memory, whichever way it is reached."""

import random
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from lemn_tf import memory
from lemn_tf.export import transport
from lemn_tf.export.client import Entry, MemoryClient
from lemn_tf.export.errors import Code, ServingError
from lemn_tf.export.server import Server
from lemn_tf.export.transport.folder import Folder

PEOPLE, PLACES, THINGS = ("Mary", "John"), ("kitchen", "garden", "office"), ("milk", "apple")


def script(observes: int, asks: int, seed: int = 3) -> list[str]:
    """Lines of a conversation, the questions spread evenly among them."""
    draw, lines = random.Random(seed), []
    for number in range(observes):
        who = draw.choice(PEOPLE)
        verb = f"went to the {draw.choice(PLACES)}"
        lines.append(f"{who} {verb if draw.random() < 0.7 else 'took the ' + draw.choice(THINGS)}.")
        if (number + 1) % (observes // asks) == 0:
            lines.append(f"Where is the {draw.choice(THINGS)}?")
    return lines


@pytest.fixture(scope="module")
def server(exported):
    with Server(exported.parent, port=0, rest_port=0) as server:
        yield server


@pytest.fixture(scope="module", params=["folder", "rest", "grpc"])
def target(request, server, exported):
    return {"folder": str(exported), "rest": server.rest_url, "grpc": server.grpc_url}[
        request.param
    ]


@pytest.fixture(scope="module")
def connected(target):
    with MemoryClient(target) as client:
        yield client


@pytest.fixture
def client(connected):
    connected.reset()
    return connected


def by_client(target: str, lines: list[str]):
    """Answers, evictions and the final memory through a client."""
    answers, evicted = [], []
    with MemoryClient(target) as client:
        for line in lines:
            if line.endswith("?"):
                answer = client.ask(line)
                answers.append((answer.text, np.float32(answer.probability)))
            else:
                dropped = client.observe(line).dropped
                evicted.append(-1 if dropped is None else dropped.id)
        return answers, evicted, client.state


def by_saved_model(served, lines: list[str]):
    """The same by the signatures of `tf.saved_model.load`."""
    answers, evicted = [], []
    state = served.initial_state(batch=tf.constant([0]))
    for line in lines:
        if line.endswith("?"):
            outputs = served.answer(**state, question=tf.constant([line]))
            answers.append(
                (outputs["answer"].numpy()[0].decode(), outputs["probability"].numpy()[0])
            )
        else:
            outputs = served.observe(**state, item=tf.constant([line]))
            evicted.append(int(outputs["evicted"][0]))
            state = {name: outputs[name] for name in served.state_names}
    return answers, evicted, {name: tensor.numpy() for name, tensor in state.items()}


def by_library(model, lines: list[str]):
    """The same by the library itself: no export, no signatures."""
    answers, evicted = [], []
    length = model.reader.sentence_length
    observe = tf.function(model.memory.observe)
    state = memory.empty(
        1, model.memory.slots, tf.TensorSpec([length], tf.int32), model.memory.policy.carry_spec()
    )

    @tf.function
    def ask(state, question):
        read = model.reader.read
        result = read(model.reader.ask(question), model.reader.encode(state.entries), state.ids)
        return tf.argmax(result.logits, -1), tf.reduce_max(tf.nn.softmax(result.logits), -1)

    for line in lines:
        tokens = model.vocabulary([line], length=length)
        if line.endswith("?"):
            best, probability = ask(state, tokens)
            word = model.vocabulary.text(best[:, None]).numpy()[0].decode()
            answers.append((word, probability.numpy()[0]))
        else:
            state, decision = observe(state, tokens)
            evicted.append(int(decision.evicted[0]))
    flat = {name: tensor.numpy() for name, tensor in memory.to_flat(state).items()}
    flat["entries__tokens"] = flat.pop("entries")
    return answers, evicted, flat


def test_every_way_gives_the_same(model, served, server, exported):
    lines = script(500, 50)
    expected = by_library(model, lines)
    assert len(expected[0]) == 50
    assert len(expected[1]) == 500
    ways = {
        "SavedModel": by_saved_model(served, lines),
        "in process": by_client(str(exported), lines),
        "REST": by_client(server.rest_url, lines),
        "gRPC": by_client(server.grpc_url, lines),
    }
    for way, (answers, evicted, state) in ways.items():
        assert evicted == expected[1], way
        assert [text for text, _ in answers] == [text for text, _ in expected[0]], way
        np.testing.assert_allclose(
            [p for _, p in answers], [p for _, p in expected[0]], rtol=1e-4, err_msg=way
        )
        for name, value in expected[2].items():
            if value.dtype.kind == "f":
                np.testing.assert_allclose(state[name], value, rtol=1e-3, atol=1e-5, err_msg=way)
            else:
                np.testing.assert_array_equal(state[name], value, err_msg=f"{way}: {name}")
    for name, value in ways["in process"][2].items():  # bit for bit over the wire
        np.testing.assert_array_equal(ways["REST"][2][name], value)
        np.testing.assert_array_equal(ways["gRPC"][2][name], value)


def test_a_conversation(client):
    assert client.memory() == []
    first = client.observe("Mary took the milk.")
    assert first.entry == Entry(0, "Mary took the milk.")
    assert first.stored
    assert first.dropped is None
    for number in range(1, 12):
        client.observe(f"John went to the {PLACES[number % 3]}.")
    entries = client.memory()
    assert client.clock == 12
    assert len(entries) == 5
    assert [entry.id for entry in entries] == sorted(entry.id for entry in entries)
    assert all(0 <= entry.keep <= 1 for entry in entries)
    answer = client.ask("Where is John?")
    assert answer.text
    assert 0 < answer.probability <= 1
    weights = [weight for _, weight in answer.evidence]
    assert weights == sorted(weights, reverse=True)
    assert {entry for entry, _ in answer.evidence} == set(entries)


def test_observe_many_is_observe_repeated(client):
    lines = [line for line in script(20, 1) if not line.endswith("?")]
    one_by_one = [client.observe(line) for line in lines]
    entries, state = client.memory(), client.state
    client.reset()
    assert client.observe_many([*lines[:7], ""], chunk=3)[-1] is None
    together = client.observe_many(lines[7:], chunk=6)
    assert together == one_by_one[7:]
    assert [e.id for e in client.memory()] == [e.id for e in entries]
    np.testing.assert_allclose(
        [e.keep for e in client.memory()], [e.keep for e in entries], rtol=1e-3
    )
    np.testing.assert_array_equal(client.state["ids"], state["ids"])


def test_nothing_is_no_observation(client):
    client.observe("Mary took the milk.")
    before = client.memory()
    assert client.observe("") is None
    assert client.memory() == before
    assert client.clock == 1


def test_pin_and_forget(client):
    for line in script(8, 1)[:8]:
        client.observe(line)
    kept, gone = client.memory()[:2]
    client.pin(kept.id)
    client.forget(gone.id)
    assert gone.id not in [entry.id for entry in client.memory()]
    for line in script(20, 1, seed=5)[:20]:
        client.observe(line)
    (pinned,) = (entry for entry in client.memory() if entry.pinned)
    assert (pinned.id, pinned.text) == (kept.id, kept.text)
    client.unpin(kept.id)
    assert not any(entry.pinned for entry in client.memory())
    with pytest.raises(KeyError, match="no entry 999"):
        client.pin(999)


def test_save_and_load(client, tmp_path):
    for line in script(9, 1)[:9]:
        client.observe(line)
    path, state, entries = tmp_path / "memory", client.state, client.memory()
    client.save(path)
    client.reset()
    assert client.memory() == []
    client.load(path)
    for name, value in state.items():
        np.testing.assert_array_equal(client.state[name], value)
    assert [(e.id, e.text) for e in client.memory()] == [(e.id, e.text) for e in entries]
    assert memory.load(path).entries["text"].shape == (1, 5)  # the library reads it too
    other = memory.empty(1, 3, tf.TensorSpec([2]))
    memory.save(other, path)
    with pytest.raises(ValueError, match="another kind of memory"):
        client.load(path)


def test_text_of_any_kind(client):
    long = "milk " * 500
    for text in ("naïve 漢字 🥛", long, "\x00\x01", "[red]markup[/]", "\ud800"):
        assert client.observe(text).stored
    assert client.memory()[0].text == "naïve 漢字 🥛"
    assert client.ask("").text is not None


# -- when things go wrong -------------------------------------------------------------------------


class Flaky:
    """A transport that fails first."""

    def __init__(self, inner, *codes):
        self.inner, self.codes, self.tried = inner, list(codes), 0

    def describe(self):
        return self.inner.describe()

    def run(self, *arguments):
        self.tried += 1
        if self.codes:
            raise ServingError(self.codes.pop(0), "no")
        return self.inner.run(*arguments)

    def close(self):
        self.inner.close()


@pytest.fixture(scope="module")
def in_process(exported):
    inner = Folder(exported)
    yield inner
    inner.close()


def flaky(monkeypatch, in_process, *codes, **options):
    monkeypatch.setattr(transport, "connect", lambda *_: Flaky(in_process))
    client = MemoryClient("anywhere", backoff=0.001, **options)
    client._transport.codes, client._transport.tried = list(codes), 0
    return client


def test_unavailable_is_tried_again(monkeypatch, in_process):
    client = flaky(monkeypatch, in_process, Code.UNAVAILABLE, Code.UNAVAILABLE)
    assert client.observe("Mary took the milk.").stored
    assert client._transport.tried == 3


def test_but_not_for_ever_and_the_memory_stays(monkeypatch, in_process):
    client = flaky(monkeypatch, in_process, *[Code.UNAVAILABLE] * 9, retries=3)
    with pytest.raises(ServingError) as caught:
        client.observe("Mary took the milk.")
    assert caught.value.code is Code.UNAVAILABLE
    assert client._transport.tried == 4
    assert client.clock == 0


@pytest.mark.parametrize("code", [Code.INVALID_ARGUMENT, Code.NOT_FOUND, Code.DEADLINE_EXCEEDED])
def test_invalid_is_never_tried_again(monkeypatch, in_process, code):
    client = flaky(monkeypatch, in_process, code)
    with pytest.raises(ServingError):
        client.ask("Where is Mary?")
    assert client._transport.tried == 1


@pytest.mark.parametrize("form", ["http://127.0.0.1:9", "grpc://127.0.0.1:9", "127.0.0.1:9"])
def test_nobody_there(form):
    with pytest.raises(ServingError) as caught:
        MemoryClient(form, name="small", retries=1, backoff=0.01, timeout=5)
    assert caught.value.code is Code.UNAVAILABLE


def test_targets(server, tmp_path):
    for target in (
        f"{server.rest_url}/v1/models/small",
        f"{server.grpc_url}/small",
        f"127.0.0.1:{server.port}",
    ):
        MemoryClient(target).close()
    for target in (server.rest_url, server.grpc_url):
        with pytest.raises(ServingError) as caught:
            MemoryClient(target, name="other")
        assert caught.value.code is Code.NOT_FOUND
    with pytest.raises(ValueError, match="expected http://HOST:PORT"):
        MemoryClient("ftp://example")
    for target in ("http://127.0.0.1:99999", "grpc://127.0.0.1:0/small", "127.0.0.1:70000"):
        with pytest.raises(ValueError, match="expected a port from 1 to 65535"):
            MemoryClient(target)
    with pytest.raises(FileNotFoundError, match="expected a SavedModel"):
        MemoryClient(tmp_path)


def test_a_model_without_memory(tmp_path):
    toy = tf.Module()
    double = tf.function(lambda x: {"y": 2 * x}, input_signature=[tf.TensorSpec([None])])
    tf.saved_model.save(toy, str(tmp_path / "toy"), signatures={"serving_default": double})
    with pytest.raises(ValueError, match="keeps no memory"):
        MemoryClient(tmp_path / "toy")


BLOCKED = """
    import sys

    class Block:
        def find_spec(self, name, path=None, target=None):
            if name.split(".")[0] in {blocked}:
                raise ImportError(f"{{name}} is blocked")

    sys.meta_path.insert(0, Block())
    from lemn_tf.export import MemoryClient
    with MemoryClient(sys.argv[1]) as client:
        client.observe_many(["Mary took the milk.", "Mary went to the garden."])
        client.pin(0)
        print([entry.text for entry in client.memory()], client.ask("Where is Mary?").text)
"""


@pytest.mark.parametrize("way", ["rest", "grpc"])
def test_a_client_needs_little(server, exported, way):
    """No TensorFlow, no server, and of requests and grpc only the one that is used."""
    blocked = ["tensorflow", "tensorflow_serving", "tensorflow_text", "keras", "starlette"]
    blocked += ["uvicorn", *(["grpc", "google"] if way == "rest" else ["requests"])]
    url = server.rest_url if way == "rest" else server.grpc_url
    script = textwrap.dedent(BLOCKED.format(blocked=blocked))
    done = subprocess.run(
        [sys.executable, "-c", script, url], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    with MemoryClient(exported) as client:
        client.observe_many(["Mary took the milk.", "Mary went to the garden."])
        texts = [entry.text for entry in client.memory()]
        assert done.stdout == f"{texts} {client.ask('Where is Mary?').text}\n"


# -- long streams ---------------------------------------------------------------------------------


def resident() -> float:
    """Megabytes of this process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 2**20


@pytest.mark.parametrize(
    "items", [pytest.param(1500, id="quick"), pytest.param(100_000, marks=pytest.mark.slow)]
)
def test_a_long_stream_in_bounded_space(server, items):
    """Server and client are both in this process: neither may grow."""
    lines = script(400, 1)[:400]
    sizes, megabytes = set(), []
    with MemoryClient(server.grpc_url) as client:
        for number in range(items):
            client.observe(lines[number % 400])
            if number % (items // 10) == items // 10 - 1:
                sizes.add(sum(a.nbytes for n, a in client.state.items() if n != "entries__text"))
                megabytes.append(resident())
        assert client.clock == items
        assert len(client.memory()) == 5
    assert len(sizes) == 1
    # The first part warms up pools; after it the curve must be flat.
    assert max(megabytes[5:]) - max(megabytes[:5]) < 16


def test_a_policy_that_listens(small_lru):
    """LRU learns from `ask` what is useful: the client tells it."""
    with MemoryClient(small_lru.path) as client:
        lines = script(30, 6)
        for line in lines:
            client.ask(line) if line.endswith("?") else client.observe(line)
        assert "attend" in client._signatures
        assert client.clock == 30


@pytest.fixture
def small_lru(tmp_path, model):
    import keras

    from lemn_tf.export import export
    from lemn_tf.model import StreamReader

    keras.utils.set_random_seed(0)
    reader = type(model.reader).from_config(model.reader.get_config())
    lru = StreamReader(reader, slots=3, policy="lru", vocabulary=model.vocabulary)
    return SimpleNamespace(path=export(lru, tmp_path / "lru" / "1"))
