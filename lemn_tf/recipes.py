"""Recipes: what is trained in which order, as data that a user can read and change.

A recipe is a list of phases. `lemn` is ours: the reader first learns to answer at all (linear
start, random parts of whole stories), then policy and reader learn together, the reader still half
of the time on random parts so that the two do not co-adapt. The policy first learns with ten
slots, then with fewer: it can see what two facts are worth together only while both are still in
memory. At first it learns from the stories as they are; at the end names are exchanged, which
keeps it from learning them by heart. `a2c` replaces it when the actor-critic alone trains the
policy. It learns with five slots, where enough answers are wrong to learn from, for a long time at
a constant rate, and then at a falling rate with its own number of slots. `paper` is the procedure
of the paper: the reader is pretrained under FIFO, then everything learns jointly by actor-critic.
The paper has 50,000 and 200,000 steps and does not say how many episodes a step has; ours are
12,500 and 6,250 updates of 32 episodes.

>>> [phase.name for phase in get("lemn")]
['linear start', 'reader', 'roomy', 'policy', 'polish']
>>> get("lemn", episodes={"policy": 1000})[3].episodes, get("paper")[0].acting
(1000, 'fifo')
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lemn_tf.retention import Facts, RetentionPolicy


@dataclasses.dataclass(frozen=True)
class Phase:
    """One stretch of training.

    Attributes:
        name: shown while it runs.
        episodes: its length.
        learning_rate: of Adam, at its beginning.
        final_rate: the share of it that is left at the end; it falls along a cosine.
        batch_size: episodes in an update.
        clip: largest norm of the whole gradient.
        linear: attention without softmax (linear start).
        on_policy: weight of the reader's loss on the memories a policy leaves it.
        on_subsets: weight of the reader's loss on random parts of the whole past.
        keep_share: range of the share of the past that such a part keeps.
        window: how many items back such a part reaches; None for the whole past.
        acting: another policy that acts in this phase, such as "fifo"; None for the model's own.
        slots: size of the memory while the phase trains, if larger than the model's own.
        at_most: size of the memory while the phase trains, if smaller than the model's own.
        sizes: several sizes of the memory, of which each update draws one; empty for one size.
        objectives: what trains the policy: "hindsight", "a2c", both or none.
        discount, entropy, final_entropy: of the objectives; entropy falls linearly to its end.
        reward: of the actor-critic, "sign" (+1 / -1 for an answer) or "probability".
        rollouts: how often an update plays each of its stories; the actor-critic then compares an
            action with the other rollouts of the same story.
        rename: whether names are exchanged at random, if the data allows it.
    """

    name: str
    episodes: int
    learning_rate: float = 3e-3
    final_rate: float = 1.0
    batch_size: int = 32
    clip: float = 40.0
    linear: bool = False
    on_policy: float = 0.5
    on_subsets: float = 0.5
    keep_share: tuple[float, float] = (0.5, 1.0)
    window: int | None = None
    acting: str | None = None
    slots: int | None = None
    at_most: int | None = None
    sizes: tuple[int, ...] = ()
    objectives: tuple[str, ...] = ()
    discount: float = 0.98
    entropy: float = 0.1
    final_entropy: float | None = None
    reward: str = "sign"
    rollouts: int = 1
    rename: bool = False


_READER_FIRST = (
    Phase("linear start", 32_000, linear=True, on_policy=0.0, on_subsets=1.0),
    Phase("reader", 48_000, on_policy=0.0, on_subsets=1.0),
)
_POLICY_NEXT = (
    Phase("roomy", 40_000, objectives=("hindsight",), slots=10),
    Phase("policy", 40_000, objectives=("hindsight",)),
    Phase(
        "polish",
        80_000,
        objectives=("hindsight",),
        final_rate=0.03,
        final_entropy=0.02,
        rename=True,
    ),
)
_ACTOR_CRITIC = Phase(
    "policy", 160_000, objectives=("a2c",), discount=0.95, entropy=0.03, rollouts=4, at_most=5
)

RECIPES = {
    "lemn": (*_READER_FIRST, *_POLICY_NEXT),
    "a2c": (
        *_READER_FIRST,
        _ACTOR_CRITIC,
        dataclasses.replace(
            _ACTOR_CRITIC,
            name="anneal",
            episodes=40_000,
            at_most=None,
            final_rate=0.03,
            final_entropy=0.01,
        ),
    ),
    "paper": (
        Phase("fifo", 400_000, 1e-3, acting="fifo", on_policy=1.0, on_subsets=0.0),
        Phase(
            "joint",
            200_000,
            1e-3,
            on_policy=1.0,
            on_subsets=0.0,
            objectives=("a2c",),
            discount=0.95,
            entropy=0.01,
        ),
    ),
}
"""The known recipes by name."""

RESTART = 1_000_003
"""Added to a seed when a training starts again; larger than any seed in use."""

WIDE = ("a2c",)
"""Recipes under which a policy with an h makes it as wide as d, unless another width is given."""


def chosen(recipe: str, trainer: str | None = None) -> str:
    """The name of the recipe for a trainer: the actor-critic alone has one of its own.

    Example:

    >>> chosen("lemn"), chosen("lemn", "a2c"), chosen("paper", "a2c")
    ('lemn', 'a2c', 'paper')
    """
    return "a2c" if (recipe, trainer) == ("lemn", "a2c") else recipe


def suited(recipe: str, policy: RetentionPolicy | Facts) -> dict[str, Any]:
    """The policy's own changes to a recipe (`policy.suited`).

    The paper's procedure is not changed.

    Example:

    >>> from lemn_tf import retention
    >>> suited("lemn", retention.facts("im-lemn")), suited("paper", retention.get("im-lemn"))
    ({'entropy': 0.5}, {})
    """
    return {} if recipe == "paper" else dict(policy.suited)


def get(
    recipe: str | tuple[Phase, ...],
    trainer: str | None = None,
    episodes: dict[str, int] | None = None,
    slots: float = 0,
    **changes,
) -> tuple[Phase, ...]:
    """A recipe by name, with changes.

    Args:
        recipe: a name in `RECIPES`, or the phases themselves.
        trainer: "a2c", "hindsight" or "both" for the phases that train the policy.
        episodes: new lengths by name of phase.
        slots: of the memory. Phases with extra room are left out if they would not have more
            slots, and the next phase gets their episodes; 0 keeps them all.
        **changes: new values for the fields of those phases that train the policy.
    """
    if isinstance(recipe, str):
        if recipe not in RECIPES:
            raise ValueError(f"unknown recipe {recipe!r}; known are {', '.join(RECIPES)}")
        recipe = RECIPES[recipe]
    trainers = {"a2c": ("a2c",), "hindsight": ("hindsight",), "both": ("hindsight", "a2c")}
    if trainer is not None and trainer not in trainers:
        raise ValueError(f"unknown trainer {trainer!r}; known are {', '.join(trainers)}")
    recipe = _fitting(recipe, slots)
    known, episodes = {phase.name for phase in recipe}, episodes or {}
    for name in episodes:
        if name not in known:
            raise ValueError(
                f"this recipe has no phase {name!r} for such a policy and memory; it has "
                f"{sorted(known)}"
            )
    phases = []
    for phase in recipe:
        if phase.objectives:
            objectives = trainers[trainer] if trainer else phase.objectives
            phase = dataclasses.replace(phase, objectives=objectives, **changes)
        phase = dataclasses.replace(phase, episodes=episodes.get(phase.name, phase.episodes))
        phases.append(phase)
    return tuple(phases)


def _fitting(recipe: tuple[Phase, ...], slots: float) -> tuple[Phase, ...]:
    phases, spare = [], 0
    for phase in recipe:
        if phase.slots is not None and phase.slots <= slots:
            spare += phase.episodes
        else:
            phases.append(dataclasses.replace(phase, episodes=phase.episodes + spare))
            spare = 0
    return tuple(phases)


def reader_phases(recipe: str | tuple[Phase, ...]) -> int:
    """How many phases of a recipe come before the policy learns.

    Example:

    >>> reader_phases("lemn"), reader_phases("paper")
    (2, 1)
    """
    return next(i for i, phase in enumerate(get(recipe)) if phase.objectives)


def settled(phases: tuple[Phase, ...], first: int, episodes: int) -> tuple[Phase, ...]:
    """The phases with another one for the reader after the first `first`, unless `episodes` is 0.

    In it the reader learns from larger parts of the stories, at a falling rate. In it and in the
    phase before, names are exchanged: a reader that learns for long learns stories by heart.
    """
    if not episodes:
        return phases
    reader = dataclasses.replace(phases[first - 1], rename=True)
    changes: dict[str, Any] = {"final_rate": 0.03, "keep_share": (0.8, 1.0)}
    more = dataclasses.replace(reader, name="settle", episodes=episodes, **changes)
    return (*phases[: first - 1], reader, more, *phases[first:])


def without_policy(recipe: tuple[Phase, ...]) -> tuple[Phase, ...]:
    """The recipe for a policy with nothing to learn: its reader still adapts to it."""
    return tuple(dataclasses.replace(phase, objectives=()) for phase in recipe)


def policy_lengths(
    recipe: str | tuple[Phase, ...], episodes: int, slots: float = 0
) -> dict[str, int]:
    """Shares `episodes` among the phases that train the policy, in proportion to their lengths.

    Example:

    >>> policy_lengths("lemn", 1000), policy_lengths("lemn", 1000, slots=10)
    ({'roomy': 250, 'policy': 250, 'polish': 500}, {'policy': 500, 'polish': 500})
    """
    learning = [phase for phase in get(recipe, slots=slots) if phase.objectives]
    total = sum(phase.episodes for phase in learning)
    return {phase.name: max(1, episodes * phase.episodes // total) for phase in learning}


def check_shards(shards: int, batch_size: int) -> None:
    """Raises unless a batch can be divided into that many equal shards."""
    if batch_size % shards:
        raise ValueError(f"expected shards that divide a batch of {batch_size}, got {shards}")
