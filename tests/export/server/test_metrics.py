"""The metrics of a server: what Prometheus reads after some requests."""

import re

import grpc
import numpy as np
import pytest
import requests
from tensorflow_serving.apis import prediction_service_pb2_grpc

from lemn_tf.export.server import Server
from lemn_tf.export.server.metrics import Histogram

LINE = re.compile(r'(:?[a-zA-Z_:][\w:]*)\{((?:\w+="(?:[^"\\]|\\.)*",?)*)\} (\S+)')


def scraped(server) -> dict[str, float]:
    answer = requests.get(f"{server.rest_url}/monitoring/prometheus/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = [line for line in answer.text.splitlines() if not line.startswith("# TYPE ")]
    matches = [LINE.fullmatch(line) for line in lines]
    assert all(matches)
    return {f"{m[1].split(':')[-1]}{{{m[2]}}}": float(m[3]) for m in matches}


@pytest.fixture
def fresh(toy):
    with Server(toy, port=0, rest_port=0) as server:
        yield server


def test_requests_errors_times_and_batches(fresh, tools):
    url = f"{fresh.rest_url}/v1/models"
    for _ in range(3):
        assert requests.post(f"{url}/toy:predict", json={"inputs": tools.good}).ok
    requests.post(f"{url}/toy:predict", data="{")
    requests.post(f"{url}/other:predict", json={"inputs": tools.good})
    requests.get(f"{url}/toy")  # not counted: not a prediction
    with grpc.insecure_channel(f"127.0.0.1:{fresh.port}") as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        stub.Predict(tools.request(x=tools.x, text=tools.text))  # two rows
        stub.Predict(tools.request("double", x=np.ones([5, 2])))
        tools.refused(stub.Predict, tools.request(x=tools.x))
    found = scraped(fresh)
    assert found['request_count{model_name="toy",status="OK"}'] == 5
    assert found['request_count{model_name="toy",status="INVALID_ARGUMENT"}'] == 2
    assert found['request_count{model_name="",status="NOT_FOUND"}'] == 1
    rest = 'model_name="toy",API="predict",entrypoint="REST"'
    assert found[f"request_latency_count{{{rest}}}"] == 3
    assert found[f'request_latency_bucket{{{rest},le="+Inf"}}'] == 3
    whole = found[f"request_latency_sum{{{rest}}}"]
    grpc_sum = found['request_latency_sum{model_name="toy",API="predict",entrypoint="GRPC"}']
    inside = found['runtime_latency_sum{model_name="toy",API="Predict",runtime="TF1"}']
    assert 0 < inside < whole + grpc_sum
    sizes = 'model_name="toy",op_name="serving_default"'
    assert found[f"batch_size_count{{{sizes}}}"] == 4
    assert found[f"batch_size_sum{{{sizes}}}"] == 3 + 2
    assert found['batch_size_sum{model_name="toy",op_name="double"}'] == 5
    assert found["wrapped_run_count{}"] == 5


def test_a_bucket_holds_all_that_is_not_above_its_bound():
    histogram = Histogram("x", ("a",), [1.0, 2.0])
    for quantity in (0.5, 1.0, 1.5, 7.0):
        histogram.add(quantity, 'quo"ted')
    assert histogram.lines() == [
        ':tensorflow:serving:x_bucket{a="quo\\"ted",le="1"} 2',
        ':tensorflow:serving:x_bucket{a="quo\\"ted",le="2"} 3',
        ':tensorflow:serving:x_bucket{a="quo\\"ted",le="+Inf"} 4',
        ':tensorflow:serving:x_sum{a="quo\\"ted"} 10.000000',
        ':tensorflow:serving:x_count{a="quo\\"ted"} 4',
    ]
