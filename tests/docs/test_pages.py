"""README and docs: every block of Python runs, and every command they show exists."""

import re
import shlex
from pathlib import Path

import keras
import numpy as np
import pytest

from lemn_tf import cli

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "BUILD.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")]
PAGES += [ROOT / "examples" / "README.md"]
SHORTER = {"9600": "160", "epochs=3": "epochs=1"}
"""What a test changes in README's example: as it stands it trains for a minute."""
APART = {
    "documents.md": "tests/docs/test_documents.py",
    "extending.md": "tests/docs/test_extending.py",
    "serving.md": "tests/docs/test_serving.py",
}
"""Pages whose code is run elsewhere, with more to say about it."""


def name(page: Path) -> str:
    return page.name if page.parent == ROOT else f"{page.parent.name}/{page.name}"


def blocks(page: Path) -> list[str]:
    """The blocks of Python of a page."""
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


def commands(page: Path) -> list[str]:
    """The commands of ours that a page shows in blocks, and whole ones within its sentences."""
    text = page.read_text()
    shown = re.findall(r"^(?:    )?(?:\$ )?(lemn .*)$", text.replace("\\\n", " "), re.MULTILINE)
    shown += re.findall(r"`(lemn [a-z]+ [^`]*)`", text.replace("\n", " "))
    return [re.sub(r"\s+#.*$", "", one) for one in shown]


def complete(command: str) -> bool:
    """Whether it stands for itself: `lemn train ... --driver` says that something is left out."""
    left_out = any(sign in command for sign in ("...", "[", "|", "$("))
    return not left_out and command.split()[-1] not in ("T", "--help")


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p) and p.name not in APART], ids=name)
def test_every_block_of_python_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    keras.utils.set_random_seed(0)
    names: dict = {}
    for block in blocks(page):
        for long, short in SHORTER.items():
            block = block.replace(long, short)
        exec(compile(block, page.name, "exec"), names)
        if 'model.save("model.keras")' in block:
            check_saved(names["model"], tmp_path / "model.keras")


def check_saved(model: keras.Model, path: Path):
    """README's example trains the policy, and what it saves is what it trained."""
    assert {"hindsight", "val_accuracy"} <= set(model.history.history)
    stream = np.random.default_rng(1).normal(size=[4, 30, 9]).astype(np.float32)
    loaded = keras.models.load_model(path)
    np.testing.assert_allclose(
        loaded.predict(stream, verbose=0), model.predict(stream, verbose=0), atol=1e-6
    )


@pytest.mark.slow
def test_the_example_of_the_readme_learns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = [block for block in blocks(ROOT / "README.md") if "MemoryModel(" in block]
    names: dict = {}
    exec(compile(code, "README.md", "exec"), names)
    assert names["model"].history.history["val_accuracy"][-1] > 0.95


@pytest.mark.parametrize(("page", "where"), APART.items())
def test_pages_tested_apart_are(page: str, where: str):
    assert page in (ROOT / where).read_text()


@pytest.mark.parametrize("page", [p for p in PAGES if commands(p)], ids=name)
def test_every_command_parses(page, capsys):
    parser = cli.parser()
    for command in filter(complete, commands(page)):
        try:
            parser.parse_args(shlex.split(command)[1:])
        except SystemExit:
            pytest.fail(f"{name(page)}: {command}\n{capsys.readouterr().err}")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_target_and_link_exists(page):
    text, makefile = page.read_text(), (ROOT / "Makefile").read_text()
    for target in re.findall(r"(?:^    |`|\$ )make ([a-z][a-z-]*)", text, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{name(page)}: make {target}"
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (page.parent / link).exists(), f"{name(page)} links to {link}, which is not there"
