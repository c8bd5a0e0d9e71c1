"""Version folders come and go."""

import shutil
import threading
import time

import grpc
import numpy as np
import pytest
import requests
from tensorflow_serving.apis import (
    prediction_service_pb2_grpc,
)

from lemn_tf.export.errors import ServingError
from lemn_tf.export.server import Catalog, Server


def wait_for(condition, seconds=20):
    limit = time.monotonic() + seconds
    while not condition() and time.monotonic() < limit:
        time.sleep(0.02)
    assert condition()


def test_a_new_version_takes_over_without_a_dropped_request(tools, toy, tmp_path):
    base = shutil.copytree(toy, tmp_path / "toy")
    tools.write(tmp_path / "two", 2)
    with Server(base, port=0, rest_port=0, poll=0.1, keep=1) as server:
        url = f"{server.rest_url}/v1/models/toy"
        stop, seen, failures = threading.Event(), [], []

        def hammer():
            with (
                grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel,
                requests.Session() as session,
            ):
                stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
                while not stop.is_set():
                    try:
                        response = stub.Predict(tools.request(x=tools.x, text=tools.text))
                        seen.append(response.outputs["version"].int_val[0])
                        answer = session.post(f"{url}:predict", json={"inputs": tools.good}).json()
                        seen.append(answer["outputs"]["version"][0])
                    except Exception as error:
                        failures.append(error)
                    time.sleep(0.002)

        threads = [threading.Thread(target=hammer) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            wait_for(lambda: len(seen) > 20)
            (tmp_path / "two").rename(base / "2")
            wait_for(lambda: seen[-1] == 2)
            count = len(seen)
            wait_for(lambda: len(seen) > count + 20)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert not failures
        assert set(seen) == {1, 2}
        wait_for(lambda: requests.get(f"{url}/versions/1").json()["model_version_status"])
        states = requests.get(url).json()["model_version_status"]
        assert [(s["version"], s["state"]) for s in states] == [("2", "AVAILABLE"), ("1", "END")]
        assert requests.get(f"{url}/versions/1/metadata").status_code == 404

        # A version that does not load changes nothing, and its status says why.
        (base / "3").mkdir()
        (base / "3" / "saved_model.pb").write_bytes(b"not a model")
        wait_for(lambda: len(requests.get(url).json()["model_version_status"]) == 3)
        wait_for(
            lambda: requests.get(url).json()["model_version_status"][0]["state"] == "END",
        )
        newest = requests.get(url).json()["model_version_status"][0]
        assert newest["status"]["error_code"] == "UNKNOWN"
        assert newest["status"]["error_message"]
        assert str(tmp_path) not in newest["status"]["error_message"]
        answer = requests.post(f"{url}:predict", json={"inputs": tools.good}).json()
        assert answer["outputs"]["version"] == [2]

        # Nor does a folder that disappears, while it is the only one.
        shutil.rmtree(base / "3")
        shutil.rmtree(base / "2")
        time.sleep(0.5)
        assert requests.post(f"{url}:predict", json={"inputs": tools.good}).status_code == 200


def test_a_retired_version_is_freed_by_its_last_user(toy, tmp_path):
    base = shutil.copytree(toy, tmp_path / "toy")
    catalog = Catalog(base, poll=0, keep=1)
    with catalog.lease("toy") as old:
        shutil.copytree(base / "1", base / "2")
        catalog._refresh(catalog.models["toy"], wait_until_stable=False)
        assert list(catalog.models["toy"].loaded) == [2]
        assert old.model.run("scalar", {"n": np.int64(1)})["n"] == 2
    with pytest.raises(ServingError, match="closed"):
        old.model.run("scalar", {"n": np.int64(1)})
    catalog.close()


def test_labels_keep_old_versions(toy, tmp_path):
    base = shutil.copytree(toy, tmp_path / "toy")
    for number in (2, 3):
        shutil.copytree(base / "1", base / str(number))
    catalog = Catalog(base, poll=0, keep=1, labels={"stable": 1})
    assert sorted(catalog.models["toy"].loaded) == [1, 3]
    catalog.close()


def test_what_a_folder_may_be(toy, tmp_path):
    several = tmp_path / "several"
    for name in ("one", "two"):
        shutil.copytree(toy, several / name)
    (several / "notes").mkdir()
    for path, name, expected in [
        (toy, None, ["toy"]),
        (toy / "1", None, ["toy"]),
        (toy, "other", ["other"]),
        (toy.parent, None, ["toy"]),
        (several, None, ["one", "two"]),
    ]:
        catalog = Catalog(path, name, poll=0)
        assert sorted(catalog.models) == expected
        catalog.close()
    with pytest.raises(FileNotFoundError, match="expected a SavedModel"):
        Catalog(tmp_path / "several" / "notes")
    with pytest.raises(ValueError, match="one model"):
        Catalog(several, "name")
    (tmp_path / "bad" / "1").mkdir(parents=True)
    (tmp_path / "bad" / "1" / "saved_model.pb").write_bytes(b"not a model")
    with pytest.raises(ValueError, match="no version of 'bad' loads"):
        Catalog(tmp_path / "bad")


def test_a_restart_serves_the_newest_version_that_loads(toy, tmp_path):
    base = shutil.copytree(toy, tmp_path / "toy")
    shutil.copytree(base / "1", base / "2")
    for number in (3, 4, 5):
        (base / str(number)).mkdir()
        (base / str(number) / "saved_model.pb").write_bytes(b"not a model")
    catalog = Catalog(base, poll=0, keep=1)
    assert list(catalog.models["toy"].loaded) == [2]
    states = {number: status.state for number, status in catalog.statuses("toy").items()}
    assert states == {5: "END", 4: "END", 3: "END", 2: "AVAILABLE"}
    catalog.close()


def test_a_label_of_a_version_that_is_not_there(toy):
    with pytest.raises(ValueError, match=r"label stable=7: .*there are \[1\]"):
        Catalog(toy, poll=0, labels={"stable": 7})
