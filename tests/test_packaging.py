"""The project's own files: versions agree, and the wheel holds every package."""

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
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    packages = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.+]+", line) for line in packages)


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


@pytest.mark.slow
def test_the_wheel_holds_every_package(tmp_path):
    copy = tmp_path / "source"
    files = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split("\n")  # fmt: skip
    for name in filter(None, files):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes((ROOT / name).read_bytes())
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", str(tmp_path)]
    subprocess.run([*build, str(copy)], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())
    for folder in ("lemn_tf", "pipelines", "export"):
        package = folder if folder == "lemn_tf" else f"lemn_tf/{folder}"
        for path in (ROOT / folder).rglob("*.py"):
            assert f"{package}/{path.relative_to(ROOT / folder).as_posix()}" in inside
    assert not [name for name in inside if name.startswith(("pipelines/", "export/", "tests/"))]
