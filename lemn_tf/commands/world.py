"""Gymnasium worlds for `lemn train`, `lemn evaluate` and `lemn reproduce`.

lemn train world --env popgym-RepeatFirstEasy-v0 --slots 6 --policy st-lemn --out RUN
lemn evaluate RUN --env popgym-RepeatFirstEasy-v0 --count 200 --json
lemn reproduce worlds --envs popgym-RepeatFirstEasy-v0 --rows st-lemn,fifo
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lemn_tf import runs
from lemn_tf.commands import maze
from lemn_tf.commands.common import (
    add_table_arguments,
    amount,
    given,
    refuse,
    run_table,
    slot_count,
    usable,
    whole_number,
    words,
)
from lemn_tf.experiments.worlds_cells import EXAMS, ROWS, WorldCell, plan

if TYPE_CHECKING:
    from lemn_tf.navigation.agent import MemoryAgent

GUIDE = ("guidance", "guided")  # in worlds nobody knows the way
CHANGES = {name: kind for name, kind in maze.CHANGES.items() if name not in GUIDE} | {
    "passes": (whole_number(1), "how often an update learns from its episodes"),
    "practice": (amount, "weight of what is learned from random memories"),
    "hindsight": (amount, "weight of what to forget judged in hindsight"),
}
"""Fields of the recipe that the command line can change."""


def add_train_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `lemn train world`."""
    add = parser.add_argument
    add("--env", required=True, metavar="ENV_ID", help="such as popgym-RepeatFirstEasy-v0")
    add_import(parser)
    add("--reader", choices=("mqn", "frmqn", "lstm"), default="mqn", help="lstm reads no memory")
    add("--policy", default="st-lemn", help="retention policy")
    add("--slots", type=slot_count, default=4, help="N in the paper")
    add("--units", type=whole_number(4), default=64, help="width of context, keys and values")
    add("--width", type=whole_number(1), default=32, help="what a policy sees")
    add("--hidden", type=whole_number(1), help="width of h (default a quarter)")
    add("--longest", type=whole_number(1), default=1000, help="steps after which episodes are cut")
    add("--validation", type=whole_number(1), default=64, help="episodes to choose the best on")
    add("--seed", type=whole_number(0), default=0, help="of everything random")
    for name, (kind, text) in CHANGES.items():
        add("--" + name.replace("_", "-"), type=kind, help=text)
    add("--out", required=True, metavar="RUN", help="folder of the run")


def add_import(parser: argparse._ActionsContainer) -> None:
    """The option for worlds that another package registers."""
    about = "import this first, installed or in the current folder: it registers the environment"
    parser.add_argument("--import", dest="modules", action="append", metavar="MODULE", help=about)


def check_train(arguments: argparse.Namespace) -> None:
    """Raises unless policy and world are known; what is imported first may add to both."""
    check_modules(arguments.modules or ())
    if not arguments.modules:
        usable(arguments.policy)
        check_world(arguments.env)


def check_modules(modules: Sequence[str]) -> None:
    """Raises unless there are such modules; from now on the current folder is searched too."""
    if modules and "" not in sys.path:
        sys.path.append("")  # the current folder, after all that is installed
    for module in modules:
        try:
            found = importlib.util.find_spec(module)
        except ModuleNotFoundError:  # of a package that it would be in
            found = None
        if found is None:
            raise ValueError(f"--import: there is no module {module!r}")


def check_world(env: str) -> None:
    """Raises unless there is such a world, as far as that is known without its own package."""
    from lemn_tf.navigation import adapters

    adapters.check(env)


def run_train(arguments: argparse.Namespace) -> None:
    """Trains an agent, or goes on with a run that was stopped."""
    from lemn_tf.experiments import worlds
    from lemn_tf.navigation.recipe import WORLD_RECIPE

    recipe = dataclasses.replace(WORLD_RECIPE, **given(arguments, CHANGES))
    own = {"modules": tuple(arguments.modules or ()), "recipe": recipe}
    settings = worlds.WorldSettings(**given(arguments, worlds.WorldSettings) | own)
    worlds.train_world(settings, arguments.out, show_progress)
    print(f"best agent: {Path(arguments.out) / 'model.keras'}")


def show_progress(line: dict[str, Any]) -> None:
    """Prints a line of the history of a training."""
    print(
        f"{line['frames']:>11,} frames {line['frames_per_second']:>6,}/s  "
        f"training: return {line['return']:7.3f}, length {line['length']:6.1f}  "
        f"validation: return {line['val_return']:7.3f}, best {line['best']:.3f}",
        file=sys.stderr,
        flush=True,
    )


def check_evaluate(arguments: argparse.Namespace) -> str:
    """The world to play; raises if there is none, or for options that are not for such agents."""
    names = ("data", "store_questions", "renamings")
    refuse(arguments, names, "models that answer questions")
    refuse(arguments, ("lengths", "maps", "far"), "agents that walk mazes")
    made = runs.config(arguments.run)
    env = arguments.env or made.get("env")
    if env is None:
        raise ValueError("say which world to play: --env ENV_ID")
    modules = arguments.modules or made.get("modules", ())
    check_modules(modules)
    if not modules:
        check_world(env)
    return env


def run_evaluate(arguments: argparse.Namespace, agent: MemoryAgent) -> None:
    """Plays episodes of a world with a trained agent, and prints the scores."""
    from lemn_tf.experiments import worlds

    made, env = runs.config(arguments.run), check_evaluate(arguments)
    if arguments.temperature is not None:
        agent = agent.playing_at(arguments.temperature)
    modules = arguments.modules or made.get("modules", ())
    asked = {"episodes": arguments.count, "seed": arguments.seed, "longest": made.get("longest")}
    known = {name: value for name, value in asked.items() if value is not None}
    result = worlds.score_world(agent, env, modules, **known)
    if arguments.json:
        print(json.dumps(result))
        return
    print(
        f"{result['reader']} with {result['policy']} and {result['slots']} slots on {env}: return "
        f"{result['return']:.3f} ({result['worst']:.3f} to {result['best']:.3f}), above 0 in "
        f"{result['positive_rate']:.1f}% of {result['episodes']:,} episodes"
    )


def add_reproduce_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `lemn reproduce worlds`."""
    parser.add_argument("--envs", type=words, help="some of the worlds (default all)")
    parser.add_argument("--rows", type=words, help="of st-lemn, fifo, lifo, lstm (default all)")
    parser.add_argument("--seeds", type=whole_number(1), default=3, help="trainings of each")
    parser.add_argument("--frames", type=whole_number(1), help="another length of the trainings")
    add_table_arguments(parser, out="runs/worlds")


def cells_of(arguments: argparse.Namespace) -> list[WorldCell]:
    """The trainings that were asked for; raises if a name is unknown."""
    if arguments.presets:
        raise ValueError("--presets: no agent of these worlds is a preset")
    return plan(arguments.envs or list(EXAMS), arguments.rows or list(ROWS), arguments.seeds)


def run_reproduce(arguments: argparse.Namespace) -> int | None:
    """Runs what has no result yet, and writes the report."""
    from lemn_tf.experiments import worlds_table as exam

    cells = cells_of(arguments)
    table = exam.WorldTable(arguments.out, arguments.results, arguments.frames, show_progress)

    def report() -> None:
        print(f"wrote {exam.write_report(Path(arguments.results))}")

    return run_table(table, cells, arguments, report)
