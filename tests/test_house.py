"""The house stays in order: nothing unreachable or undocumented, tests beside what they test."""

import ast
import inspect
from pathlib import Path

import pytest

import lemn_tf
from tests.test_dependencies import MODULES, imports, part

ROOT = Path(__file__).parents[1]
DOORS = ("lemn_tf", "lemn_tf.cli", "lemn_tf.agents", "lemn_tf.export", "lemn_tf.mazes")
"""Where users come in: whatever nobody can reach from here is of no use to them."""
ABOUT_ALL = {"conformance", "docs", "examples", "fuzz", "node", "serving", "wire"}
"""Folders of tests that are about several modules at once."""
LONGEST_FILE, LONGEST_FUNCTION, MOST_PARAMETERS = 400, 60, 8
HOOKS = {
    "build",
    "call",
    "compute_mask",
    "compute_output_spec",
    "from_config",
    "get_config",
    "make_test_function",
    "test_step",
}
"""Methods that Keras asks of a layer or model and documents itself."""


def named_in(name: str, path: Path) -> set[str]:
    """Modules that a package loads by name when asked: strings in its `__init__`."""
    if path.name != "__init__.py":
        return set()
    strings = {
        node.value
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return {f"{name}.{text}" for text in strings} | {text for text in strings if "." in text}


def reached() -> set[str]:
    """The modules that can be reached from the doors, by imports at any place."""
    found, todo = set(), list(DOORS)
    while todo:
        name = todo.pop()
        if name in found or name not in MODULES:
            continue
        found.add(name)
        for other in imports(name, MODULES[name]) | named_in(name, MODULES[name]):
            parts = other.split(".")
            todo += [".".join(parts[:n]) for n in range(1, len(parts) + 1)]
    return found


def test_every_module_can_be_reached():
    assert not set(MODULES) - reached()


def functions(name: str):
    """The functions and methods of a module, with their full names."""

    def walk(node, above):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                here = f"{above}.{child.name}"
                if isinstance(child, ast.FunctionDef):
                    yield here, child
                yield from walk(child, here)

    yield from walk(ast.parse(MODULES[name].read_text()), name)


def documentation(node: ast.FunctionDef) -> int:
    """The lines of a function's docstring, which may be as long as it is useful."""
    first = node.body[0]
    return first.end_lineno - first.lineno + 1 if ast.get_docstring(node) else 0


@pytest.mark.parametrize("name", list(MODULES))
def test_files_and_functions_are_short(name):
    lines = len(MODULES[name].read_text().splitlines())
    assert lines <= LONGEST_FILE, f"{name} has {lines} lines"
    for function, node in functions(name):
        size = node.end_lineno - node.lineno + 1 - documentation(node)
        assert size <= LONGEST_FUNCTION, f"{function}: {size} lines"
        given = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
        required = len(given) - len(node.args.defaults) - (given[:1] in (["self"], ["cls"]))
        assert required <= MOST_PARAMETERS, f"{function} needs {required} arguments"


@pytest.mark.parametrize("name", list(MODULES))
def test_public_names_have_docstrings(name):
    tree = ast.parse(MODULES[name].read_text())
    assert ast.get_docstring(tree), f"{name} has no docstring"
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{name}.{node.name} has no docstring"


def test_no_class_name_stands_twice_in_a_room():
    found: dict[tuple[str, str], list[str]] = {}
    for name, path in MODULES.items():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                found.setdefault((part(name), node.name), []).append(name)
    twice = {key: names for key, names in found.items() if len(names) > 1}
    assert not twice, f"several classes of one name: {twice}"


@pytest.mark.parametrize("name", list(MODULES))
def test_autograph_translates_nothing(name):
    """It would take seconds at the first call of a function, and there is nothing to translate."""
    nodes = list(ast.walk(ast.parse(MODULES[name].read_text())))
    told = {
        node.func
        for node in nodes
        if isinstance(node, ast.Call) and "autograph" in {given.arg for given in node.keywords}
    }
    for node in nodes:
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "tf.function":
            assert node in told, f"{name}, line {node.lineno}: expected autograph=False"


@pytest.mark.parametrize("name", lemn_tf.__all__)
def test_the_public_api_is_documented(name):
    value = getattr(lemn_tf, name)
    if not (inspect.isclass(value) or inspect.isfunction(value) or inspect.ismodule(value)):
        return  # a type alias or a constant, documented where it is defined
    assert inspect.getdoc(value), f"lemn_tf.{name} has no docstring"
    if inspect.isclass(value):
        for key, member in vars(value).items():
            if inspect.isfunction(member) and not key.startswith("_") and key not in HOOKS:
                assert inspect.getdoc(getattr(value, key)), f"lemn_tf.{name}.{key} has no docstring"


def module_of(path: Path) -> str:
    """The module that a test file is about, by its place."""
    parts = [*path.relative_to(ROOT / "tests").parts[:-1], path.stem.removeprefix("test_")]
    return ".".join(["lemn_tf", *parts])


def test_tests_mirror_the_package():
    about_all = {"test_dependencies.py", "test_house.py", "test_init.py", "test_packaging.py"}
    astray = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("test_*.py")
        if not ABOUT_ALL & set(path.parts)
        and path.name not in about_all
        and module_of(path) not in MODULES
    ]
    assert not astray, f"no such module to test: {astray}"


def test_the_search_would_notice():
    assert "lemn_tf.files" in reached()
    assert "lemn_tf.no_such_module" not in reached()
