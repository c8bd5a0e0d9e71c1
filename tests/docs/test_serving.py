"""docs/serving.md: its commands, its requests and its Python, against a server of a preset."""

import json
import re
import urllib.request
from pathlib import Path

import pytest

from lemn_tf import load
from lemn_tf.experiments.serving import agent_servable
from lemn_tf.export import Server, export

pytestmark = pytest.mark.xdist_group("serving page")  # what they share is set up once

PAGE = (Path(__file__).parents[2] / "docs" / "serving.md").read_text()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "babi" / "1"
    export(load("babi-noisy-st-lemn-5"), path)
    with Server(path.parent, port=0, rest_port=0) as server:
        yield server


@pytest.fixture(scope="module")
def walker(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "imaze" / "1"
    export(agent_servable(load("imaze-mqn-st-lemn-4")), path, warmup=False)
    with Server(path.parent, port=0, rest_port=0) as server:
        yield server


def post(server, body: str) -> dict:
    url = f"{server.rest_url}/v1/models/babi:predict"
    with urllib.request.urlopen(url, body.encode(), timeout=60) as answer:
        return json.load(answer)["predictions"][0]


def test_one_shot(server):
    (body,) = re.findall(r"babi:predict -d '(\{.*?\]\})'", PAGE, re.DOTALL)
    assert post(server, body)["answer"] == "garden"


def test_a_memory_over_many_requests(server):
    observe, answer = re.findall(r'"(\{\\"signature_name.*?\]\})"', PAGE, re.DOTALL)
    state = ""
    for line in re.findall(r'^\$ observe "(.*)"$', PAGE, re.MULTILINE):
        body = observe.replace("\\", "").replace("$STATE", state).replace("$1", line)
        state = post(server, body)["state"]
    found = post(server, answer.replace("\\", "").replace("$STATE", state))
    assert found["answer"] == "garden"
    assert found["texts"][-2:] == ["Mary took the milk.", "Mary went to the garden."]


def test_python(server, walker, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert blocks
    for block in blocks:
        url = (walker if "models/imaze" in block else server).rest_url
        exec(block.replace("http://127.0.0.1:8501", url), {})
    said = capsys.readouterr().out.splitlines()
    assert "garden" in said
    assert "True" in said  # the agent found the right goal
    assert (tmp_path / "mary.memory").is_file()
