"""Somebody else's loader: Node, with the bindings of TensorFlow.js, replays README's story.

`npm install --ignore-scripts` fetches the JavaScript; the addon is compiled here, against the
headers and libraries inside the tensorflow wheel.
"""

import importlib.util
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lemn_tf import load
from lemn_tf.export import export

pytestmark = pytest.mark.slow
PACKAGE = "@tensorflow/tfjs-node@4.22.0"
HERE = Path(__file__).parent
README = (HERE.parents[2] / "README.md").read_text()


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A folder with the script and its packages."""
    missing = [tool for tool in ("node", "npm", "g++") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"needs node, npm and g++: {', '.join(missing)} not found")
    node = Path(run(["node", "-p", "fs.realpathSync(process.execPath)"]).stdout.strip())
    headers = node.parents[1] / "include" / "node"
    if not (headers / "node_api.h").is_file():
        pytest.skip(f"needs Node's headers: no node_api.h in {headers}")
    folder = tmp_path_factory.mktemp("node")
    (folder / "package.json").write_text("{}")
    shutil.copy(HERE / "replay.js", folder)
    quiet = ["--ignore-scripts", "--no-audit", "--no-fund"]
    fetched = run(["npm", "install", *quiet, PACKAGE], cwd=folder, timeout=300)
    if fetched.returncode:
        pytest.skip(f"npm could not fetch {PACKAGE}: {fetched.stderr.strip()[-300:]}")
    compile_addon(folder / "node_modules" / "@tensorflow" / "tfjs-node", headers)
    return folder


def compile_addon(package: Path, headers: Path) -> None:
    tensorflow = Path(importlib.util.find_spec("tensorflow").origin).parent
    addon = package / "lib" / "napi-v8" / "tfjs_binding.node"
    addon.parent.mkdir(parents=True)
    sources = [str(package / "binding" / f"tfjs_{name}.cc") for name in ("backend", "binding")]
    includes = [f"-I{folder}" for folder in (headers, tensorflow / "include", package.parent)]
    libraries = [
        str(next(tensorflow.glob(f"lib{n}.*"))) for n in ("tensorflow_cc", "tensorflow_framework")
    ]
    options = [
        "-std=c++17",
        "-O1",
        "-shared",
        "-fPIC",
        "-DNAPI_VERSION=8",
        f"-Wl,-rpath,{tensorflow}",
    ]
    done = run(["g++", *options, *includes, *sources, "-o", str(addon), *libraries])
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_story_of_the_readme(workplace, tmp_path):
    story = re.search(r"for sentence in \((.*?)\):", README, re.DOTALL)[1]
    question, answer = re.search(r"reader\.ask\(\"(.*?)\"\).* # (\w+)", README).groups()
    lines = [*re.findall(r'"(.*?)"', story), question]
    model = export(load("babi-noisy-st-lemn-5"), tmp_path / "babi" / "1")
    done = run(["node", "replay.js", str(model)], cwd=workplace, input="\n".join(lines))
    said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(said) == len(lines), done.stderr[-2000:]
    assert [one["evicted"] for one in said[:-1] if one["evicted"] >= 0] == [5, 3]
    assert said[-1]["answer"] == answer == "garden"
