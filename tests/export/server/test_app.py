"""Sizes, deadlines, the log, and how the server starts and stops."""

import contextlib
import gc
import logging
import socket
import threading
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

from lemn_tf.export.limits import Limits
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


LONG, ENDLESS = 1000, 10**8
"""Steps of `slow` that take most of a second or more, and that nobody waits for."""


@pytest.fixture(scope="module")
def hasty(toy):
    with Server(toy, port=0, rest_port=0, limits=Limits(seconds=2)) as server:
        for _ in range(2):  # the first time is longer
            answer = requests.post(f"{server.rest_url}/v1/models/toy:predict", json=steps(1))
        assert answer.json() == {"outputs": [1]}
        yield server


def steps(number):
    return {"signature_name": "slow", "inputs": [number]}


def test_a_deadline_ends_the_work(tools, hasty):
    """Over REST it is the server's; over gRPC the caller may have a shorter one, or none."""
    url = f"{hasty.rest_url}/v1/models/toy:predict"
    with grpc.insecure_channel(f"127.0.0.1:{hasty.port}") as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        for timeout in (0.3, None):
            code, _ = tools.refused(stub.Predict, slow(ENDLESS), timeout=timeout)
            assert code is Code.DEADLINE_EXCEEDED
            assert stub.Predict(slow(1), timeout=10).outputs["done"].int_val[0] == 1
    answer = requests.post(url, json=steps(ENDLESS))
    assert answer.status_code == 504
    assert "error" in answer.json()
    assert requests.post(url, json=steps(1)).json() == {"outputs": [1]}
    time.sleep(0.5)
    before = time.process_time()  # the server is in this process
    time.sleep(0.5)
    assert time.process_time() - before < 0.25, "something is still working"


def test_stop_finishes_what_is_under_way(tools, toy):
    server = Server(toy, port=0, rest_port=0)
    url = f"{server.rest_url}/v1/models/toy:predict"
    body = steps(1)
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


def test_stop_cuts_off_what_takes_too_long(toy, caplog):
    server = Server(toy, port=0, rest_port=0)
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        large = slow(10**9)
        large.inputs["steps"].CopyFrom(tf.make_tensor_proto(np.full([100], 10**9, np.int32)))
        asked = [stub.Predict.future(one) for one in (slow(10**9), large, large, large)]
        time.sleep(1)
        start = time.monotonic()
        server.stop(grace=1)
        assert time.monotonic() - start < 10
        assert {one.code() for one in asked} <= {Code.UNAVAILABLE, Code.CANCELLED}
    assert "internal error" not in caplog.text
    assert "Traceback" not in caplog.text


def test_what_is_there_when_serving_begins_is_not_searched_for_garbage(toy):
    with Server(toy, port=0, rest_port=0, poll=0) as server:
        frozen = []

        def look():
            give_up = time.monotonic() + 20
            while not gc.get_freeze_count() and time.monotonic() < give_up:
                time.sleep(0.01)
            frozen.append(gc.get_freeze_count())
            server.stop()

        watcher = threading.Thread(target=look)
        watcher.start()
        server.wait()
        watcher.join()
    assert frozen[0] > 10_000
    assert gc.get_freeze_count() == 0


def test_ports_in_use(toy):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"127.0.0.1:{port} for REST"):
            Server(toy, port=0, rest_port=port)
        with pytest.raises(OSError, match=f"127.0.0.1:{port} for gRPC"):
            Server(toy, port=port, rest_port=0)


def test_a_request_that_does_not_come_whole(hasty):
    """Nothing, half a head, a head without its body: closed in time, one and all."""
    starts = [b"", b"GET /v1/mod", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"]
    waiting = [socket.create_connection(("127.0.0.1", hasty.rest_port), 10) for _ in starts]
    start = time.monotonic()
    for connection, sent in zip(waiting, starts, strict=True):
        connection.sendall(sent)
    for connection in waiting:
        while connection.recv(4096):
            pass
        connection.close()
    assert 1 < time.monotonic() - start < 8


def test_half_requests_keep_nobody_out(toy, monkeypatch):
    """The connections that wait longest make room, long before their time is over."""
    monkeypatch.setattr("lemn_tf.export.server.app._MOST_CONNECTIONS", 8)
    half = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"
    with Server(toy, port=0, rest_port=0) as server, contextlib.ExitStack() as stack:
        for _ in range(30):
            address = ("127.0.0.1", server.rest_port)
            stack.enter_context(socket.create_connection(address, 10)).sendall(half)
        for _ in range(3):
            answer = requests.get(f"{server.rest_url}/v1/models/toy", timeout=20)
            assert answer.status_code == 200


@pytest.mark.parametrize(
    "start",
    [b"GET / HTTP/1.1\r\nX: ", b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: "],
)
def test_a_header_without_an_end(toy, start):
    """The connection is closed long before the memory is full."""
    limits = Limits(request_bytes=1 << 20)
    with (
        Server(toy, port=0, rest_port=0, limits=limits) as server,
        socket.create_connection(("127.0.0.1", server.rest_port), 10) as connection,
        pytest.raises(ConnectionError),
    ):
        connection.sendall(start + b"x" * (16 << 20))


def test_a_connection_stays_open_between_requests(hasty):
    with requests.Session() as session:
        url = f"{hasty.rest_url}/v1/models/toy"
        for _ in range(3):
            assert session.get(url).status_code == 200
            time.sleep(0.8)
        assert session.get(url).status_code == 200


def test_two_lengths_for_one_body(hasty):
    head = b"POST /v1/models/toy:predict HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
    with socket.create_connection(("127.0.0.1", hasty.rest_port), 10) as connection:
        connection.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        assert b" 400 " in connection.recv(4096).split(b"\r\n")[0]


def test_limits(tools, url, stub, server):
    rows = {"x": [[1, 2, 3, 4]] * 101, "text": ["a"] * 101}
    answer = requests.post(f"{url}:predict", json={"inputs": rows})
    assert answer.status_code == 400
    assert "at most 100 rows" in answer.json()["error"]
    message = tools.request(x=tools.x, text=tools.text)
    message.inputs["x"].tensor_content = b""
    message.inputs["x"].float_val.extend([3.0])
    for dims in (message.inputs[name].tensor_shape.dim for name in ("x", "text")):
        dims[0].size = 1 << 20  # one value stands for all
    code, details = tools.refused(stub.Predict, message)
    assert code is Code.INVALID_ARGUMENT
    assert "at most 100 rows" in details
    long = np.array([b"x" * 400_000] * 2, object)  # which come back three times over
    code, details = tools.refused(stub.Predict, tools.request(x=tools.x, text=long))
    assert code is Code.RESOURCE_EXHAUSTED
    assert "answer" in details
