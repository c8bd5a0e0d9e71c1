"""Signed states: what the server gave, it takes back, and nothing else."""

import pytest
import requests

from lemn_tf.export.client import MemoryClient
from lemn_tf.export.errors import ServingError
from lemn_tf.export.server import Server
from lemn_tf.export.server.signing import StateKey

SECRET = b"a secret of the tests"


@pytest.fixture(scope="module")
def server(exported):
    with Server(exported.parent, port=0, rest_port=0, key=StateKey(SECRET)) as server:
        yield server


@pytest.fixture(scope="module")
def signing(server):
    url = f"{server.rest_url}/v1/models/small:predict"

    def call(signature, **row):
        body = {"signature_name": signature, "instances": [row]}
        answer = requests.post(url, json=body).json()
        return answer["error"] if "error" in answer else answer["predictions"][0]

    return call


def test_a_memory_over_many_requests(signing):
    state = ""
    for line in ("Mary took the milk.", "Mary went to the garden."):
        state = signing("observe_packed", state=state, item=line)["state"]
    assert len(state.split(".")) == 4
    answer = signing("answer_packed", state=state, question="Where is the milk?")
    assert answer["texts"][-2:] == ["Mary took the milk.", "Mary went to the garden."]


def test_what_it_has_not_signed_is_refused(signing):
    state = signing("observe_packed", state="", item="Mary took the milk.")["state"]
    plain, _, signature = state.rpartition(".")
    other = StateKey(b"the secret of another").sign(plain.encode()).decode()
    for bad in (plain, state[:-1], other, "x", f"{plain}.", f"{plain[:-4]}AAAA.{signature}"):
        error = signing("answer_packed", state=bad, question="Where is Mary?")
        assert error == "state: expected one that this server has signed"


def test_a_state_as_named_tensors_is_not_taken(signing):
    assert "signed states only: no 'initial_state'" in signing("initial_state", batch=0)
    state = signing("unpack", state="")  # reading is free
    assert state["clock"] == 0
    assert "signed states only: no 'pack'" in signing("pack", **state)
    assert "signed states only: no 'observe'" in signing("observe", **state, item="Mary left.")


def test_keys(tmp_path):
    file = tmp_path / "key"
    file.write_bytes(SECRET + b"\n")
    assert StateKey.read(file).sign(b"x") == StateKey(SECRET).sign(b"x")
    file.write_bytes(b"short")
    with pytest.raises(ValueError, match="key: expected a key of at least 16 bytes; got 5"):
        StateKey.read(file)
    with pytest.raises(ServingError):
        StateKey(SECRET).verify(b"lemn1")


LINES = ("Mary took the milk.", "John went to the office.", "", *["Mary went to the garden."] * 6)


@pytest.mark.parametrize("way", ["rest_url", "grpc_url"])
def test_a_client_carries_signed_states(server, exported, way, tmp_path):
    """It does all that it does with a server that takes any state, and comes to the same."""
    told = []
    for target in (getattr(server, way), exported):
        with MemoryClient(target) as client:
            seen = [client.observe(line) for line in LINES]
            seen += client.observe_many(LINES, chunk=4)
            first = client.memory()[0].id
            client.pin(first)
            client.save(tmp_path / "memory")
            client.unpin(first)
            client.forget(first)
            reply = client.ask("Where is the milk?")
            told.append(([s and s.dropped for s in seen], client.memory(), reply, client.clock))
            client.reset()
            assert client.memory() == []
            client.load(tmp_path / "memory")
            told[-1] += (client.memory(),)
            assert client.memory()[0].pinned
    assert told[0] == told[1]


def test_a_memory_that_no_server_signed_is_not_taken(server, exported, tmp_path):
    with MemoryClient(exported) as client, MemoryClient(server.rest_url) as signed:
        client.save(tmp_path / "plain")
        signed.observe("Mary took the milk.")
        signed.save(tmp_path / "signed")
        with pytest.raises(ValueError, match="plain: expected a memory that its server has signed"):
            signed.load(tmp_path / "plain")
        assert signed.clock == 1
        with pytest.raises(ValueError, match="signed: not a saved memory"):
            client.load(tmp_path / "signed")
        text = (tmp_path / "signed").read_text()
        (tmp_path / "signed").write_text(text[:-2])
        with pytest.raises(ServingError, match="expected one that this server has signed"):
            signed.load(tmp_path / "signed")
        assert signed.clock == 1
