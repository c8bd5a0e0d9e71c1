"""`lemn play`: watch a maze agent and its memory.

lemn play RUN --length 40 --out video.gif
"""

from __future__ import annotations

import argparse

from lemn_tf.commands.common import there, whole_number

HEADINGS = ("north", "east", "south", "west")


class Play:
    """Films one episode of a trained maze agent."""

    name = "play"
    help = "film a maze agent: its view, the map, its memory and what it drops"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("run", metavar="RUN", help="folder of a run, .npz file, or preset")
        parser.add_argument("--length", type=whole_number(3), help="of an I-Maze (default 9)")
        parser.add_argument("--indicator", choices=("yellow", "lime"), default="lime")
        parser.add_argument("--maps", metavar="F", help="play a map of this file instead")
        parser.add_argument("--map", type=whole_number(0), default=0, help="which one, from 0")
        parser.add_argument("--heading", choices=HEADINGS, default="north", help="at the start")
        parser.add_argument(
            "--milliseconds", type=whole_number(20), default=350, help="to show each step for"
        )
        parser.add_argument("--out", required=True, metavar="F", help="the .gif to write")

    def check(self, arguments: argparse.Namespace) -> None:
        """Raises if there is no such agent, or no such file of maps."""
        from lemn_tf import runs

        runs.find_agent(arguments.run)
        there(arguments.maps)

    def run(self, arguments: argparse.Namespace) -> None:
        from lemn_tf import runs
        from lemn_tf.mazes import build, imaze_world, load_jsonl
        from lemn_tf.navigation.navigator import load_agent
        from lemn_tf.navigation.video import film

        if arguments.maps and arguments.length:
            raise ValueError("expected either the length of an I-Maze or a file of maps, got both")
        if arguments.map and not arguments.maps:
            raise ValueError("expected the number of a map with a file of maps only")
        model = load_agent(runs.find_agent(arguments.run))
        if arguments.maps:
            found = load_jsonl(arguments.maps)
            if arguments.map >= len(found):
                raise ValueError(f"expected a map 0 to {len(found) - 1}, got {arguments.map}")
            world = build([found[arguments.map]])
        else:
            world = imaze_world(arguments.length or 9, arguments.indicator[0].upper())
        heading = HEADINGS.index(arguments.heading)
        told = film(model, world, arguments.out, 0, heading, arguments.milliseconds)
        ending = "the right goal" if told["success"] else "not the right goal"
        print(f"wrote {arguments.out}: {told['steps']} steps to {ending}")
