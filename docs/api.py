"""Writes docs/api.md from the docstrings: `make api`. A test holds the page to what this makes."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("api.md")
ROOMS = {
    "lemn_tf": "The library",
    "lemn_tf.memory": "The memory as a value",
    "lemn_tf.retention": "Policies",
    "lemn_tf.readers": "Readers",
    "lemn_tf.learning": "What trains a policy in any model",
    "lemn_tf.callbacks": "Callbacks",
    "lemn_tf.seeing": "Seeing what it remembers",
}
"""The modules whose public names the page shows."""
HEAD = """\
# API

Written by `make api` from the docstrings; `help(lemn_tf.StreamReader)` in Python says the same,
and more of the methods. What the pieces are for: [guide.md](guide.md).
"""


def names(module: Any) -> list[str]:
    """Its public names: `__all__`, or what it defines itself."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    own = (
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__ and not name.startswith("_")
    )
    return sorted(own)


def entry(room: str, name: str, value: Any) -> str:
    """One name: how it is called, and its docstring."""
    if inspect.ismodule(value):
        return ""
    told = inspect.getdoc(value) if inspect.isclass(value) or callable(value) else None
    title = f"### `{room}.{name}`\n"
    if told is None:
        return f"{title}\nA constant: `{value!r}`\n" if not callable(value) else f"{title}\n"
    called = f"{name}({_parameters(value)})"
    first, _, rest = told.partition("\n")
    lines = [title, first, "", "```text", called]
    rest = rest.strip("\n")
    if rest:
        lines += ["", rest]
    methods = _methods(value)
    if methods:
        lines += ["", "Methods:", *methods]
    return "\n".join([*lines, "```", ""])


def _parameters(value: Any) -> str:
    """How it is called: names and defaults; the types are in the docstring."""
    # Python's versions differ in what they find for a class with both __new__ and __init__.
    initialised = inspect.isclass(value) and value.__init__ is not object.__init__
    try:
        given = list(
            inspect.signature(value.__init__ if initialised else value).parameters.values()
        )
    except (TypeError, ValueError):
        return "..."
    given = given[1:] if initialised else given
    told = []
    for one in given:
        mark = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        default = getattr(one.default, "__name__", repr(one.default))
        told.append(f"{mark}{one.name}" + ("" if one.default is one.empty else f"={default}"))
    return ", ".join(told)


def _methods(value: Any) -> list[str]:
    """The public methods and properties that a class defines itself, a line each."""
    if not inspect.isclass(value):
        return []
    found = []
    for name, member in vars(value).items():
        inner = member.fget if isinstance(member, property) else member
        inner = getattr(inner, "__func__", inner)
        if name.startswith("_") or not inspect.isfunction(inner) or not inner.__doc__:
            continue
        found.append(f"    {name}: {inner.__doc__.strip().splitlines()[0]}")
    return found


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for room, title in ROOMS.items():
        module = importlib.import_module(room)
        parts.append(f"## {title}: `{room}`\n")
        parts += filter(None, (entry(room, name, getattr(module, name)) for name in names(module)))
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
