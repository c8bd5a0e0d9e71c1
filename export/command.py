"""`lemn export RUN_OR_PRESET --out DIR/NAME/1`. Which model that is, the caller knows."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from lemn_tf.model import StreamReader

ABOUT = "write a model as a SavedModel for TF Serving"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds what `lemn export` takes."""
    parser.add_argument("model", metavar="RUN_OR_PRESET", help="a trained run, or a preset")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR/NAME/VERSION", help="where to write"
    )
    parser.add_argument("--description", default="", help="a sentence for the model's card")
    parser.add_argument("--overwrite", action="store_true", help="replace what is there")
    parser.add_argument("--no-warmup", action="store_true", help="leave out warm-up requests")


def run(args: argparse.Namespace, load_model: Callable[[str], StreamReader]) -> int:
    """Exports and says what was written.

    Args:
        args: as `add_arguments` has it.
        load_model: from RUN_OR_PRESET to the model.

    Returns:
        The exit status: 0, or 1 with a message if it could not be done.
    """
    from lemn_tf.export.savedmodel import export, read_facts

    try:
        path = export(
            load_model(args.model),
            args.out,
            description=args.description,
            overwrite=args.overwrite,
            warmup=not args.no_warmup,
        )
    except (FileExistsError, ValueError) as error:
        print(f"lemn export: {error}")
        return 1
    facts = read_facts(path)
    print(f"{path}: {facts['slots']} slots, {facts['policy']}, fingerprint {facts['fingerprint']}")
    print(f"signatures: {', '.join(facts['signatures'])}")
    return 0
