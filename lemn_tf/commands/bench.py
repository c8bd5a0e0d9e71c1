"""`lemn bench`: how fast training and evaluation are, beside one story at a time in eager mode."""

from __future__ import annotations

import argparse
import json

from lemn_tf.commands.common import whole_number


class Bench:
    """Measures episodes a second, after compilation, as a ratio to an eager baseline."""

    name = "bench"
    help = "measure episodes a second of training or evaluation"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("what", choices=("train", "evaluate"))
        parser.add_argument("--policy", default="st-lemn", help="retention policy")
        parser.add_argument("--slots", type=whole_number(1), default=5, help="N in the paper")
        parser.add_argument("--batch", type=whole_number(1), help="episodes at a time")
        parser.add_argument("--shards", type=whole_number(1), default=2, help="cores to use")
        parser.add_argument("--seconds", type=whole_number(1), default=10, help="to measure for")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def run(self, arguments: argparse.Namespace) -> None:
        from lemn_tf.experiments import speed

        measure = speed.of_training if arguments.what == "train" else speed.of_evaluation
        size = arguments.batch or (64 if arguments.what == "train" else 256)
        result = measure(
            arguments.policy, arguments.slots, size, arguments.shards, arguments.seconds
        )
        if arguments.json:
            print(json.dumps(result))
            return
        print(
            f"{arguments.what}: {result['episodes_per_second']:,.0f} episodes/s "
            f"(batch {result['batch']}, {result['shards']} shards, compiled in "
            f"{result['compile_seconds']:.0f} s); one story at a time in eager mode "
            f"{result['eager_episodes_per_second']:,.1f} episodes/s: "
            f"{result['ratio']:,.0f} times as fast"
        )
