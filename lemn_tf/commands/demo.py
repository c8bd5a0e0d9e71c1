"""`lemn demo`: the main job, small."""

from __future__ import annotations

import argparse

from lemn_tf.commands.common import whole_number


class Demo:
    """Streams generated stories through every policy and shows what each kept."""

    name = "demo"
    help = "stream generated stories through every policy and show what each kept"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--variant", default="noisy", help="original, noisy or large")
        parser.add_argument(
            "--episodes", type=whole_number(1), default=100, help="how many stories"
        )
        parser.add_argument(
            "--slots", type=whole_number(1), default=5, help="size of the memory, N"
        )
        parser.add_argument(
            "--seed", type=whole_number(0), default=1, help="of stories and weights"
        )

    def run(self, arguments: argparse.Namespace) -> None:
        from lemn_tf import demo

        demo.run(arguments.variant, arguments.episodes, arguments.slots, arguments.seed)
