"""A toy SavedModel that has nothing to do with memories (the server must serve any), served."""

from pathlib import Path
from types import SimpleNamespace

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from lemn_tf.export.limits import Limits
from lemn_tf.export.server import Server

LIMITS = Limits(rows=100, request_bytes=1 << 20, answer_bytes=1 << 20)


class Toy(tf.Module):
    """Signatures with every kind of tensor, one that fails on demand, and a slow one."""

    def __init__(self, number: int):
        super().__init__()
        self.number = tf.Variable(number)

    @tf.function(input_signature=[tf.TensorSpec([None, 4]), tf.TensorSpec([None], tf.string)])
    def mixed(self, x, text):
        small = tf.reduce_all(x < 1e6)
        with tf.control_dependencies([tf.debugging.Assert(small, ["x: too large"])]):
            sums = tf.reduce_sum(x, axis=1)
        return {
            "sum": sums,
            "positive": x > 0,
            "echo": text,
            "echo_bytes": text,
            "length": tf.strings.length(text),
            "version": tf.fill([tf.shape(x)[0]], self.number),
        }

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float64)])
    def double(self, x):
        return {"y": 2 * x}

    @tf.function(input_signature=[tf.TensorSpec([], tf.int64)])
    def scalar(self, n):
        return {"n": n + 1}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def slow(self, steps):
        square = tf.eye(300) * 0.5
        for _ in tf.range(tf.reduce_max(steps)):
            square = square @ square
        return {"done": steps + tf.cast(square[0, 0] * 0.0, tf.int32)}


def write(path: Path, number: int = 1) -> Path:
    """Writes a toy whose `version` output says `number`."""
    toy = Toy(number)
    signatures = {
        "serving_default": toy.mixed,
        "double": toy.double,
        "scalar": toy.scalar,
        "slow": toy.slow,
    }
    tf.saved_model.save(toy, str(path), signatures=signatures)
    return path


def request(signature="", model="toy", **inputs):
    message = predict_pb2.PredictRequest()
    message.model_spec.name = model
    message.model_spec.signature_name = signature
    for name, value in inputs.items():
        message.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return message


def refused(call, *arguments, **options):
    """The code and the message with which a call is refused."""
    with pytest.raises(grpc.RpcError) as caught:
        call(*arguments, **options)
    return caught.value.code(), caught.value.details()


@pytest.fixture(scope="session")
def tools():
    """What the tests here share: `tools.request`, a good `x` and `text`, and so on."""
    x = np.array([[1, 2, 3, 4], [0, 0, 0, -1]], np.float32)
    text = np.array([b"abc", b"\xff\x00"], object)
    good = {"x": [[1, 2, 3, 4]], "text": ["a"]}
    return SimpleNamespace(write=write, request=request, refused=refused, x=x, text=text, good=good)


@pytest.fixture(scope="session")
def toy(tmp_path_factory):
    """Where the toy lies: .../toy, with a version 1."""
    return write(tmp_path_factory.mktemp("toys") / "toy" / "1").parent


@pytest.fixture(scope="module")
def server(toy):
    with Server(toy, port=0, rest_port=0, labels={"stable": 1}, limits=LIMITS) as server:
        yield server


@pytest.fixture(scope="module")
def url(server):
    return f"{server.rest_url}/v1/models/toy"


@pytest.fixture(scope="module")
def stub(server):
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        yield prediction_service_pb2_grpc.PredictionServiceStub(channel)
