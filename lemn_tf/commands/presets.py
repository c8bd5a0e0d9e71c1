"""`lemn presets`: the trained models that ship with the package."""

from __future__ import annotations

import argparse
import dataclasses
import json


class Presets:
    """Lists the presets."""

    name = "presets"
    help = "list the trained models that ship with the package"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print JSON")

    def run(self, arguments: argparse.Namespace) -> None:
        from lemn_tf.runs import presets

        if arguments.json:
            print(json.dumps([dataclasses.asdict(one) for one in presets().values()]))
            return
        for one in presets().values():
            print(f"{one.name} ({one.size / 1e6:.1f} MB)")
            print(f"    {one.task}, {one.policy} with {one.slots} slots")
            print(f"    {one.score}")
            print(f"    trained by {one.trained}")
