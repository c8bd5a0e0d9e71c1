"""The REST front door, by plain HTTP clients."""

import json

import httpx
import pytest
import requests


def test_rows(url):
    rows = [{"x": [1, 2, 3, 4.5], "text": "hé"}, {"x": [0, 0, 0, 0], "text": {"b64": "/w=="}}]
    answer = requests.post(f"{url}:predict", json={"instances": rows})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    first, second = answer.json()["predictions"]
    assert first["sum"] == 10.5
    assert first["positive"] == [True] * 4
    assert (first["echo"], first["length"]) == ("hé", 3)
    assert first["echo_bytes"] == {"b64": "aMOp"}  # by its name
    assert second["echo"] == {"b64": "/w=="}  # because it is not UTF-8


def test_columns(url):
    inputs = {"x": [[1, 2, 3, 4]], "text": ["a"]}
    answer = httpx.post(f"{url}/versions/1:predict", json={"inputs": inputs})
    assert answer.json()["outputs"]["sum"] == [10.0]
    answer = httpx.post(f"{url}/labels/stable:predict", json={"inputs": inputs})
    assert answer.json()["outputs"]["version"] == [1]


def test_a_single_input_and_output_need_no_name(url):
    body = {"signature_name": "double", "instances": [[1, 2], [3, 4]]}
    assert requests.post(f"{url}:predict", json=body).json() == {"predictions": [[2, 4], [6, 8]]}
    body = {"signature_name": "double", "inputs": [[1, 2]]}
    assert requests.post(f"{url}:predict", json=body).json() == {"outputs": [[2, 4]]}
    body = {"signature_name": "scalar", "inputs": 41}
    assert requests.post(f"{url}:predict", json=body).json() == {"outputs": 42}


def test_numbers_that_json_does_not_have(url):
    body = b'{"signature_name": "double", "instances": [[NaN, -Infinity]]}'
    assert requests.post(f"{url}:predict", data=body).content == (
        b'{"predictions":[[NaN,-Infinity]]}'
    )


def test_rest_status_and_metadata(url):
    answer = requests.get(url).json()
    good = {"error_code": "OK", "error_message": ""}
    assert answer == {
        "model_version_status": [{"version": "1", "state": "AVAILABLE", "status": good}]
    }
    answer = requests.get(f"{url}/versions/1/metadata").json()
    assert answer["model_spec"] == {"name": "toy", "version": "1", "signature_name": ""}
    inputs = answer["metadata"]["signature_def"]["signature_def"]["double"]["inputs"]
    assert inputs["x"]["dtype"] == "DT_DOUBLE"
    assert [dim["size"] for dim in inputs["x"]["tensor_shape"]["dim"]] == ["-1", "2"]


GOOD = {"x": [[1, 2, 3, 4]], "text": ["a"]}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "empty"),
        (b"{", "JSON"),
        (b'{"inputs": "\xff"}', "UTF-8"),
        (b"[" * 100_000, "JSON"),
        (b"[1]", "object"),
        (b"{}", "instances"),
        ({"inputs": GOOD, "instances": []}, "instances"),
        ({"instances": []}, "instances"),
        ({"instances": [1]}, "'text'"),
        ({"instances": [{"x": [1, 2, 3, 4]}]}, "'text'"),
        ({"instances": [{"x": [1, 2, 3, 4], "text": "a"}, 3]}, "row 1"),
        ({"inputs": GOOD, "signature_name": 3}, "signature_name"),
        ({"inputs": GOOD, "signature_name": "other"}, "'other'"),
        ({"inputs": GOOD | {"more": [1]}}, "'more'"),
        ({"inputs": GOOD | {"x": [[1, 2, 3]]}}, "'x'"),
        ({"inputs": GOOD | {"x": [[1, 2, 3, 4], [1]]}}, "'x'"),
        ({"inputs": GOOD | {"x": [[1, 2, 3, "4"]]}}, "'x'"),
        ({"inputs": GOOD | {"x": [[1, 2, 3, True]]}}, "'x'"),
        ({"inputs": GOOD | {"x": [[1, 2, 3, 1e39]]}}, "'x'"),
        ({"inputs": GOOD | {"x": None}}, "'x'"),
        ({"inputs": GOOD | {"text": ["a", "b"]}}, "'text'"),
        ({"inputs": GOOD | {"text": [3]}}, "'text'"),
        ({"inputs": GOOD | {"text": [{"b64": "*"}]}}, "'text'"),
        ({"inputs": GOOD | {"text": ["\ud800"]}}, "'text'"),
        ({"inputs": [[2**70]], "signature_name": "slow"}, "'steps'"),
        ({"inputs": [2**40], "signature_name": "slow"}, "'steps'"),
        ({"inputs": [1.5], "signature_name": "slow"}, "'steps'"),
        ({"inputs": GOOD | {"x": [[1, 2, 3, 1e9]]}}, "x: too large"),
    ],
)
def test_rest_refusals(url, body, says):
    data = body if isinstance(body, bytes) else json.dumps(body)
    answer = requests.post(f"{url}:predict", data=data)
    assert answer.status_code == 400
    assert list(answer.json()) == ["error"]
    assert says in answer.json()["error"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/models/other", 404),
        ("GET", "/v1/models/toy/versions/9", 404),
        ("GET", "/v1/models/toy/labels/other/metadata", 404),
        ("POST", "/v1/models/other:predict", 404),
        ("POST", f"/v1/models/toy/versions/{2**70}:predict", 400),
        ("POST", f"/v1/models/toy/versions/{'1' * 4301}:predict", 400),
        ("GET", f"/v1/models/toy/versions/{'1' * 4301}", 400),
        ("POST", "/v1/models/toy:classify", 501),
        ("POST", "/v1/models/toy", 400),
        ("GET", "/v1/models/toy:predict", 400),
        ("PUT", "/v1/models/toy", 400),
        ("GET", "/favicon.ico", 400),
    ],
)
def test_paths(server, method, path, status):
    answer = requests.request(method, server.rest_url + path, data=json.dumps({"inputs": GOOD}))
    assert answer.status_code == status
    assert list(answer.json()) == ["error"]
