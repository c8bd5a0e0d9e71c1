"""`lemn play`: watch a maze agent and its memory, in the kind of maze it was trained on.

lemn play imaze-mqn-st-lemn-4 --length 40 --out video.gif
lemn play single-indicator-frmqn-st-lemn-5 --seed 3 --out video.gif
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from lemn_tf.commands.common import there, whole_number
from lemn_tf.commands.maze import add_far
from lemn_tf.files import room_for

if TYPE_CHECKING:
    from lemn_tf.mazes import World

HEADINGS = ("north", "east", "south", "west")


class Play:
    """Films one episode of a trained maze agent."""

    name = "play"
    help = "film a maze agent: its view, the map, its memory and what it drops"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("run", metavar="RUN", help="folder of a run, .keras file, or preset")
        parser.add_argument("--length", type=whole_number(3), help="of an I-Maze (default 9)")
        parser.add_argument("--indicator", choices=("yellow", "lime"), default="lime")
        parser.add_argument("--seed", type=whole_number(0), help="of a random maze (default 0)")
        add_far(parser)
        parser.add_argument("--maps", metavar="F", help="play a map of this file instead")
        parser.add_argument("--map", type=whole_number(0), default=0, help="which of them, from 0")
        looked = "at the start (default west, where the indicator is)"
        parser.add_argument("--heading", choices=HEADINGS, default="west", help=looked)
        parser.add_argument(
            "--milliseconds", type=whole_number(20), default=350, help="to show each step for"
        )
        parser.add_argument("--out", required=True, metavar="F", help="the .gif to write")

    def check(self, arguments: argparse.Namespace) -> None:
        """Raises if the agent, the file of maps or the folder for the film is missing."""
        from lemn_tf import runs

        cls = runs.about(arguments.run).cls
        if cls != "Navigator":
            raise ValueError(f"{arguments.run} is a {cls}: expected a maze agent")
        if Path(arguments.out).suffix.lower() != ".gif":
            raise ValueError(f"expected a file that ends in .gif, got {arguments.out!r}")
        given = [
            name for name in ("length", "seed", "maps") if getattr(arguments, name) is not None
        ]
        if len(given) > 1:
            raise ValueError(
                "expected either the length of an I-Maze, the seed of a random maze or a file of "
                f"maps, got {' and '.join(given)}"
            )
        if arguments.far and (arguments.length or arguments.maps):
            raise ValueError("expected --far with a generated random maze only")
        if arguments.map and not arguments.maps:
            raise ValueError("expected the number of a map with a file of maps only")
        there(arguments.maps)
        room_for(arguments.out)

    def run(self, arguments: argparse.Namespace) -> None:
        from lemn_tf.experiments.mazes import load_agent
        from lemn_tf.navigation.video import film

        model = load_agent(arguments.run)
        world = self._world(arguments, model.settings["world"])
        heading = HEADINGS.index(arguments.heading)
        told = film(model, world, arguments.out, 0, heading, arguments.milliseconds)
        ending = "the right goal" if told["success"] else "not the right goal"
        print(f"wrote {arguments.out}: {told['steps']} steps to {ending}")

    def _world(self, arguments: argparse.Namespace, kind: str) -> World:
        """The map to play: as the options say, or of the kind the agent was trained on."""
        from lemn_tf.mazes import build, imaze_world, load_jsonl, single_indicator_world

        if arguments.maps:
            found = load_jsonl(arguments.maps)
            if arguments.map >= len(found):
                raise ValueError(f"expected a map 0 to {len(found) - 1}, got {arguments.map}")
            return build([found[arguments.map]])
        far, random = arguments.far or 0, arguments.seed is not None or bool(arguments.far)
        if random or (kind == "single-indicator" and not arguments.length):
            return single_indicator_world(split="test", seed=arguments.seed or 0, count=1, far=far)
        return imaze_world(arguments.length or 9, arguments.indicator[0].upper())
