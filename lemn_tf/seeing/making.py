"""How a report was made: command, seed, commit, versions and time."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from lemn_tf import __version__, runs
from lemn_tf.loop import history

PACKAGES = ("tensorflow-cpu", "tensorflow", "keras", "numpy", "matplotlib")
"""Packages whose versions are shown, if they are installed."""


def made(command: str, names: Sequence[str | os.PathLike], seconds: float) -> dict[str, str]:
    """How a report was made, as names and values."""
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
    """What is known about a preset, in words; for other models only that there is no run."""
    known = runs.presets().get(os.fspath(name))
    return f"preset: {known.trained}; {known.score}" if known else "a model without a run's folder"


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
