"""Malformed requests, generated: each is refused with a message that names what is wrong.

Most examples take a good `observe` and spoil one thing, so what must be named is known. The server
must stay up, small and correct.
"""

import copy
import json
import string

import grpc
import numpy as np
import pytest
import requests
import tensorflow as tf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tensorflow_serving.apis import predict_pb2

from lemn_tf.export.json_tensors import plain
from lemn_tf.export.transport.rest import Rest

Code = grpc.StatusCode
NUMBERS = ("ids", "expiry", "clock", "carry", "entries__tokens")
words = st.text(string.ascii_letters, min_size=1, max_size=8).map(lambda word: f"no_{word}")
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
junk = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3)
)


@pytest.fixture(scope="module")
def good(server):
    """A good request, as arrays, and the answer to it."""
    rest = Rest(server.rest_url, "small", 60)
    rest.describe()
    state = rest.run("initial_state", {"batch": np.zeros([1], np.int32)})
    names = list(state)
    for text in ("Mary took the milk.", "Mary went to the garden."):
        outputs = rest.run("observe", state | {"item": np.array([text.encode()], object)})
        state = {name: outputs[name] for name in names}
    inputs = state | {"item": np.array([b"John went to the office."], object)}
    outputs = rest.run("observe", inputs)
    yield inputs, {name: plain(value) for name, value in outputs.items()}
    rest.close()


@pytest.fixture(scope="module")
def send(server, good):
    """Posts a body and returns the refusal; afterwards a good request must still work."""
    inputs = {name: plain(value) for name, value in good[0].items()}
    right = json.dumps({"signature_name": "observe", "inputs": inputs})
    url = f"{server.rest_url}/v1/models/small:predict"
    with requests.Session() as session:

        def post(body):
            data = body if isinstance(body, bytes) else json.dumps(body)
            answer = session.post(url, data=data)
            return answer.status_code, answer.json().get("error", "")

        yield post
        assert session.post(url, data=right).json()["outputs"] == good[1]


def many(examples, strategy, check) -> None:
    """Runs `check` on so many examples, always the same ones."""
    settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )(given(strategy)(check))()


def spoil_json(draw, inputs: dict) -> tuple[dict, str]:
    """Spoils one input of a columnar request; returns it with what must be named."""
    inputs = copy.deepcopy(inputs)
    name = draw(st.sampled_from(sorted(inputs)))
    how = draw(
        st.sampled_from(["drop", "add", "kind", "deeper", "flatter", "rows", "wide", "leaf"])
    )
    value = inputs[name]
    if how == "drop":
        del inputs[name]
    elif how == "add":
        name = draw(words)
        inputs[name] = draw(junk)
    elif how == "kind":
        inputs[name] = draw(scalars | st.dictionaries(words, scalars, max_size=2))
    elif how == "deeper":
        inputs[name] = [value]
    elif how == "flatter":
        inputs[name] = value[0]
    elif how == "rows":
        inputs[name] = value * draw(st.integers(2, 5))
    elif how == "wide" and isinstance(value[0], list):
        inputs[name] = [[*value[0], value[0][0]]]
    else:
        inputs[name] = _spoil_leaf(value, draw(st.sampled_from([None, {}, {"b64": "?"}, [[]]])))
    return inputs, name


def _spoil_leaf(value, bad):
    if not isinstance(value, list):
        return bad
    return [_spoil_leaf(value[0], bad), *value[1:]]


def test_one_input_is_wrong(send, good, examples):
    right = {name: plain(value) for name, value in good[0].items()}

    @st.composite
    def requests_(draw):
        inputs, name = spoil_json(draw, right)
        if draw(st.booleans()):
            return {"signature_name": "observe", "inputs": inputs}, name
        rows = {n: v[0] if isinstance(v, list) and len(v) == 1 else v for n, v in inputs.items()}
        return {"signature_name": "observe", "instances": [rows, rows]}, None

    def check(case):
        body, name = case
        status, message = send(body)
        if name is None:  # as rows, some of the changes are none; it must be refused or right
            assert status in (200, 400)
        else:
            assert status == 400
            assert f"{name!r}" in message or f"{name}:" in message, message

    many(examples, requests_(), check)


def test_bodies_that_are_no_request(send, good, examples):
    inputs = {name: plain(value) for name, value in good[0].items()}
    right = json.dumps({"signature_name": "observe", "inputs": inputs}).encode()
    cut = st.integers(0, len(right) - 1).map(lambda end: right[:end])
    place = st.integers(0, len(right) - 1)
    not_utf8 = place.map(lambda at: right[:at] + b"\xff" + right[at:])
    other = st.fixed_dictionaries({}, optional={"instances": junk, "inputs": junk}).map(
        lambda body: json.dumps(body | {"signature_name": "observe"}).encode()
    )
    anything = junk.map(lambda value: json.dumps(value).encode())

    def check(body):
        status, message = send(body)
        assert status == 400
        assert message

    many(examples, cut | not_utf8 | st.binary(max_size=50) | other | anything, check)


def test_packed_states_that_are_not_ours(send, good, server, examples):
    rest = Rest(server.rest_url, "small", 60)
    rest.describe()
    flat = {name: value for name, value in good[0].items() if name != "item"}
    state = rest.run("pack", flat)["state"][0].decode()
    rest.close()
    inside = st.integers(0, len(state) - 3)
    cut = st.integers(1, len(state) - 1).map(lambda end: state[:end])
    changed = inside.map(
        lambda at: state[:at] + ("A" if state[at] != "A" else "B") + state[at + 1 :]
    )
    other = st.text(min_size=1, max_size=40)
    longer = st.text("AB", min_size=4, max_size=9).map(lambda more: state + more)
    foreign = st.text("0123456789abcdef", min_size=16, max_size=16).map(
        lambda mark: f"lemn1.{mark}.{state.split('.')[2]}"
    )
    signatures = st.sampled_from([("observe_packed", "item"), ("answer_packed", "question")])

    def check(case):
        packed, (signature, name) = case
        try:
            packed.encode()
        except UnicodeEncodeError:
            return
        inputs = {"state": [packed], name: ["Where is Mary?"]}
        status, message = send({"signature_name": signature, "inputs": inputs})
        assert status == 400
        assert "state" in message

    many(examples, st.tuples(cut | changed | other | longer | foreign, signatures), check)


def spoil_proto(draw, inputs) -> tuple[predict_pb2.PredictRequest, str]:
    """A gRPC request with one input spoilt, and which."""
    message = predict_pb2.PredictRequest()
    message.model_spec.name, message.model_spec.signature_name = "small", "observe"
    for key, value in inputs.items():
        message.inputs[key].CopyFrom(tf.make_tensor_proto(value))
    name = draw(st.sampled_from(sorted(inputs)))
    proto = message.inputs[name]
    how = draw(
        st.sampled_from(["drop", "add", "dtype", "size", "rank", "content", "count", "none"])
    )
    if how == "drop":
        del message.inputs[name]
    elif how == "add":
        name = draw(words)
        message.inputs[name].CopyFrom(proto)
    elif how == "dtype":
        proto.dtype = draw(st.integers(0, 200).filter(lambda number: number != proto.dtype))
    elif how == "size":
        axis = draw(st.integers(0, len(proto.tensor_shape.dim) - 1))
        dim = proto.tensor_shape.dim[axis]
        dim.size = draw(st.integers(-(2**63), 2**63 - 1).filter(lambda n: n != dim.size))
    elif how == "rank":
        proto.tensor_shape.dim.add(size=draw(st.integers(0, 3)))
    elif how == "content":
        bad = proto.tensor_content[:-1] + draw(st.binary(min_size=2, max_size=9))
        proto.tensor_content = bad + b"x" * (len(bad) == inputs[name].nbytes)
    elif how == "count":
        for field in ("int64_val", "int_val", "float_val", "bool_val"):
            getattr(proto, field).extend([1] * 99)
        proto.string_val.extend([b""] * 99)
        proto.tensor_content = b""
    else:
        proto.Clear()
    return message, name


def test_one_tensor_is_wrong(server, good, send, examples):
    @st.composite
    def messages(draw):
        return spoil_proto(draw, good[0])

    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        call = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")

        def check(case):
            message, name = case
            with pytest.raises(grpc.RpcError) as caught:
                call(message.SerializeToString())
            assert caught.value.code() is Code.INVALID_ARGUMENT
            said = caught.value.details()
            assert f"{name!r}" in said or f"{name}:" in said, said

        many(examples, messages(), check)


def test_messages_that_are_no_request(server, good, send, examples):
    message = predict_pb2.PredictRequest()
    for key, value in good[0].items():
        message.inputs[key].CopyFrom(tf.make_tensor_proto(value))
    right = message.SerializeToString()
    cut = st.integers(0, len(right) - 1).map(lambda end: right[:end])
    place = st.tuples(st.integers(0, len(right) - 1), st.binary(min_size=1, max_size=4))
    changed = place.map(lambda case: right[: case[0]] + case[1] + right[case[0] :])
    expected = (Code.INVALID_ARGUMENT, Code.NOT_FOUND, Code.FAILED_PRECONDITION)

    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        call = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")

        def check(body):
            with pytest.raises(grpc.RpcError) as caught:
                call(body)
            assert caught.value.code() in expected
            assert caught.value.details()

        many(examples, cut | changed | st.binary(max_size=60), check)
