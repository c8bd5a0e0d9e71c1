"""What a stranger would try: tensors that lie about their size, deep and endless JSON, noise.

Everything is drawn from a seed. A request is answered or refused in time; that the server stays up
and small is seen to by the fixture.
"""

import base64
import contextlib
import json
import random
import shutil
import socket
import time

import grpc
import pytest
import requests
from tensorflow.core.framework import types_pb2
from tensorflow_serving.apis import predict_pb2

from lemn_tf.export import MemoryClient

pytestmark = pytest.mark.xdist_group("fuzz")  # what they share is set up once

METHOD = "/tensorflow.serving.PredictionService/Predict"
SIGNATURES = (
    "serving_default",
    "initial_state",
    "observe",
    "observe_many",
    "answer_packed",
    "pack",
)
NAMES = ("sentences", "question", "batch", "item", "items", "state", "clock", "ids", "carry")
SIZES = (0, 1, 2, 3, 64, 255, 257, 1024, 1025, 65536, 131072, 2**24, 2**31, 2**62, 2**63 - 1, -1)
LONGEST = 30.0
REFUSALS = [
    grpc.StatusCode.OK,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
]


def lying_tensors(draw: random.Random) -> bytes:
    """A few bytes that claim to be a large tensor."""
    request = predict_pb2.PredictRequest()
    request.model_spec.signature_name = draw.choice(SIGNATURES)
    for name in draw.sample(NAMES, draw.randrange(1, 4)):
        proto = request.inputs[name]
        proto.dtype = draw.choice([types_pb2.DT_STRING, types_pb2.DT_INT32, types_pb2.DT_INT64])
        for _ in range(draw.randrange(4)):
            proto.tensor_shape.dim.add(size=draw.choice(SIZES))
        proto.string_val.append(b"Mary went to the garden." * draw.choice([0, 1, 1, 1000]))
        proto.int_val.append(draw.randrange(-(2**31), 2**31))
        proto.int64_val.append(draw.choice(SIZES[:-1]))
    return request.SerializeToString()


def streams(draw: random.Random) -> bytes:
    """A stream that is well formed, and as long as its few bytes can say."""
    request = predict_pb2.PredictRequest()
    rows, steps = draw.choice(SIZES[:11]), draw.choice(SIZES[:11])
    for name, shape in (("sentences", (rows, steps)), ("question", (rows,))):
        request.inputs[name].dtype = types_pb2.DT_STRING
        for size in shape:
            request.inputs[name].tensor_shape.dim.add(size=size)
        request.inputs[name].string_val.append(b"Mary went to the garden.")
    return request.SerializeToString()


def noise(draw: random.Random) -> bytes:
    return draw.randbytes(draw.choice([0, 1, 10, 1000]))


def strange_json(draw: random.Random) -> str:
    """JSON that is deep, long, or full of what is no number."""
    deep = draw.choice([10, 1000, 100_000])
    value = draw.choice(
        [
            lambda: "[" * deep + "]" * draw.choice([0, deep]),
            lambda: '{"a":' * deep + "1" + "}" * deep,
            lambda: "1" * draw.choice([400, 5000, 100_000]),
            lambda: "1e999",
            lambda: "NaN",
            lambda: json.dumps({"b64": base64.b64encode(b"x" * deep).decode()}),
            lambda: json.dumps(["x"] * deep),
            lambda: json.dumps([[] for _ in range(deep)]),
            lambda: json.dumps("\ud800\u0000" * (deep // 10)),
            lambda: "null",
        ]
    )()
    name, signature = draw.choice(NAMES), draw.choice(SIGNATURES)
    form = draw.choice(
        [
            f'{{"signature_name": "{signature}", "inputs": {{"{name}": {value}}}}}',
            f'{{"signature_name": "{signature}", "instances": [{{"{name}": {value}}}]}}',
            f'{{"inputs": {value}, "signature_name": "{signature}"}}',
            value,
        ]
    )
    return form


def strange_http(draw: random.Random) -> bytes:
    path = draw.choice(
        ["/", "/v1/models/small", "/v1/models/" + "x" * 9999, "/v1/models/%00/..%2f"]
    )
    lines = [
        f"{draw.choice(['GET', 'POST', 'PUT', 'TRACE', 'X'])} {path}:predict HTTP/1.1",
        "Host: x",
        draw.choice(["Content-Length: 5", "Content-Length: -1", "Content-Length: " + "9" * 99]),
        draw.choice(["Transfer-Encoding: chunked", "Expect: 100-continue", "X: " + "y" * 9999]),
    ]
    draw.shuffle(lines)
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + noise(draw)


def test_grpc(server, examples):
    draw = random.Random(1)
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        call = channel.unary_unary(METHOD)
        for _ in range(examples):
            body = draw.choice([lying_tensors, lying_tensors, streams, noise])(draw)
            found = call.future(body, timeout=LONGEST)
            assert found.code() in REFUSALS, (found.details(), body)


def test_rest(server, examples):
    draw, url = random.Random(2), f"{server.rest_url}/v1/models/small:predict"
    with requests.Session() as session:
        for _ in range(examples):
            body = strange_json(draw)
            answer = session.post(url, data=body.encode("utf-8", "replace"), timeout=LONGEST)
            assert answer.status_code in (200, 400, 429, 504), (answer.text, body[:200])
            assert answer.status_code == 200 or answer.json()["error"]


def test_http(server, examples):
    draw = random.Random(3)
    for _ in range(examples):
        with socket.create_connection(("127.0.0.1", int(server.rest_url.rsplit(":")[-1]))) as wire:
            wire.settimeout(LONGEST)
            wire.sendall(strange_http(draw))
            wire.shutdown(socket.SHUT_WR)
            with_answer = wire.makefile("rb").read()
            assert b" 500 " not in with_answer.split(b"\r\n")[0]
    assert requests.get(f"{server.rest_url}/v1/models/small").status_code == 200


def test_saved_memories(server, examples, tmp_path):
    """A damaged file is refused, or holds a memory that the server checks like any other."""
    draw, file = random.Random(4), tmp_path / "memory"
    with MemoryClient(server.rest_url) as client:
        client.observe_many(["Mary took the milk.", "Mary went to the garden."])
        client.save(file)
        right = file.read_bytes()
        for _ in range(examples):
            damaged = bytearray(right)
            for _ in range(draw.randrange(1, 4)):
                damaged[draw.randrange(len(damaged))] = draw.randrange(256)
            file.write_bytes(damaged[: draw.choice([None, draw.randrange(len(damaged))])])
            with contextlib.suppress(ValueError):
                client.load(file)
        file.write_bytes(right)
        client.load(file)
        assert client.ask("Where is the milk?").text


@pytest.mark.parametrize("pieces", [3, pytest.param(30, marks=pytest.mark.slow)])
def test_versions_that_are_not_whole(server, exported, tmp_path, pieces):
    """Folders that were cut off while they were copied: none loads, and none does harm."""
    draw = random.Random(5)
    url = f"{server.rest_url}/v1/models/small"
    for number in range(100, 100 + pieces):
        folder = shutil.copytree(exported, tmp_path / str(number))
        file = draw.choice([f for f in folder.rglob("*") if f.is_file() and f.stat().st_size > 100])
        file.write_bytes(file.read_bytes()[: draw.randrange(file.stat().st_size // 2)])
        (folder / "saved_model.pb").write_bytes((folder / "saved_model.pb").read_bytes()[:-50])
        folder.rename(exported.parent / str(number))
    limit = time.monotonic() + 60 * pieces
    states: dict[int, str] = {}
    while len(states) <= pieces and time.monotonic() < limit:
        time.sleep(0.2)
        found = requests.get(url).json()["model_version_status"]
        states = {int(one["version"]): one["state"] for one in found if one["state"] != "LOADING"}
    try:
        assert [states[number] for number in range(100, 100 + pieces)] == ["END"] * pieces
        assert states[1] == "AVAILABLE"
        assert requests.get(f"{url}/metadata").json()["model_spec"]["version"] == "1"
    finally:
        for number in range(100, 100 + pieces):
            shutil.rmtree(exported.parent / str(number))
