"""What any server of an exported text memory must do on the wire, TF Serving or ours.

Only what both promise is asked for: shapes of the JSON, status codes, and that the memory travels.
"""

import grpc
import numpy as np
import pytest
import requests
import tensorflow as tf
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from lemn_tf.export.client import MemoryClient

LINES = [f"Mary went to the {place}." for place in ("kitchen", "garden", "hallway", "office")] * 3
QUESTION = "Where is Mary?"


def post(place, signature, **content):
    return requests.post(
        f"{place.url}:predict", json={"signature_name": signature, **content}, timeout=60
    )


def predictions(answer):
    assert answer.status_code == 200, answer.text
    return answer.json()["predictions"]


@pytest.fixture(scope="module")
def stub(place):
    if place.grpc is None:
        pytest.skip("no gRPC address was given")
    with grpc.insecure_channel(place.grpc) as channel:
        yield prediction_service_pb2_grpc.PredictionServiceStub(channel)


@pytest.fixture(scope="module")
def state(place):
    """The names of the state, and a fresh one as a row of JSON."""
    (row,) = predictions(post(place, "initial_state", instances=[{"batch": 0}]))
    return row


def test_status(place):
    answer = requests.get(place.url, timeout=60)
    assert answer.status_code == 200
    states = answer.json()["model_version_status"]
    assert "AVAILABLE" in [status["state"] for status in states]
    assert set(states[0]) == {"version", "state", "status"}
    assert set(states[0]["status"]) == {"error_code", "error_message"}


def test_metadata(place):
    answer = requests.get(f"{place.url}/metadata", timeout=60).json()
    assert answer["model_spec"]["name"] == place.name
    signatures = answer["metadata"]["signature_def"]["signature_def"]
    assert {"serving_default", "initial_state", "observe", "answer"} <= set(signatures)
    observe = signatures["observe"]
    assert observe["inputs"]["item"]["dtype"] == "DT_STRING"
    assert [dim["size"] for dim in observe["inputs"]["item"]["tensor_shape"]["dim"]] == ["-1"]
    assert {"evicted", "slot", "keep"} <= set(observe["outputs"])


def test_the_memory_travels_in_rows(place, state):
    row = state
    for number, line in enumerate(LINES):
        (outputs,) = predictions(post(place, "observe", instances=[row | {"item": line}]))
        row = {name: outputs[name] for name in state}
        assert row["clock"] == number + 1
    (answer,) = predictions(post(place, "answer", instances=[row | {"question": QUESTION}]))
    assert isinstance(answer["answer"], str)
    assert 0 < answer["probability"] <= 1
    assert answer["ids"] == row["ids"]
    assert set(answer["texts"]) <= {*LINES, ""}


def test_columns_are_rows_turned_round(place, state):
    rows = [state | {"item": line} for line in LINES[:3]]
    by_rows = predictions(post(place, "observe", instances=rows))
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    outputs = post(place, "observe", inputs=columns).json()["outputs"]
    for name, column in outputs.items():
        assert column == [row[name] for row in by_rows]


def test_bytes_as_base64(place, state):
    row = state | {"item": {"b64": "TWFyeSB3ZW50IHRvIHRoZSBnYXJkZW4u"}}
    same = state | {"item": "Mary went to the garden."}
    first, second = predictions(post(place, "observe", instances=[row, same]))
    assert first["entries__text"] == second["entries__text"]
    assert first["entries__tokens"] == second["entries__tokens"]


def test_one_shot(place):
    row = {"sentences": LINES, "question": QUESTION}
    padded = {"sentences": [*LINES[:1], *[""] * (len(LINES) - 1)], "question": QUESTION}
    first, second = predictions(post(place, "", instances=[row, padded]))
    assert isinstance(first["answer"], str)
    assert max(second["ids"]) == 0


def test_packed(place):
    (packed,) = predictions(post(place, "initial_state_packed", instances=[{"batch": 0}]))
    packed = packed["state"] if isinstance(packed, dict) else packed  # one output needs no name
    for line in LINES:
        row = {"state": packed, "item": line}
        (outputs,) = predictions(post(place, "observe_packed", instances=[row]))
        packed = outputs["state"]
    row = {"state": packed, "question": QUESTION}
    (answer,) = predictions(post(place, "answer_packed", instances=[row]))
    assert isinstance(answer["answer"], str)
    bad = post(place, "answer_packed", instances=[row | {"state": packed[:-9]}])
    assert bad.status_code == 400
    assert "state" in bad.json()["error"]


@pytest.mark.parametrize(
    "content",
    [
        {"instances": []},
        {"instances": [{"item": "no state"}]},
        {"instances": [{"nonsense": 1}]},
        {"inputs": {"item": ["no state"]}},
        {"instances": [{"item": "a"}], "inputs": {"item": ["a"]}},
        {},
    ],
)
def test_malformed_requests(place, content):
    answer = post(place, "observe", **content)
    assert answer.status_code == 400
    assert "error" in answer.json()


def test_malformed_tensors(place, state):
    for name, value in [("item", 3), ("item", [["a"]]), ("ids", "a"), ("clock", [[1]])]:
        answer = post(place, "observe", instances=[state | {"item": "a"} | {name: value}])
        assert answer.status_code == 400, (name, value)


def test_other_refusals(place):
    assert requests.post(f"{place.url}:predict", data="{", timeout=60).status_code == 400
    assert post(place, "nonsense", instances=[1]).status_code == 400
    nobody = f"{place.base}/v1/models/no_such_model"
    assert requests.get(nobody, timeout=60).status_code == 404
    body = {"instances": [{"batch": 0}]}
    assert requests.post(f"{nobody}:predict", json=body, timeout=60).status_code == 404
    version = f"{place.url}/versions/987654321:predict"
    assert requests.post(version, json=body, timeout=60).status_code == 404


def test_grpc_predict(place, stub):
    def call(signature, **inputs):
        request = predict_pb2.PredictRequest()
        request.model_spec.name, request.model_spec.signature_name = place.name, signature
        for name, value in inputs.items():
            request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
        outputs = stub.Predict(request, timeout=60).outputs
        return {name: tf.make_ndarray(proto) for name, proto in outputs.items()}

    state = call("initial_state", batch=np.zeros([2], np.int32))
    names = list(state)
    for line in LINES:
        outputs = call("observe", **state, item=[line, "John went to the garden."])
        state = {name: outputs[name] for name in names}
    assert state["clock"].tolist() == [len(LINES)] * 2
    assert call("answer", **state, question=[QUESTION] * 2)["answer"].shape == (2,)
    with pytest.raises(grpc.RpcError) as caught:
        call("observe", item=["no state"])
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_grpc_metadata_and_status(place, stub):
    request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    request.model_spec.name = place.name
    response = stub.GetModelMetadata(request, timeout=60)
    signatures = get_model_metadata_pb2.SignatureDefMap()
    assert response.metadata["signature_def"].Unpack(signatures)
    assert "observe" in signatures.signature_def
    with grpc.insecure_channel(place.grpc) as channel:
        status = get_model_status_pb2.GetModelStatusRequest()
        status.model_spec.name = place.name
        models = model_service_pb2_grpc.ModelServiceStub(channel)
        found = models.GetModelStatus(status, timeout=60).model_version_status
        assert any(version.state == version.AVAILABLE for version in found)


def test_the_client(place):
    targets = [place.url] + ([f"grpc://{place.grpc}/{place.name}"] if place.grpc else [])
    seen = []
    for target in targets:
        with MemoryClient(target) as client:
            for line in LINES:
                client.observe(line)
            answer = client.ask(QUESTION)
            seen.append((answer.text, [entry.id for entry in client.memory()]))
    assert len({str(one) for one in seen}) == 1
