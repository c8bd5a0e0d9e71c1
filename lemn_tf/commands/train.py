"""`lemn train`: train a model and keep the run in a folder."""

from __future__ import annotations

import argparse
import sys

from lemn_tf.commands import maze
from lemn_tf.commands.common import amount, whole_number, words

OF_LEARNING = ("trainer", "entropy", "no_room")
"""Options that only a policy that learns has a use for."""
OF_POLICIES = ("hidden", "shuffle")
"""Options that are passed on to the policies that take them."""


def lengths(text: str) -> dict[str, int]:
    """An argparse type: "reader=24000,polish=40000" as a dict."""
    pairs = [pair.partition("=") for pair in words(text)]
    return {name.strip(): whole_number(1)(number) for name, _, number in pairs}


def check_policy(name: str, arguments: argparse.Namespace) -> None:
    """Raises unless the policy can be trained with, and has a use for the options given."""
    from lemn_tf import retention

    if retention.get(name).clairvoyant:
        raise ValueError(f"{name} goes by labels: expected a policy that works without them")
    for option in (*OF_LEARNING, *OF_POLICIES):
        given = getattr(arguments, option)
        if given is None or given is False:
            continue
        if option in OF_LEARNING:
            fit = [known for known in retention.names() if retention.get(known).learns]
        else:
            fit = [
                known for known in retention.names() if option in retention.find(known).options()
            ]
        if name not in fit:
            flag = "--" + option.replace("_", "-")
            raise ValueError(f"{flag}: meant for {', '.join(fit)}, got {name}")


class Train:
    """Trains a model by a recipe; the same command again resumes a run that was stopped."""

    name = "train"
    help = "train a model; the same command again resumes a run that was stopped"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        tasks = parser.add_subparsers(dest="task", metavar="task", required=True)
        babi = tasks.add_parser("babi", help="question answering on text streams")
        babi.add_argument("--train", required=True, metavar="F", help="stories to train on")
        babi.add_argument("--valid", required=True, metavar="F", help="stories to choose by")
        babi.add_argument("--policy", default="st-lemn", help="retention policy")
        babi.add_argument("--slots", type=whole_number(1), default=5, help="N in the paper")
        babi.add_argument(
            "--recipe", choices=("lemn", "paper"), default="lemn", help="ours, or the paper's"
        )
        babi.add_argument(
            "--trainer",
            choices=("a2c", "hindsight", "both"),
            help="what trains the policy; default the recipe's",
        )
        babi.add_argument(
            "--reward",
            choices=("sign", "probability"),
            default="sign",
            help="of a2c: +1 / -1 an answer, or the probability of the right one",
        )
        babi.add_argument(
            "--entropy", type=amount, help="weight of the entropy bonus at the beginning"
        )
        babi.add_argument(
            "--episodes", type=whole_number(1), help="to train the policy for; default the recipe's"
        )
        babi.add_argument(
            "--phases",
            type=lengths,
            default={},
            metavar="NAME=EPISODES,...",
            help="other lengths of phases, such as 'reader=24000,polish=40000'",
        )
        babi.add_argument(
            "--window",
            type=whole_number(1),
            help="facts back that the reader's random memories reach; 30 for stories of 75 facts",
        )
        babi.add_argument("--units", type=whole_number(4), default=20, help="d in the paper")
        babi.add_argument("--hidden", type=whole_number(1), help="width of h (default d/4)")
        babi.add_argument("--shuffle", action="store_true", help="the appendix's ablation")
        babi.add_argument(
            "--store-questions", action="store_true", help="questions enter the stream too"
        )
        babi.add_argument(
            "--no-renaming", action="store_true", help="train on the stories as they are"
        )
        babi.add_argument(
            "--no-room",
            action="store_true",
            help="the policy has its own slots from the beginning, not ten at first",
        )
        babi.add_argument("--seed", type=whole_number(0), default=0, help="of everything random")
        babi.add_argument("--shards", type=whole_number(1), default=2, help="cores to use")
        babi.add_argument(
            "--driver",
            action="store_true",
            help="let a driver of TF-Agents read the stories, move by move (slower, not exactly "
            "resumable)",
        )
        babi.add_argument("--out", required=True, metavar="RUN", help="folder of the run")
        maze.add_train_arguments(tasks.add_parser("maze", help="finding the way by a colour seen"))

    def run(self, arguments: argparse.Namespace) -> int | None:
        if arguments.task == "maze":
            return maze.run_train(arguments)
        return self._run_babi(arguments)

    def _run_babi(self, arguments: argparse.Namespace) -> int | None:
        from pathlib import Path

        import keras

        from lemn_tf import loop
        from lemn_tf.experiments import babi
        from lemn_tf.learning.training import check_shards
        from lemn_tf.progress import Bar, EvictionAges

        changes = {"reward": arguments.reward}
        if arguments.entropy is not None:
            changes["entropy"] = arguments.entropy
        settings = babi.Settings(
            train=arguments.train,
            valid=arguments.valid,
            policy=arguments.policy,
            slots=arguments.slots,
            recipe=arguments.recipe,
            trainer=arguments.trainer,
            episodes=arguments.phases,
            units=arguments.units,
            hidden=arguments.hidden,
            shuffle=arguments.shuffle,
            store_questions=arguments.store_questions,
            rename=not arguments.no_renaming,
            room=not arguments.no_room,
            window=arguments.window,
            seed=arguments.seed,
            driver=arguments.driver,
            changes=changes,
        )
        if arguments.episodes:
            settings = settings.lasting(arguments.episodes)
        # What is wrong with the request is said before any file is read.
        check_policy(settings.policy, arguments)
        for phase in settings.phases():
            check_shards(arguments.shards, phase.batch_size)
        logs = Path(arguments.out) / "logs"

        def callbacks(phase, index):
            folder = str(logs / f"{index}-{phase.name.replace(' ', '-')}")
            shown = [Bar(phase), keras.callbacks.TensorBoard(folder, write_graph=False)]
            if phase.objectives:
                shown.append(EvictionAges(folder, one_batch))
            return shown

        def one_batch(model):
            data = babi.Stories(settings.valid, model.vocabulary, settings.store_questions)
            return next(iter(data.batches(64, buckets=1)))

        try:
            babi.train(settings, arguments.out, arguments.shards, callbacks)
        except loop.Interrupted as stopped:
            print(f"lemn: {stopped}", file=sys.stderr)
            return 130
        print(f"best model: {Path(arguments.out) / 'model.keras'}")
