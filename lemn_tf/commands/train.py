"""`lemn train`: train a model and keep the run in a folder."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lemn_tf import recipes, retention, runs
from lemn_tf.commands import documents, maze, world
from lemn_tf.commands.common import (
    amount,
    given,
    percent,
    slot_count,
    slot_counts,
    stories,
    there,
    usable,
    whole_number,
    words,
)
from lemn_tf.experiments.babi_settings import BabiSettings
from lemn_tf.files import place_for

if TYPE_CHECKING:
    from lemn_tf.learning.workers import Workers

OF_LEARNING = ("trainer", "entropy", "no_room", "sizes")
"""Options that only make sense for a policy that learns."""
OF_POLICIES = ("hidden", "shuffle")
"""Options that are passed on to the policies that take them."""


def lengths(text: str) -> dict[str, int]:
    """An argparse type: "reader=24000,polish=40000" as a dict."""
    pairs = [pair.partition("=") for pair in words(text)]
    if not pairs or not all(equals for _, equals, _ in pairs):
        raise argparse.ArgumentTypeError(f"expected NAME=EPISODES,...; got {text!r}")
    return {name.strip(): whole_number(1)(number) for name, _, number in pairs}


def check_policy(name: str, arguments: argparse.Namespace) -> None:
    """Raises unless one can train with this policy and it can use the options given."""
    usable(name)
    for option in (*OF_LEARNING, *OF_POLICIES):
        value = getattr(arguments, option)
        if value is None or value is False or value == ():  # 0 is a value like any other
            continue
        fit = [
            known
            for known in retention.names()
            if (
                retention.facts(known).learns
                if option in OF_LEARNING
                else option in retention.facts(known).options
            )
        ]
        if name not in fit:
            flag = "--" + option.replace("_", "-")
            raise ValueError(f"{flag}: meant for {', '.join(fit)}, got {name}")


def check_babi(arguments: argparse.Namespace) -> None:
    """Raises unless the files are there, and the options fit each other and the recipe."""
    there(arguments.train, arguments.valid, arguments.roles)
    if arguments.start_from:
        runs.check_reader(arguments.start_from)
    check_policy(arguments.policy, arguments)
    if arguments.roles and arguments.no_renaming:
        raise ValueError("--roles: says what is renamed, but --no-renaming was given too")
    if arguments.sizes and arguments.driver:
        raise ValueError("--driver: plays with one size of memory, but --sizes was given too")
    shards = shards_for(arguments, arguments.workers or 1)
    for phase in settings_from(arguments).phases():
        recipes.check_shards(shards, phase.batch_size)
    stories(arguments.train, arguments.valid)


def shards_for(arguments: argparse.Namespace, count: int) -> int:
    """The parts of a batch for a number of workers; raises unless they can share them."""
    if arguments.driver and count > 1:
        raise ValueError("--driver: draws on its own, so it cannot go with several workers")
    shards = arguments.shards or max(2, count)
    if shards % count:
        raise ValueError(f"expected shards that {count} workers can share, got {shards}")
    return shards


def settings_from(arguments: argparse.Namespace) -> BabiSettings:
    """The settings that the options ask for."""
    changes = {"reward": arguments.reward}
    if arguments.entropy is not None:
        changes["entropy"] = arguments.entropy
    own: dict[str, Any] = {
        "rename": not arguments.no_renaming,
        "room": not arguments.no_room,
        "competent": arguments.competent or None,
        "episodes": arguments.phases,
        "changes": changes,
    }
    if arguments.units is not None:
        own["wider"] = None
    settings = BabiSettings(**given(arguments, BabiSettings) | own)
    return settings.lasting(arguments.episodes) if arguments.episodes else settings


def add_babi_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `lemn train babi`."""
    add = parser.add_argument
    add("--train", required=True, metavar="F", help="stories to train on")
    add("--valid", required=True, metavar="F", help="stories for choosing the best weights")
    add("--policy", default="st-lemn", help="retention policy")
    add("--slots", type=slot_count, default=5, help="N in the paper")
    drawn = "sizes of the memory, such as 3,5,7,10,20: each update of the policy draws one of them"
    add("--sizes", type=slot_counts, default=(), metavar="N,N,...", help=drawn)
    add("--recipe", choices=("lemn", "paper"), default="lemn", help="ours, or the paper's")
    trainers = ("a2c", "hindsight", "both")
    add("--trainer", choices=trainers, help="what trains the policy; default the recipe's")
    rewards = ("sign", "probability")
    rewarded = "of a2c: +1 / -1 for an answer, or the probability of the right one"
    add("--reward", choices=rewards, default="sign", help=rewarded)
    add("--entropy", type=amount, help="weight of the entropy bonus at the beginning")
    taught = "to train the policy for; default the recipe's"
    add("--episodes", type=whole_number(1), help=taught)
    others = "other lengths of phases, such as 'reader=24000,polish=40000'"
    add("--phases", type=lengths, default={}, metavar="NAME=EPISODES,...", help=others)
    reach = "how many facts back the reader's random memories reach; 30 for stories of 75 facts"
    add("--window", type=whole_number(1), help=reach)
    width = "d in the paper; default 20, and 50 if that is too narrow for the reader"
    add("--units", type=whole_number(4), help=width)
    enough = "percent of wrong answers with everything in memory from which another reader is tried"
    add("--competent", type=percent, default=5.0, help=f"{enough}; 0 for never (%(default)s)")
    add("--hidden", type=whole_number(1), help="width of h (default d/4)")
    add("--shuffle", action="store_true", help="the appendix's ablation")
    add("--store-questions", action="store_true", help="questions enter the stream too")
    add("--no-renaming", action="store_true", help="train on the stories as they are")
    alike = "words that may replace each other, one role per line; default: found in the stories"
    add("--roles", metavar="FILE", help=alike)
    own = "give the policy its own number of slots from the start, not ten at first"
    add("--no-room", action="store_true", help=own)
    further = "go on from a trained model (folder, file or preset) with the recipe's last phase"
    add("--start-from", metavar="RUN", help=further)
    add("--seed", type=whole_number(0), default=0, help="of everything random")
    parts = "parts of a batch that cores or workers share (default 2, or one for each worker)"
    add("--shards", type=whole_number(1), help=parts)
    several = "processes that train together; on several machines TF_CONFIG says who they are"
    add("--workers", type=whole_number(1), help=several)
    driven = "a TF-Agents driver reads the stories step by step (slower, not exactly resumable)"
    add("--driver", action="store_true", help=driven)
    add("--out", required=True, metavar="RUN", help="folder of the run")


class Train:
    """Trains a model by a recipe; the same command again resumes a run that was stopped."""

    name = "train"
    help = "train a model; the same command again resumes a run that was stopped"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        tasks = parser.add_subparsers(dest="task", metavar="task", required=True)
        add_babi_arguments(tasks.add_parser("babi", help="question answering on text streams"))
        asked = tasks.add_parser("documents", help="questions about documents, answered by a span")
        documents.add_train_arguments(asked)
        maze.add_train_arguments(tasks.add_parser("maze", help="finding the way by a colour"))
        world.add_train_arguments(tasks.add_parser("world", help="any Gymnasium environment"))

    def check(self, arguments: argparse.Namespace) -> None:
        """Raises if something to read from is missing, or options do not fit each other."""
        checks = {
            "babi": check_babi,
            "documents": documents.check_train,
            "maze": maze.check_train,
            "world": world.check_train,
        }
        checks[arguments.task](arguments)
        place_for(arguments.out)

    def run(self, arguments: argparse.Namespace) -> int | None:
        from lemn_tf.experiments import babi, crew

        others = {"maze": maze, "documents": documents, "world": world}
        if arguments.task in others:
            others[arguments.task].run_train(arguments)
            return None
        settings, out = settings_from(arguments), Path(arguments.out)
        count = crew.size(arguments.workers)  # TF_CONFIG has a say in it
        shards = shards_for(arguments, count)
        for phase in settings.phases():
            recipes.check_shards(shards, phase.batch_size)
        with crew.gathered(count, arguments.given, out) as workers:
            if workers.rank:
                babi.assist(settings, workers, shards)
            else:
                self._lead(settings, out, shards, workers)
        return None

    def _lead(self, settings: BabiSettings, out: Path, shards: int, workers: Workers) -> None:
        """Trains, as the only or the first worker."""
        from lemn_tf.commands.progress import Bar, plan
        from lemn_tf.experiments import babi

        phases = settings.phases()
        names = [phase.name for phase in phases]
        later = {name: sum(one.episodes for one in phases[i + 1 :]) for i, name in enumerate(names)}
        policy = sum(phase.episodes for phase in phases if phase.objectives)
        print(plan(phases), file=sys.stderr)
        board = babi.boards(settings, out)
        babi.train_model(
            settings,
            out,
            shards,
            lambda phase, index: [
                Bar(phase, later.get(phase.name, policy)),  # a reader may get an extra phase
                *board(phase, index),
            ],
            workers=workers,
        )
        print(f"best model: {out / 'model.keras'}")
