"""`lemn play`: watch a maze agent and its memory."""

from __future__ import annotations

import argparse

from lemn_tf.commands import maze


class Play:
    """Films one episode of a trained maze agent."""

    name = "play"
    help = "film a maze agent: its view, the map, its memory and what it drops"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        maze.add_play_arguments(parser)

    def run(self, arguments: argparse.Namespace) -> None:
        maze.run_play(arguments)
