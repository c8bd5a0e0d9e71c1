"""`lemn chat URL_OR_DIR`: talk to a memory, on a server or in a SavedModel."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from lemn_tf.commands.common import there
from lemn_tf.files import room_for


class Chat:
    """A conversation with a memory."""

    name = "chat"
    help = "talk to an exported model: it remembers lines and answers questions"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "target",
            metavar="URL_OR_DIR",
            help="http://HOST:PORT[/v1/models/NAME], grpc://HOST:PORT[/NAME], "
            "or a SavedModel's folder",
        )
        parser.add_argument("--name", help="of the model, if the server has several")
        parser.add_argument("--load", metavar="FILE", help="go on with a saved memory")
        parser.add_argument("--save", metavar="FILE", help="save the memory at the end")

    def check(self, arguments: argparse.Namespace) -> None:
        """Raises for a preset or a run, a folder without a model, or a missing file."""
        from lemn_tf.export.folders import find_models

        _refuse_trained(arguments.target)
        if Path(arguments.target).is_dir():
            find_models(Path(arguments.target), arguments.name)
        there(arguments.load)
        room_for(arguments.save)

    def run(self, arguments: argparse.Namespace) -> None:
        from rich.console import Console

        from lemn_tf.commands.conversation import Conversation
        from lemn_tf.export.client import MemoryClient
        from lemn_tf.export.errors import Code, ServingError

        console = Console(highlight=False)
        try:
            with MemoryClient(arguments.target, name=arguments.name) as client:
                if arguments.load:
                    client.load(arguments.load)
                try:
                    Conversation(client, console).run(_lines())
                except KeyboardInterrupt:
                    console.print()
                if arguments.save:
                    client.save(arguments.save)
        except ServingError as error:
            if error.code is Code.UNAVAILABLE:
                raise OSError(
                    f"no server answers at {arguments.target}: is it running? "
                    "`lemn serve DIR` starts one"
                ) from error
            raise OSError(str(error)) from error


def _lines() -> Iterator[str]:
    """The lines of standard input; with a prompt if a person is typing."""
    if not sys.stdin.isatty():
        yield from sys.stdin
        return
    while True:
        try:
            yield input("> ")
        except EOFError:
            return


def _refuse_trained(name: str) -> None:
    """Raises for a preset or a run, which is no address, and says what to do with it."""
    from lemn_tf import runs

    path = Path(name)
    run = path.suffix == ".keras" or (path / "model.keras").is_file()
    if not run and name not in runs.presets():
        return
    cls = runs.about(name).cls
    if cls != "StreamReader":
        shown = f": `lemn play {name} --out FILE.gif` shows it" if cls == "Navigator" else ""
        raise ValueError(f"{name} is an agent that acts in a world; it does not talk{shown}")
    raise ValueError(
        f"{name} is not exported: `lemn export {name} --out DIR/1`, then `lemn chat DIR`"
    )
