"""Mazes for `lemn data`, `train` and `evaluate`: pairs of `add_..._arguments` and `run_...`.

lemn data maze --env single-indicator --count 100 --seed 1 --far 40 --out maps.jsonl
lemn train maze --env imaze --reader mqn --policy st-lemn --slots 4 --seed 0 --out RUN
lemn evaluate RUN --env imaze --lengths 4,6,200 --json
lemn evaluate RUN --maps maps.jsonl --json
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lemn_tf import runs
from lemn_tf.commands.common import (
    amount,
    given,
    refuse,
    slot_count,
    there,
    usable,
    whole_number,
    whole_numbers,
)
from lemn_tf.files import room_for
from lemn_tf.navigation.recipe import READERS, SLOTS

if TYPE_CHECKING:
    from lemn_tf.navigation.navigator import Navigator

CHANGES: dict[str, tuple[Any, str]] = {
    "frames": (whole_number(1), "length of the training, in steps of the environments"),
    "episodes": (whole_number(1), "whole episodes in each update"),
    "learning_rate": (amount, "of Adam"),
    "final_rate": (amount, "share of the learning rate left at the end"),
    "entropy": (amount, "weight of the entropy of the actions"),
    "final_entropy": (amount, "the same at the end"),
    "eviction_entropy": (amount, "weight of the entropy of what is forgotten"),
    "guidance": (
        amount,
        "weight of a loss that asks for what an explorer would do; falls to 0, 0 for no guidance",
    ),
    "guided": (amount, "share of the training after which the guidance is gone (default 0.5)"),
    "temperature": (amount, "how the agent plays: softmax(logits / T), 0 for the likeliest action"),
    "clip": (amount, "largest norm of the gradient"),
    "validate_every": (whole_number(1), "updates between two validations"),
}
"""Fields of the recipe that the command line can change."""


# -- data -----------------------------------------------------------------------------------------


def add_data_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `lemn data maze`."""
    add = parser.add_argument
    add("--env", choices=tuple(SLOTS), default="single-indicator")
    add("--split", choices=("train", "test", "large"), help="how large random mazes are (train)")
    add("--count", type=whole_number(1), help="random mazes to make (default 100)")
    add("--seed", type=whole_number(0), help="of random mazes (default 0)")
    add_far(parser)
    add("--lengths", type=whole_numbers(3), help="of I-Mazes (default the paper's for training)")
    add("--out", required=True, metavar="F", help="the file to write, JSON lines")


def add_far(parser: argparse._ActionsContainer) -> None:
    """The option that makes generated mazes harder to remember in."""
    about = "cells of a corridor between indicator and maze (default 0)"
    parser.add_argument("--far", type=whole_number(0), metavar="K", help=about)


def check_data(arguments: argparse.Namespace) -> None:
    """Raises unless the options go with the kind of maze."""
    random = arguments.env == "single-indicator"
    for name in ("lengths",) if random else ("split", "count", "seed", "far"):
        if getattr(arguments, name) is not None:
            raise ValueError(f"--{name}: not meant for {arguments.env}")
    room_for(arguments.out)


def run_data(arguments: argparse.Namespace) -> None:
    """Writes maps to a file."""
    from lemn_tf.mazes import TRAIN_LENGTHS, imazes, random_mazes, save_jsonl

    if arguments.env == "single-indicator":
        kind, far = arguments.split or "train", arguments.far or 0
        made = random_mazes(arguments.count or 100, arguments.seed or 0, kind, far=far)
    else:
        made = imazes(arguments.lengths or TRAIN_LENGTHS)
    save_jsonl(arguments.out, made)
    print(f"{arguments.out}: {len(made):,} maps")


# -- train ----------------------------------------------------------------------------------------


def add_train_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `lemn train maze`."""
    parser.add_argument("--env", choices=tuple(SLOTS), default="imaze")
    parser.add_argument("--maps", metavar="F", help="maps to train on (single-indicator)")
    parser.add_argument(
        "--generated", type=whole_number(0), help="maps to generate (1000, or 0 with --maps)"
    )
    parser.add_argument(
        "--large", type=whole_number(0), default=0, help="large maps to generate in addition"
    )
    parser.add_argument(
        "--refresh",
        type=whole_number(0),
        default=500,
        help="updates until new maps are generated",
    )
    add_far(parser)
    parser.add_argument("--reader", choices=READERS, default="mqn")
    parser.add_argument("--policy", default="st-lemn", help="retention policy")
    parser.add_argument("--slots", type=slot_count, help="N in the paper (4; mazes 5)")
    parser.add_argument("--width", type=whole_number(1), default=32, help="what a policy sees")
    parser.add_argument("--hidden", type=whole_number(1), help="width of h (default a quarter)")
    parser.add_argument(
        "--dated", action="store_true", help="the reader can tell when it saw what is in memory"
    )
    parser.add_argument(
        "--acted",
        type=whole_number(0),
        default=0,
        metavar="K",
        help="the reader is told its last K actions",
    )
    parser.add_argument("--seed", type=whole_number(0), default=0, help="of everything random")
    parser.add_argument(
        "--start-from",
        metavar="RUN",
        help="go on from a trained agent (folder, file or preset), without guidance, in smaller "
        "steps",
    )
    for name, (kind, text) in CHANGES.items():
        parser.add_argument("--" + name.replace("_", "-"), type=kind, help=text)
    parser.add_argument("--out", required=True, metavar="RUN", help="folder of the run")


def check_train(arguments: argparse.Namespace) -> None:
    """Raises unless the policy is one for agents, and what the training starts from is there."""
    usable(arguments.policy)
    there(arguments.maps)
    if arguments.maps and arguments.env == "imaze":
        raise ValueError("--maps: imaze has no file of maps, it is made from its lengths")
    if arguments.far and arguments.env == "imaze":
        raise ValueError("--far: not meant for imaze")
    random = arguments.env != "imaze"
    if random and arguments.generated == 0 and not (arguments.maps or arguments.large):
        raise ValueError("expected maps to train on: a file, or a number to generate")
    if arguments.start_from:
        cls = runs.about(arguments.start_from).cls
        if cls != "Navigator":
            raise ValueError(f"{arguments.start_from} is a {cls}: expected a maze agent")


def run_train(arguments: argparse.Namespace) -> None:
    """Trains an agent, or goes on with a run that was stopped."""
    from lemn_tf.experiments import mazes

    changes = given(arguments, CHANGES)
    settings = mazes.maze_settings(**given(arguments, mazes.MazeSettings), changes=changes)
    mazes.train_agent(settings, arguments.out, show_progress)
    print(f"best agent: {Path(arguments.out) / 'model.keras'}")


def show_progress(line: dict[str, Any]) -> None:
    """Prints a line of the history of a training."""
    print(
        f"{line['frames']:>11,} frames {line['frames_per_second']:>6,}/s  "
        f"training: success {line['success']:5.1f}%, length {line['length']:5.1f}  "
        f"validation: success {line['val_success_rate']:5.1f}% "
        f"(wrong {line['val_wrong_rate']:.1f}%), best {line['best']:.1f}%",
        file=sys.stderr,
        flush=True,
    )


# -- evaluate -------------------------------------------------------------------------------------


def add_evaluate_arguments(parser: argparse._ActionsContainer) -> None:
    """Arguments of `lemn evaluate` for mazes, in addition to RUN and --json."""
    parser.add_argument(
        "--env", help="imaze or single-indicator; for an agent of another world its ENV_ID"
    )
    parser.add_argument(
        "--lengths", type=whole_numbers(3), help="of I-Mazes, such as 4,6,200 (default the paper's)"
    )
    parser.add_argument("--maps", metavar="F", help="a file of maps to play, all of them")
    add_far(parser)
    parser.add_argument(
        "--temperature",
        type=amount,
        metavar="T",
        help="actions drawn from softmax(logits / T), 0 for the likeliest (default the agent's)",
    )
    parser.add_argument(
        "--count",
        type=whole_number(1),
        help="random mazes to generate of each size, or episodes of another world (default 200)",
    )
    parser.add_argument(
        "--seed", type=whole_number(0), help="of maps or episodes (default that of the tables)"
    )


def check_evaluate(arguments: argparse.Namespace, trained_in: str) -> str:
    """The kind of maze to play; raises for options that do not fit the agent or each other."""
    names = ("data", "store_questions", "renamings")
    refuse(arguments, names, "models that answer questions")
    refuse(arguments, ("modules",), "agents of other worlds")
    if arguments.env not in (None, *SLOTS):
        raise ValueError(f"expected --env {' or '.join(SLOTS)}, got {arguments.env!r}")
    if arguments.maps and arguments.lengths:
        raise ValueError("expected either lengths of I-Mazes or a file of maps, got both")
    made_for = "imaze" if arguments.lengths else trained_in
    env: str = arguments.env or ("single-indicator" if arguments.maps else made_for)
    if arguments.lengths and env != "imaze":
        raise ValueError("expected lengths with imaze only")
    asked = arguments.count or arguments.far or arguments.seed is not None
    if (arguments.maps or env == "imaze") and asked:
        raise ValueError("expected --count, --far and --seed with generated random mazes only")
    there(arguments.maps)
    return env


def run_evaluate(arguments: argparse.Namespace, model: Navigator) -> None:
    """Plays mazes with a trained agent and prints how many it solved."""
    from lemn_tf.experiments import mazes

    env = check_evaluate(arguments, model.settings["world"])
    if arguments.temperature is not None:
        model = model.playing_at(arguments.temperature)
    asked = given(arguments, ("lengths", "maps", "count", "seed", "far"))
    result = mazes.score_agent(model, env, **asked)
    if arguments.json:
        print(json.dumps(result))
        return
    print(
        f"{result['reader']} with {result['policy']} and {result['slots']} slots on "
        f"{result['env']}: {result['success_rate']:.1f}% of {result['episodes']:,} episodes "
        f"(at most {result['winnable_rate']:.1f}% can be won)"
    )
    for group in ("per_length", "per_split"):
        for name, one in result.get(group, {}).items():
            print(f"{name:>8}  {one['success_rate']:6.1f}%  of {one['episodes']}")
