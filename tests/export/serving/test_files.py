"""The files for TF Serving: what can be read without it is read here."""

import json
import re
from pathlib import Path

import pytest
from google.protobuf import text_format
from tensorflow_serving.config import model_server_config_pb2

from lemn_tf.export.server.metrics import PATH, Metrics

FOLDER = Path(__file__).parents[3] / "export" / "serving"


def test_models_config():
    config = text_format.Parse(
        (FOLDER / "models.config").read_text(), model_server_config_pb2.ModelServerConfig()
    )
    (model,) = config.model_config_list.config
    assert list(model.model_version_policy.specific.versions) == [1, 2]
    assert dict(model.version_labels) == {"stable": 1, "canary": 2}
    assert model.base_path == f"/models/{model.name}"


@pytest.mark.parametrize("file", ["compose.yaml", "kubernetes/deployment.yaml"])
def test_both_deployments_say_the_same(file):
    text = (FOLDER / file).read_text()
    assert re.search(r"image: tensorflow/serving\b", text)
    flags = set(re.findall(r"- (--\w+=\S+)", text))
    other = (FOLDER / "compose.yaml").read_text()
    assert flags == set(re.findall(r"- (--\w+=\S+)", other))
    for name in re.findall(r"/config/([\w.]+)", text):
        assert (FOLDER / name).is_file()
    assert "/v1/models/babi/metadata" in text


def test_every_file_is_named():
    listed = (FOLDER / "kustomization.yaml").read_text()
    for path in FOLDER.rglob("*.yaml"):
        if path.parent.name == "kubernetes":
            assert str(path.relative_to(FOLDER)) in listed
    for path in FOLDER.glob("*.config"):
        assert path.name in listed


def test_yaml():
    yaml = pytest.importorskip("yaml")
    for path in [*FOLDER.rglob("*.yaml"), *FOLDER.rglob("*.yml")]:
        assert all(isinstance(part, dict) for part in yaml.safe_load_all(path.read_text()))


def test_the_dashboard_asks_for_metrics_that_there_are():
    metrics = Metrics()
    metrics.request("babi", "OK", "REST", 0.001)
    metrics.run("babi", "observe", 3, 0.001)
    given = set(re.findall(r"^([\w:]+)\{", metrics.text(), re.MULTILINE))
    board = json.loads((FOLDER / "grafana-dashboard.json").read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    names = {name for one in asked for name in re.findall(r":tensorflow:[\w:]+", one)}
    assert names
    assert names <= given
    assert f'path: "{PATH}"' in (FOLDER / "monitoring.config").read_text()
