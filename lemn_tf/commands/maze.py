"""Mazes for `lemn train`, `evaluate` and `play`: pairs of `add_..._arguments` and `run_...`.

lemn train maze --env imaze --reader mqn --policy st-lemn --slots 4 --seed 0 --out RUN
lemn evaluate RUN --env imaze --lengths 4,6,200 --json
lemn evaluate RUN --maps maps.jsonl --json
lemn play RUN --length 40 --out video.gif
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from lemn_tf.commands.common import amount, refuse, whole_number, whole_numbers

PRESETS = Path(__file__).parents[1] / "presets"
HEADINGS = ("north", "east", "south", "west")
TEST_SEED = 20_000_003
"""Seed of the generated maps that results are given for: no training and no validation has them."""
CHANGES = {
    "frames": (whole_number(1), "length of the training, in steps of the environments"),
    "episodes": (whole_number(1), "whole episodes an update"),
    "learning_rate": (amount, "of Adam"),
    "final_rate": (amount, "share of the learning rate left at the end"),
    "entropy": (amount, "weight of the entropy of the actions"),
    "final_entropy": (amount, "the same at the end"),
    "eviction_entropy": (amount, "weight of the entropy of what is forgotten"),
    "guidance": (amount, "weight of a loss that asks for the shortest way; gone half-way"),
    "temperature": (amount, "how the agent plays: softmax(logits / T), 0 for the likeliest action"),
    "clip": (amount, "largest norm of the gradient"),
    "validate_every": (whole_number(1), "updates between two validations"),
}
"""Fields of the recipe that the command line can change."""


def candidates(name: str) -> list[Path]:
    """The files of trained agents that a name stands for: in a run's folder, itself, a preset."""
    path = Path(name)
    places = (path / "model.npz", path, PRESETS / f"{name}.npz")
    return [place for place in places if place.is_file() and place.suffix == ".npz"]


def is_agent(name: str) -> bool:
    """Whether the name is that of a maze agent, so that the functions here apply to it."""
    return bool(candidates(name))


def find(name: str) -> Path:
    """The file of a trained agent by the folder of its run, its own name, or that of a preset."""
    found = candidates(name)
    if not found:
        known = ", ".join(sorted(p.stem for p in PRESETS.glob("*.npz"))) or "none"
        raise ValueError(f"expected a trained maze agent, found none at {name!r}; presets: {known}")
    return found[0]


def load(name: str):
    """A trained agent; see `find`."""
    from lemn_tf.navigation import navigator as maze

    return maze.load(find(name))


# -- train ----------------------------------------------------------------------------------------


def add_train_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `lemn train maze`."""
    parser.add_argument("--env", choices=("imaze", "single-indicator"), default="imaze")
    parser.add_argument("--maps", metavar="F", help="maps to train on (single-indicator)")
    parser.add_argument(
        "--generated", type=whole_number(0), help="maps to generate (1000, or 0 with --maps)"
    )
    parser.add_argument(
        "--large", type=whole_number(0), default=0, help="large maps to generate beside them"
    )
    parser.add_argument(
        "--refresh",
        type=whole_number(0),
        default=500,
        help="updates until new maps are generated",
    )
    parser.add_argument("--reader", choices=("mqn", "frmqn"), default="mqn")
    parser.add_argument("--policy", default="st-lemn", help="retention policy")
    parser.add_argument("--slots", type=whole_number(1), help="N in the paper (4; mazes 5)")
    parser.add_argument("--width", type=whole_number(1), default=32, help="what a policy sees")
    parser.add_argument("--hidden", type=whole_number(1), help="width of h (default a quarter)")
    parser.add_argument("--seed", type=whole_number(0), default=0, help="of everything random")
    parser.add_argument(
        "--start-from",
        metavar="RUN",
        help="go on from a trained agent (folder, file or preset), in smaller steps, unguided",
    )
    for name, (kind, text) in CHANGES.items():
        parser.add_argument("--" + name.replace("_", "-"), type=kind, help=text)
    parser.add_argument("--out", required=True, metavar="RUN", help="folder of the run")


def settings_from(arguments: argparse.Namespace):
    """The `Settings` that the arguments of `lemn train maze` ask for."""
    import dataclasses

    from lemn_tf.navigation.training import Settings, recipe_for

    changes = {name: getattr(arguments, name) for name in CHANGES}
    changes = {name: value for name, value in changes.items() if value is not None}
    generated = arguments.generated
    if generated is None:
        generated = 0 if arguments.maps else 1000
    slots = arguments.slots or (4 if arguments.env == "imaze" else 5)
    start_from = str(find(arguments.start_from)) if arguments.start_from else None
    recipe = recipe_for(arguments.env, arguments.reader, start_from)
    return Settings(
        env=arguments.env,
        maps=arguments.maps,
        generated=generated,
        large=arguments.large,
        refresh=arguments.refresh,
        reader=arguments.reader,
        policy=arguments.policy,
        slots=slots,
        width=arguments.width,
        hidden=arguments.hidden,
        seed=arguments.seed,
        start_from=start_from,
        recipe=dataclasses.replace(recipe, **changes),
    )


def run_train(arguments: argparse.Namespace, jit_compile: bool = True) -> int | None:
    """Trains an agent, or goes on with a run that was stopped."""
    from lemn_tf import loop
    from lemn_tf.navigation.training import train

    settings = settings_from(arguments)

    def show(line):
        print(
            f"{line['frames']:>11,} frames {line['frames_per_second']:>6,}/s  "
            f"training: success {line['success']:5.1f}%, length {line['length']:5.1f}  "
            f"validation: success {line['val_success_rate']:5.1f}% "
            f"(wrong {line['val_wrong_rate']:.1f}%), best {line['best']:.1f}%",
            file=sys.stderr,
            flush=True,
        )

    try:
        train(settings, arguments.out, show, jit_compile)
    except loop.Interrupted as stopped:
        print(f"lemn: {stopped}", file=sys.stderr)
        return 130
    print(f"best agent: {Path(arguments.out) / 'model.npz'}")
    return None


# -- evaluate -------------------------------------------------------------------------------------


def add_evaluate_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `lemn evaluate` for mazes, beside RUN and --json."""
    parser.add_argument("--env", choices=("imaze", "single-indicator"), help="mazes to play")
    parser.add_argument(
        "--lengths", type=whole_numbers(3), help="of I-Mazes, such as 4,6,200 (default the paper's)"
    )
    parser.add_argument("--maps", metavar="F", help="a file of maps to play, all of them")
    parser.add_argument(
        "--temperature",
        type=amount,
        metavar="T",
        help="actions drawn from softmax(logits / T), 0 for the likeliest (default the agent's)",
    )
    parser.add_argument(
        "--count", type=whole_number(1), help="random mazes to generate of each size (default 200)"
    )
    parser.add_argument(
        "--seed", type=whole_number(0), help="of the generated maps (default that of the tables)"
    )


def score(
    model,
    env: str = "imaze",
    lengths=None,
    maps: str | None = None,
    count: int = 200,
    seed: int = TEST_SEED,
):
    """Plays mazes from every start heading.

    Args:
        model: the agent.
        env: "imaze" or "single-indicator".
        lengths: of I-Mazes; default those of the paper's test.
        maps: file of maps, played instead.
        count: maps to generate for each split of "single-indicator" without a file.
        seed: of those maps.

    Returns:
        A dict with `success_rate` in percent, `episodes`, what `Scores.summary` has beside them,
        and the same by length or split.
    """
    import numpy as np

    from lemn_tf.mazes import TEST_LENGTHS, build, imaze_world, load_jsonl, random_mazes
    from lemn_tf.navigation.evaluation import evaluate

    groups: dict[str, np.ndarray] = {}
    if maps is not None:
        world, by = build(load_jsonl(maps)), None
    elif env == "imaze":
        lengths = list(lengths or TEST_LENGTHS)
        world, by = imaze_world(lengths), "per_length"
        each = len(world.mazes) // len(lengths)
        groups = {str(n): np.arange(i * each, (i + 1) * each) for i, n in enumerate(lengths)}
    else:
        made = [random_mazes(count, seed, split) for split in ("test", "large")]
        world, by = build(made[0] + made[1]), "per_split"
        groups = {"test": np.arange(count), "large": np.arange(count, 2 * count)}
    scores = evaluate(model, world, jit_compile=False)
    result = {
        "env": env if maps is None else str(maps),
        "reader": model.settings["reader"],
        "policy": model.memory.policy.name,
        "slots": model.memory.slots,
        "temperature": model.temperature,
        **scores.summary(),
    }
    if by is not None:
        result[by] = {name: scores.summary(rows) for name, rows in groups.items()}
    return result


def run_evaluate(arguments: argparse.Namespace) -> None:
    """Plays mazes with a trained agent and prints how many it solved."""
    names = ("data", "slots", "policy", "store_questions", "renamings")
    refuse(arguments, names, "models that answer questions")
    if arguments.maps and arguments.lengths:
        raise ValueError("expected either lengths of I-Mazes or a file of maps, got both")
    env = arguments.env or ("single-indicator" if arguments.maps else "imaze")
    if arguments.lengths and env != "imaze":
        raise ValueError("expected lengths with imaze only")
    if (arguments.maps or env == "imaze") and (arguments.count or arguments.seed is not None):
        raise ValueError("expected --count and --seed with generated random mazes only")
    model = load(arguments.run)
    if arguments.temperature is not None:
        model = model.playing_at(arguments.temperature)
    count = arguments.count or 200
    seed = TEST_SEED if arguments.seed is None else arguments.seed
    result = score(model, env, arguments.lengths, arguments.maps, count, seed)
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


# -- play -----------------------------------------------------------------------------------------


def add_play_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `lemn play`."""
    parser.add_argument("run", metavar="RUN", help="folder of a run, .npz file, or preset")
    parser.add_argument("--length", type=whole_number(3), help="of an I-Maze (default 9)")
    parser.add_argument("--indicator", choices=("yellow", "lime"), default="lime")
    parser.add_argument("--maps", metavar="F", help="play a map of this file instead")
    parser.add_argument("--map", type=whole_number(0), default=0, help="which one, from 0")
    parser.add_argument("--heading", choices=HEADINGS, default="north", help="at the start")
    parser.add_argument("--milliseconds", type=whole_number(20), default=350, help="a step")
    parser.add_argument("--out", required=True, metavar="F", help="the .gif to write")


def run_play(arguments: argparse.Namespace) -> None:
    """Films one episode of a trained agent."""
    from lemn_tf.mazes import build, imaze_world, load_jsonl
    from lemn_tf.navigation.video import film

    if arguments.maps and arguments.length:
        raise ValueError("expected either the length of an I-Maze or a file of maps, got both")
    model = load(arguments.run)
    if arguments.maps:
        mazes = load_jsonl(arguments.maps)
        if arguments.map >= len(mazes):
            raise ValueError(f"expected a map 0 to {len(mazes) - 1}, got {arguments.map}")
        world = build([mazes[arguments.map]])
    elif arguments.map:
        raise ValueError("expected the number of a map with a file of maps only")
    else:
        world = imaze_world(arguments.length or 9, arguments.indicator[0].upper())
    heading = HEADINGS.index(arguments.heading)
    told = film(model, world, arguments.out, 0, heading, arguments.milliseconds)
    ending = "the right goal" if told["success"] else "not the right goal"
    print(f"wrote {arguments.out}: {told['steps']} steps to {ending}")
