"""The project's own files: versions agree, and the wheel holds every package."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import lemn_tf

ROOT = Path(__file__).parents[1]


def test_versions_agree():
    (version,) = re.findall(r'version="([^"]+)"', (ROOT / "setup.py").read_text())
    assert version == lemn_tf.__version__
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_lock_is_exact():
    """Every package has one version and the hashes of its files, which `make setup` compares."""
    lines = (ROOT / "requirements.lock").read_text().replace("\\\n", " ").splitlines()
    packages = [line.split() for line in lines if line and not line.startswith("#")]
    for package, *hashes in packages:
        assert re.fullmatch(r"[\w.-]+==[\w.+]+", package)
        assert hashes, package
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", one) for one in hashes)
    names = [package.lower() for package, *_ in packages]
    assert names == sorted(set(names))
    assert "--require-hashes -r requirements.lock" in (ROOT / "Makefile").read_text()


def test_mapped_folders_are_importable():
    import lemn_tf.export
    import lemn_tf.pipelines

    assert Path(lemn_tf.pipelines.__file__).parent == ROOT / "pipelines"
    assert Path(lemn_tf.export.__file__).parent == ROOT / "export"


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs the sources as git knows them")
def test_a_missing_python_is_explained(tmp_path):
    """`make` on a copy without an environment, with a Python that is not there."""
    for name in ("Makefile", "requirements.lock", "setup.py", "pyproject.toml"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    command = ["make", "-C", str(tmp_path), "test", "PYTHON=python3.11-is-missing"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "python3.11-is-missing not found" in done.stderr
    assert "make test PYTHON=/path/to/python3.11" in done.stderr
    assert not (tmp_path / ".venv").exists()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from the sources as git knows them."""
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "source"
    files = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split("\n")  # fmt: skip
    for name in filter(None, files):
        if (ROOT / name).exists():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", str(folder)]
    subprocess.run([*build, str(copy)], check=True, capture_output=True)
    return next(folder.glob("*.whl"))


@pytest.mark.slow
def test_the_wheel_holds_every_package(wheel):
    inside = set(zipfile.ZipFile(wheel).namelist())
    for folder in ("lemn_tf", "pipelines", "export"):
        package = folder if folder == "lemn_tf" else f"lemn_tf/{folder}"
        for path in (ROOT / folder).rglob("*.py"):
            assert f"{package}/{path.relative_to(ROOT / folder).as_posix()}" in inside
    assert not [name for name in inside if name.startswith(("pipelines/", "export/", "tests/"))]
    assert {"lemn_tf/py.typed", "lemn_tf/presets/presets.json"} <= inside


def clean():
    """The environment without the Makefile's variables."""
    ours = ("TF_", "PYTHON", "VIRTUAL")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def run(command, folder, code=0, **options):
    """Runs a command far from the sources."""
    options = {"cwd": folder, "env": clean(), "capture_output": True, "text": True, **options}
    done = subprocess.run(list(map(str, command)), check=False, **options)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def talk_to_server(serve, lemn, folder):
    """Starts a server, tells it a sentence by `lemn chat`, and stops it; what chat printed."""
    options = {"cwd": folder, "env": clean(), "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(list(map(str, serve)), **options) as process:
        try:
            url = process.stdout.readline().split()[3]
            told = run([lemn, "chat", url], folder, input="Mary went to the garden.\nquit\n").stdout
        finally:
            process.terminate()
        assert process.wait(180) == 0
    return told


BASE = """
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"gymnasium", "gym", "numba", "uvicorn", "httptools",
                                  "tensorflow_serving", "tensorflow_text", "ray", "tf_agents",
                                  "tf_keras"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Block())
from lemn_tf.cli import main

sys.exit(max([main(command.split()) for command in sys.argv[1:]]))
"""
"""Runs commands in a process without any extra; its exit code is the highest of theirs."""


@pytest.mark.slow
def test_text_needs_no_extra(tmp_path):
    """Evaluating, comparing, tracing and reporting work in the base install."""
    asked = "babi-noisy-st-lemn-5 --data data/noisy_test.txt"
    commands = [
        "data babi --variant noisy --episodes 20 --out data",
        f"evaluate {asked}",
        f"compare {asked} --policies fifo",
        f"trace {asked} --out trace.jsonl",
        f"report {asked} --out report.html",
    ]
    run(
        [sys.executable, "-c", BASE, *commands],
        tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


NEEDS = {
    "evaluate imaze-mqn-st-lemn-4 --lengths 4": "mazes",
    "play single-indicator-frmqn-st-lemn-5 --out maze.gif": "mazes",
    "train maze --out run": "mazes",
    "evaluate documents-lite-st-lemn-10 --qa qa.json --evidence .": "documents",
}
"""Commands, and the extra that each one needs."""


def test_a_missing_extra_is_one_line(tmp_path):
    (tmp_path / "qa.json").write_text("{}")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    told = run([sys.executable, "-c", BASE, *NEEDS], tmp_path, code=2, env=environment).stderr
    for line, extra in zip(told.splitlines(), NEEDS.values(), strict=True):
        assert line.startswith("lemn: error: this needs the package")
        assert f"pip install 'lemn_tf[{extra}]'" in line


@pytest.mark.slow
def test_the_wheel_works_without_the_lock(wheel, tmp_path):
    """Plain pip brings all that training, evaluating and exporting need; an extra the rest."""
    run([sys.executable, "-m", "venv", tmp_path / "env"], tmp_path)
    pip = [tmp_path / "env/bin/python", "-m", "pip", "install", "--quiet"]
    lemn = tmp_path / "env/bin/lemn"
    run([*pip, wheel], tmp_path)
    run([lemn, "data", "babi", "--variant", "noisy", "--episodes", 40, "--out", "data"], tmp_path)
    files = ["--train", "data/noisy_train.txt", "--valid", "data/noisy_valid.txt"]
    short = ["--phases", "linear start=64,reader=64", "--episodes", 128, "--shards", 1]
    run([lemn, "train", "babi", *files, *short, "--out", "run"], tmp_path)
    run([lemn, "evaluate", "run", "--data", "data/noisy_test.txt", "--json"], tmp_path)
    run([lemn, "export", "run", "--out", "models/babi/1"], tmp_path)
    for command, extra in (
        (["serve", "models/babi"], "serving"),
        (["evaluate", "imaze-mqn-st-lemn-4", "--lengths", 4], "mazes"),
    ):
        told = run([lemn, *command], tmp_path, code=2).stderr
        assert told.startswith("lemn: error: this needs the package")
        assert f"pip install 'lemn_tf[{extra}]'" in told
        assert told.count("\n") == 1
    run([*pip, f"{wheel}[serving,mazes]"], tmp_path)
    run([lemn, "evaluate", "imaze-mqn-st-lemn-4", "--lengths", 4], tmp_path)
    told = talk_to_server(
        [lemn, "serve", "models/babi", "--port=0", "--rest-port=0"], lemn, tmp_path
    )
    assert "memory: 1 of 5 slots" in told
