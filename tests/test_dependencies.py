"""Who may depend on whom: the arrows of the design, read off the imports."""

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
JOINERS = ("cli", "commands", "demo")
"""The command line: the only place that joins everything."""
OUTER = (
    "pipelines",
    "export",
    "agents",
    "navigation",
    "mazes",
    "experiments",
    "seeing",
    *JOINERS,
)
"""Whatever is not named here is core, new modules included."""


def sources():
    """Every source file of the package, by the module's name."""
    for folder, package in (
        (ROOT / "lemn_tf", "lemn_tf"),
        (ROOT / "pipelines", "lemn_tf.pipelines"),
        (ROOT / "export", "lemn_tf.export"),
    ):
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            yield ".".join((package, *parts)).removesuffix(".__init__"), path


def imports(name: str, path: Path) -> set[str]:
    """The full names of what a module imports, wherever in the file it does so.

    `from a import b` counts as `a.b`, for b may be a module.
    """
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base]).rstrip(".")
            found |= {f"{base}.{alias.name}" for alias in node.names}
    return found


def part(name: str) -> str:
    """The part of the design a module belongs to: `lemn_tf.retention.base` -> `retention`."""
    return name.split(".")[1] if "." in name else ""


def allowed(here: str, imported: str) -> bool:
    """Whether a module of the part `here` may import this."""
    top = imported.split(".")[0]
    if here in JOINERS:
        return True
    if top == "tf_agents" or top in ("tf_keras", "tensorflow_probability"):
        return here == "agents"
    if top in ("gymnasium", "gym", "matplotlib"):
        return here in ("mazes", "navigation", "experiments", "seeing")
    if top != "lemn_tf":
        return True
    there = part(imported)
    if here == there or there in ("files", "tables"):
        return True
    if here in ("files", "tables", "memory", "text", "tape"):
        return False
    if here == "runs" and there == "experiments":
        return True  # what joins documents to a live model
    if here in ("", "callbacks") and there == "seeing":
        return True  # the board is a callback; what it draws is drawn there
    if here == "retention":
        return there == "memory"
    if here == "readers":
        return there in ("memory", "retention", "text")
    if here in ("layer", "streams"):
        return there in ("memory", "retention", "streams", "tape")
    if here == "learning":
        return there in ("memory", "retention", "readers", "layer", "streams", "tape")
    if here not in OUTER:
        return there not in OUTER
    if here == "pipelines":
        return False
    if here == "export":
        return there not in OUTER
    if here == "agents":
        return there == "mazes" or there not in OUTER
    if here == "navigation":
        return there in ("mazes", "pipelines") or there not in OUTER
    if here == "mazes":
        return False
    return here in ("experiments", "seeing") and there not in JOINERS


MODULES = dict(sources())


@pytest.mark.parametrize("name", list(MODULES))
def test_a_module_imports_only_what_it_may(name):
    wrong = [other for other in imports(name, MODULES[name]) if not allowed(part(name), other)]
    assert not wrong, f"{name} must not import {wrong}; see 'Who may depend on whom'"


@pytest.mark.parametrize("name", [name for name in MODULES if part(name) == "pipelines"])
def test_pipelines_know_nothing_of_models(name):
    known = {"tensorflow", "tensorflow_text", "numpy", "lemn_tf", *sys.stdlib_module_names}
    assert {other.split(".")[0] for other in imports(name, MODULES[name])} <= known


def test_the_rules_would_notice():
    assert not allowed("memory", "lemn_tf.retention.get")
    assert not allowed("layer", "lemn_tf.pipelines.babi")
    assert not allowed("a_new_module", "lemn_tf.cli.main")
    assert allowed("a_new_module", "lemn_tf.model.StreamReader")
    assert not allowed("export", "tf_agents.policies")
    assert not allowed("pipelines", "lemn_tf.text")
    assert allowed("agents", "tf_agents.policies")
    assert allowed("layer", "lemn_tf.retention.base")
    assert not allowed("layer", "lemn_tf.learning.rollout")
    assert not allowed("learning", "lemn_tf.model.StreamReader")
    assert allowed("model", "lemn_tf.learning.MemoryModel")


def test_importing_is_quiet_and_light():
    """No tf_agents, no environment variable, not a word, no warning of our own."""
    script = """
        import os, sys, warnings
        import numpy, tensorflow, keras
        before, modules = dict(os.environ), set(sys.modules)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            import lemn_tf
        assert not caught, [str(w.message) for w in caught]
        assert dict(os.environ) == before
        heavy = {"tf_agents", "tf_keras", "tensorflow_probability", "gymnasium", "gym", "rich"}
        heavy |= {"matplotlib"}
        loaded = {name.split(".")[0] for name in set(sys.modules) - modules}
        assert not heavy & loaded, heavy & loaded
        parts = {name for name in sys.modules if name.startswith("lemn_tf.")}
        outer = ("pipelines", "export", "agents", "mazes", "seeing", "cli", "commands", "demo")
        assert not [name for name in parts if name.split(".")[1] in outer], parts
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "lemn" not in done.stderr
