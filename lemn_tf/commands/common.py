"""What the subcommands share: argument types, and the commit."""

from __future__ import annotations

import argparse
import math
import subprocess
from collections.abc import Sequence
from pathlib import Path


def whole_number(least: int):
    """An argparse type: an integer of at least `least`."""

    def convert(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = None
        if number is None or number < least:
            raise argparse.ArgumentTypeError(f"expected a whole number >= {least}; got {text!r}")
        return number

    return convert


def whole_numbers(least: int):
    """An argparse type: integers of at least `least`, separated by commas."""
    one = whole_number(least)
    return lambda text: [one(part) for part in text.split(",")]


def amount(text: str) -> float:
    """An argparse type: a finite number of at least 0."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number >= 0; got {text!r}")
    return number


def refuse(arguments: argparse.Namespace, names: Sequence[str], meant_for: str) -> None:
    """Raises if one of the named options was given: they are meant for something else."""
    given = [name for name in names if getattr(arguments, name) is not None]
    if given:
        options = ", ".join("--" + name.replace("_", "-") for name in given)
        raise ValueError(f"{options}: meant for {meant_for}, and {arguments.run} is none of them")


def words(text: str) -> list[str]:
    """An argparse type: words separated by commas."""
    return [word.strip() for word in text.split(",") if word.strip()]


def commit() -> str:
    """The commit that is checked out, or "unknown" outside a checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else "unknown"
