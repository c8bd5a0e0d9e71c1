"""`lemn export RUN_OR_PRESET --out DIR/NAME/1`: from a trained model to one that can be served."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from lemn_tf.commands import world
from lemn_tf.files import place_for


class Export:
    """Writes a model as a SavedModel for TF Serving."""

    name = "export"
    help = "write a model as a SavedModel for TF Serving"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("model", metavar="RUN_OR_PRESET", help="a trained run, or a preset")
        parser.add_argument(
            "--out", type=place, required=True, metavar="DIR/NAME/VERSION", help="where to write"
        )
        parser.add_argument("--description", default="", help="a sentence for the model's card")
        parser.add_argument("--overwrite", action="store_true", help="replace what is there")
        parser.add_argument("--no-warmup", action="store_true", help="leave out warm-up requests")

    def check(self, arguments: argparse.Namespace) -> None:
        """Raises if there is no such model, or the target exists already."""
        from lemn_tf import runs

        if arguments.out.exists() and not arguments.overwrite:
            raise ValueError(f"{arguments.out} exists: choose another place, or say --overwrite")
        runs.about(arguments.model)
        world.check_modules(runs.config(arguments.model).get("modules", ()))
        place_for(arguments.out.parent)

    def run(self, arguments: argparse.Namespace) -> None:
        from lemn_tf import runs
        from lemn_tf.export.savedmodel import export, read_facts
        from lemn_tf.navigation.agent import MemoryAgent
        from lemn_tf.wordlist import WordList

        runs.import_modules(arguments.model)
        preset = runs.presets().get(arguments.model)
        model = runs.load(arguments.model)
        given: Any = model
        if isinstance(model, MemoryAgent):
            from lemn_tf.experiments.serving import agent_servable

            given = agent_servable(model)
        elif isinstance(getattr(model, "vocabulary", None), WordList):
            from lemn_tf.experiments.documents_text import documents_servable

            given = documents_servable(model)
        told = f"writing the signatures of {arguments.model}: this takes half a minute or so ..."
        print(told, file=sys.stderr, flush=True)
        path = export(
            given,
            arguments.out,
            description=arguments.description or (preset.about if preset else ""),
            overwrite=arguments.overwrite,
            warmup=not arguments.no_warmup,
        )
        facts = read_facts(path)
        slots, policy, mark = facts["slots"], facts["policy"], facts["fingerprint"]
        print(f"{path}: {slots} slots, {policy}, fingerprint {mark}")
        print(f"signatures: {', '.join(facts['signatures'])}")


def place(text: str) -> Path:
    """An argparse type: DIR/NAME/VERSION with a number for the version, as TF Serving wants it."""
    from lemn_tf.export.folders import is_version

    path = Path(text)
    if not is_version(path.name) or not path.absolute().parent.name:
        raise argparse.ArgumentTypeError(
            f"expected DIR/NAME/VERSION with a number for the version, e.g. models/babi/1; "
            f"got {text!r}"
        )
    return path
