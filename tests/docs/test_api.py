"""The API page is what the docstrings say now, and every public name is on it."""

import importlib
import importlib.util
import inspect
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("api", ROOT / "docs" / "api.py")
api = importlib.util.module_from_spec(spec)
spec.loader.exec_module(api)


def test_the_page_is_up_to_date():
    assert api.PAGE.read_text(encoding="utf-8") == api.page(), "run `make api`"


@pytest.mark.parametrize("room", api.ROOMS)
def test_every_public_name_is_documented(room):
    module = importlib.import_module(room)
    text = api.PAGE.read_text(encoding="utf-8")
    for name in api.names(module):
        value = getattr(module, name)
        if not hasattr(value, "__path__") and type(value).__name__ != "module":
            assert f"### `{room}.{name}`" in text
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, f"{room}.{name} has no docstring"
