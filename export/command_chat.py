"""`lemn chat`: talk to a memory, on a server or in a SavedModel."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `lemn chat`."""
    parser.add_argument(
        "target",
        metavar="URL_OR_DIR",
        help="http://HOST:PORT[/v1/models/NAME], grpc://HOST:PORT[/NAME], or a SavedModel's folder",
    )
    parser.add_argument("--name", help="of the model, if the server has several")
    parser.add_argument("--load", metavar="FILE", help="go on with a saved memory")
    parser.add_argument("--save", metavar="FILE", help="save the memory at the end")


def run(args: argparse.Namespace) -> int:
    """Talks until the input ends; returns the exit status."""
    from rich.console import Console

    from lemn_tf.export.chat import Chat
    from lemn_tf.export.client import MemoryClient, ServingError

    console = Console(highlight=False)
    try:
        with MemoryClient(args.target, name=args.name) as client:
            if args.load:
                client.load(args.load)
            try:
                Chat(client, console).run(_lines())
            except KeyboardInterrupt:
                console.print()
            if args.save:
                client.save(args.save)
    except (ServingError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


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
