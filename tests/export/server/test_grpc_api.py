"""The gRPC front door, by the official stubs."""

import threading
import time

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
)

from lemn_tf.export.limits import Limits
from lemn_tf.export.server import Server, wire

Code = grpc.StatusCode


def test_predict(tools, stub):
    response = stub.Predict(tools.request(x=tools.x, text=tools.text))
    outputs = {name: tf.make_ndarray(proto) for name, proto in response.outputs.items()}
    np.testing.assert_array_equal(outputs["sum"], np.array([10, -1], np.float32))
    np.testing.assert_array_equal(outputs["positive"], tools.x > 0)
    assert outputs["echo"].tolist() == tools.text.tolist()
    assert outputs["length"].dtype == np.int32
    spec = response.model_spec
    assert (spec.name, spec.version.value, spec.signature_name) == ("toy", 1, "serving_default")


def test_predict_takes_both_encodings_of_a_tensor(tools, stub):
    message = tools.request(x=tools.x, text=tools.text)
    assert message.inputs["x"].tensor_content
    message.inputs["x"].tensor_content = b""
    message.inputs["x"].float_val.extend([3.0])  # one value stands for all
    response = stub.Predict(message)
    assert list(response.outputs["sum"].float_val) == [12, 12]


def test_predict_of_a_signature_that_does_not_batch(tools, stub):
    response = stub.Predict(tools.request("scalar", n=np.int64(2**40)))
    assert response.outputs["n"].int64_val[0] == 2**40 + 1
    assert not response.outputs["n"].tensor_shape.dim


def test_output_filter(tools, stub):
    message = tools.request(x=tools.x, text=tools.text)
    message.output_filter.append("sum")
    assert set(stub.Predict(message).outputs) == {"sum"}
    message.output_filter.append("nonsense")
    code, details = tools.refused(stub.Predict, message)
    assert code is Code.INVALID_ARGUMENT
    assert "'nonsense'" in details


def test_metadata(tools, stub):
    message = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    message.model_spec.name = "toy"
    response = stub.GetModelMetadata(message)
    signatures = get_model_metadata_pb2.SignatureDefMap()
    assert response.metadata["signature_def"].Unpack(signatures)
    assert set(signatures.signature_def) == {"serving_default", "double", "scalar", "slow"}
    assert response.model_spec.version.value == 1
    message.metadata_field.append("other")
    assert tools.refused(stub.GetModelMetadata, message)[0] is Code.INVALID_ARGUMENT


def test_status(tools, server):
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        models = model_service_pb2_grpc.ModelServiceStub(channel)
        message = get_model_status_pb2.GetModelStatusRequest()
        message.model_spec.name = "toy"
        (status,) = models.GetModelStatus(message).model_version_status
        assert (status.version, status.state) == (1, status.AVAILABLE)
        message.model_spec.version_label = "stable"
        assert len(models.GetModelStatus(message).model_version_status) == 1
        message.model_spec.version.value = 7
        assert tools.refused(models.GetModelStatus, message)[0] is Code.NOT_FOUND


X = np.ones([2, 4], np.float32)
TEXT = np.array([b"a", b"b"], object)


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        ({"model": "other"}, Code.NOT_FOUND, "'other'"),
        ({"signature": "other"}, Code.FAILED_PRECONDITION, "'other'"),
        ({"text": None}, Code.INVALID_ARGUMENT, "'text'"),
        ({"more": X}, Code.INVALID_ARGUMENT, "'more'"),
        ({"x": X.astype(np.float64)}, Code.INVALID_ARGUMENT, "'x'"),
        ({"x": X[0]}, Code.INVALID_ARGUMENT, "'x'"),
        ({"x": X[:, :3]}, Code.INVALID_ARGUMENT, "'x'"),
        ({"text": TEXT[:1]}, Code.INVALID_ARGUMENT, "'text'"),
        ({"x": X * np.float32(1e9)}, Code.INVALID_ARGUMENT, "x: too large"),
    ],
)
def test_refusals(tools, stub, change, code, says):
    arguments = {"x": X, "text": TEXT} | change
    arguments = {name: value for name, value in arguments.items() if value is not None}
    got, details = tools.refused(stub.Predict, tools.request(**arguments))
    assert got is code
    assert says in details


def test_a_tensor_that_lies_about_its_size(tools, stub):
    message = tools.request(x=tools.x, text=tools.text)
    dims = message.inputs["x"].tensor_shape.dim
    for size in (3, 2**40, -1):
        dims[0].size = size
        code, details = tools.refused(stub.Predict, message)
        assert code is Code.INVALID_ARGUMENT
        assert "'x'" in details


def test_callers_who_send_no_message_hold_up_nobody(tools, server, stub):
    """They open more requests than a server has threads, and say no more."""
    silence = threading.Event()
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        call = channel.stream_unary("/tensorflow.serving.PredictionService/Predict")
        silent = [call.future(iter(silence.wait, True)) for _ in range(300)]
        time.sleep(0.5)
        assert stub.Predict(tools.request(x=tools.x, text=tools.text), timeout=10).outputs
        for one in silent:
            one.cancel()
        silence.set()


def test_a_message_is_waited_for_only_so_long(toy):
    silence = threading.Event()
    with (
        Server(toy, port=0, rest_port=0, limits=Limits(seconds=0.5)) as server,
        grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel,
    ):
        call = channel.stream_unary("/tensorflow.serving.PredictionService/Predict")
        silent = call.future(iter(silence.wait, True), timeout=60)
        assert silent.code() is Code.DEADLINE_EXCEEDED
        assert "before the request was served" in silent.details()
        silence.set()


def test_of_too_many_callers_the_one_awaited_longest_makes_room(tools, server, stub, monkeypatch):
    monkeypatch.setattr(wire, "_MOST_CALLS", 5)
    silence = threading.Event()
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        call = channel.stream_unary("/tensorflow.serving.PredictionService/Predict")
        first = call.future(iter(silence.wait, True), timeout=60)
        time.sleep(0.5)  # it comes first; those that are sent together may come in any order
        others = [call.future(iter(silence.wait, True), timeout=60) for _ in range(4)]
        time.sleep(0.5)
        assert stub.Predict(tools.request(x=tools.x, text=tools.text), timeout=30).outputs
        assert first.code() is Code.RESOURCE_EXHAUSTED
        assert not any(one.done() for one in others)
        for one in others:
            one.cancel()
        silence.set()


def test_a_request_without_a_message_is_refused(tools, server):
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        call = channel.stream_unary("/tensorflow.serving.PredictionService/Predict")
        assert tools.refused(call, iter(()))[0] is Code.INVALID_ARGUMENT


def test_bytes_that_are_no_message(tools, server):
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        call = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
        assert tools.refused(call, b"\xff\xff\xff")[0] is Code.INVALID_ARGUMENT
        classify = channel.unary_unary("/tensorflow.serving.PredictionService/Classify")
        assert tools.refused(classify, b"")[0] is Code.UNIMPLEMENTED
