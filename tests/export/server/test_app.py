"""Sizes, deadlines, the log, and how the server starts and stops."""

import logging
import socket
import time
from concurrent import futures

import grpc
import numpy as np
import pytest
import requests
import tensorflow as tf
from tensorflow_serving.apis import (
    predict_pb2,
    prediction_service_pb2_grpc,
)

from lemn_tf.export.server import Server

Code = grpc.StatusCode


def test_huge_requests(tools, url, server, stub):
    huge = "x" * (1 << 21)
    answer = requests.post(f"{url}:predict", json={"inputs": tools.good | {"text": [huge]}})
    assert answer.status_code == 400
    assert "1048576" in answer.json()["error"]
    chunks = (b"x" * 65536 for _ in range(64))  # without a content-length
    answer = requests.post(f"{url}:predict", data=chunks)
    assert answer.status_code == 400
    code, _ = tools.refused(
        stub.Predict, tools.request(x=tools.x[:1], text=np.array([huge.encode()], object))
    )
    assert code is Code.RESOURCE_EXHAUSTED
    assert requests.post(f"{url}:predict", json={"inputs": tools.good}).status_code == 200


def test_one_line_in_the_log_for_each_request(tools, url, stub, caplog):
    with caplog.at_level(logging.INFO, "lemn_tf.server"):
        requests.post(f"{url}:predict", json={"inputs": tools.good})
        requests.post(f"{url}:predict", data="{")
        stub.Predict(tools.request(x=tools.x, text=tools.text))
        tools.refused(stub.Predict, tools.request(x=tools.x))
        time.sleep(0.2)
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 4
    assert not any("\n" in line for line in lines)
    assert lines[0].startswith("REST POST /v1/models/toy:predict 200 ")
    assert lines[1].startswith("REST POST /v1/models/toy:predict 400 ")
    assert lines[2].startswith("gRPC Predict OK ")
    assert lines[3].startswith("gRPC Predict INVALID_ARGUMENT ")


def slow(steps):
    message = predict_pb2.PredictRequest()
    message.model_spec.signature_name = "slow"
    message.inputs["steps"].CopyFrom(tf.make_tensor_proto([steps], tf.int32))
    return message


LONG = 1000
"""Steps of `slow` that take most of a second or more."""


def test_deadlines(tools, toy):
    with (
        Server(toy, port=0, rest_port=0, timeout=0.2) as server,
        grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel,
    ):
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        stub.Predict(slow(1))
        assert tools.refused(stub.Predict, slow(LONG), timeout=0.2)[0] is Code.DEADLINE_EXCEEDED
        url = f"{server.rest_url}/v1/models/toy:predict"
        answer = requests.post(url, json={"signature_name": "slow", "inputs": [LONG]})
        assert answer.status_code == 504
        assert "error" in answer.json()
        assert stub.Predict(slow(1), timeout=60).outputs["done"].int_val[0] == 1


def test_stop_finishes_what_is_under_way(tools, toy):
    server = Server(toy, port=0, rest_port=0)
    url = f"{server.rest_url}/v1/models/toy:predict"
    body = {"signature_name": "slow", "inputs": [1]}
    requests.post(url, json=body)  # prepares the signature
    with (
        futures.ThreadPoolExecutor(2) as pool,
        grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel,
    ):
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        by_grpc = pool.submit(stub.Predict, slow(LONG))
        by_rest = pool.submit(requests.post, url, json=body | {"inputs": [LONG]})
        time.sleep(0.3)
        server.stop(grace=60)
        assert by_grpc.result().outputs["done"].int_val[0] == LONG
        assert by_rest.result().json() == {"outputs": [LONG]}
        assert tools.refused(stub.Predict, slow(1))[0] is Code.UNAVAILABLE
    with pytest.raises(requests.ConnectionError):
        requests.post(url, json=body)
    server.stop()  # again does nothing


def test_ports_in_use(toy):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"127.0.0.1:{port} for REST"):
            Server(toy, port=0, rest_port=port)
        with pytest.raises(OSError, match=f"127.0.0.1:{port} for gRPC"):
            Server(toy, port=port, rest_port=0)
