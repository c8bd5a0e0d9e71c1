"""`lemn export`, `lemn serve` and `lemn chat`: from a trained model to one that answers calls."""

from __future__ import annotations

import argparse


class Export:
    """Writes a model as a SavedModel for TF Serving."""

    name = "export"
    help = "write a model as a SavedModel for TF Serving"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        from lemn_tf.export import command

        command.add_arguments(parser)

    def run(self, arguments: argparse.Namespace) -> int:
        from lemn_tf import runs
        from lemn_tf.export import command

        return command.run(arguments, runs.load)


class Serve:
    """Serves SavedModels from this machine, for a laptop and for tests."""

    name = "serve"
    help = "serve exported models from this machine, with TF Serving's API"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        from lemn_tf.export import command_serve

        command_serve.add_arguments(parser)

    def run(self, arguments: argparse.Namespace) -> int:
        from lemn_tf.export import command_serve

        return command_serve.run(arguments)


class Chat:
    """A conversation with a memory."""

    name = "chat"
    help = "talk to an exported model: it remembers lines and answers questions"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        from lemn_tf.export import command_chat

        command_chat.add_arguments(parser)

    def run(self, arguments: argparse.Namespace) -> int:
        from lemn_tf.export import command_chat

        return command_chat.run(arguments)
