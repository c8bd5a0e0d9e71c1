"""What all trainings of agents share, in mazes or in any other world: settings and run."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any, ClassVar

from lemn_tf import loop
from lemn_tf.navigation.agent import MemoryAgent
from lemn_tf.navigation.recipe import WORLD_RECIPE, Recipe
from lemn_tf.navigation.training import AgentTrainee
from lemn_tf.seeing.boards import Board
from lemn_tf.seeing.subjects import Subject

VALIDATION_SEED, TEST_SEED = 10_000_019, 20_000_003
"""Seeds of the maps or episodes on which the best agent is chosen, and of those for the results; no
training uses either."""
PICTURED = 10
"""Validations between two looks into the memory for TensorBoard."""
Show = Callable[[dict[str, Any]], None]
"""Called with every line of the history of a training."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class AgentSettings:
    """How an agent is trained; written to the folder of its run.

    Attributes:
        reader, policy, slots, units, width, hidden: of the `MemoryAgent`.
        seed: of everything random.
        recipe: how it is trained.
    """

    task: ClassVar[str]

    reader: str = "mqn"
    policy: str = "st-lemn"
    slots: int = 4
    units: int = 64
    width: int = 32
    hidden: int | None = None
    seed: int = 0
    recipe: Recipe = WORLD_RECIPE

    @property
    def sizes(self) -> dict[str, Any]:
        """The arguments of `MemoryAgent` that all agents have."""
        names = ("reader", "policy", "slots", "units", "width", "hidden")
        given = {name: getattr(self, name) for name in names}
        return {**given, "temperature": self.recipe.temperature}

    def config(self) -> dict[str, Any]:
        """As it is written to the folder of a run."""
        return json.loads(json.dumps({"task": self.task, **dataclasses.asdict(self)}))


def run_training(
    trainee: AgentTrainee,
    settings: AgentSettings,
    run: loop.Run | None,
    show: Show,
    subject: Subject | None = None,
) -> None:
    """Trains to the end, or goes on with a run.

    Args:
        trainee: the agent in training.
        settings: how it was made.
        run: keeps the training, with the board for TensorBoard; None keeps nothing.
        show: is called with every line of the history.
        subject: the agent in the world that it is validated in, for the board.
    """
    if run is None:
        loop.run_loop(trainee, None, show)
        return
    measure = "return" if subject is not None and subject.rising else "error"
    board = Board(run.folder / "logs", settings.config(), measure, recall=measure == "error")

    def told(line: dict[str, Any]) -> None:
        board.scalars(line, line["frames"])
        validations = line["update"] // settings.recipe.validate_every
        if subject is not None and (validations % PICTURED == 1 or trainee.finished):
            board.look(subject, line["frames"])
        show(line)

    loop.run_loop(trainee, run, told)


def who(agent: MemoryAgent) -> dict[str, Any]:
    """What a score says about the agent that played."""
    return {
        "reader": agent.settings["reader"],
        "policy": agent.memory.policy.name,
        "slots": agent.memory.slots,
        "temperature": agent.temperature,
    }
