"""How a report was made: command, seed, commit, versions and time."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from lemn_tf import __version__, runs

PACKAGES = ("tensorflow-cpu", "tensorflow", "keras", "numpy", "matplotlib")
"""Whose versions are told, if they are installed."""


def made(command: str, names: Sequence[str | os.PathLike], seconds: float) -> dict[str, str]:
    """What there is to say of how a report was made.

    Args:
        command: that made it.
        names: of its runs.
        seconds: that it took.
    """
    told = {"command": command}
    for name in names:
        config = runs.config(name)
        if config:
            keys = ("policy", "slots", "recipe", "seed", "train", "valid", "env", "qa")
            known = {key: config[key] for key in keys if config.get(key) is not None}
            if isinstance(known.get("recipe"), dict):
                known.pop("recipe")
            told[f"run {name}"] = ", ".join(f"{key} {value}" for key, value in known.items())
            spent = [line["seconds"] for line in history(name) if "seconds" in line]
            told[f"training of {name}"] = f"{max(spent, default=0):,.0f} seconds"
        else:
            told[f"run {name}"] = preset(name)
    told["lemn_tf"] = " ".join(filter(None, (__version__, commit())))
    told["versions"] = ", ".join([f"Python {platform.python_version()}", *_versions()])
    told["made on"] = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC"
    told["time"] = f"{seconds:.0f} seconds"
    return told


def preset(name: str | os.PathLike) -> str:
    """What is known of a preset, in words; nothing of another model."""
    known = runs.presets().get(os.fspath(name))
    return f"preset: {known.trained}; {known.score}" if known else "a model without a run's folder"


def history(name: str | os.PathLike) -> list[dict[str, Any]]:
    """The lines of a run's training; none for a preset."""
    path = Path(name) / "history.jsonl"
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]


def commit() -> str:
    """The commit of the source that runs, if it is a checkout."""
    asked = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        found = subprocess.run(asked, capture_output=True, text=True, timeout=10, check=False)
    except OSError:
        return ""
    return f"(commit {found.stdout.strip()})" if found.returncode == 0 else ""


def _versions() -> list[str]:
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    return found
