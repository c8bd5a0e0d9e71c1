"""How a bAbI run is made."""

from __future__ import annotations

import dataclasses
import math

from lemn_tf import recipes, retention
from lemn_tf.recipes import Phase


@dataclasses.dataclass(frozen=True)
class BabiSettings:
    """How a bAbI run is made; written to its folder.

    Attributes:
        train, valid: files in bAbI's text format.
        policy, slots: of the memory.
        recipe, trainer: see `lemn_tf.recipes`; under "lemn", "a2c" has a recipe of its own.
        episodes: new lengths of phases by name.
        units: d in the paper.
        hidden: width of h, for policies that have one; None for the paper's d / 4, or d if the
            recipe is in `recipes.WIDE`.
        shuffle: the appendix's ablation, for policies that can.
        store_questions: whether questions enter the stream as items too.
        rename: whether phases that ask for it rename stories, see `lemn_tf.pipelines.renaming`.
        roles: a file that says which words may take each other's places; None to find them.
        sizes: sizes of the memory of which each update of the policy draws one, for a policy that
            serves all of them; empty for `slots` alone.
        room: whether the policy may learn with more slots first, where the recipe has such phases.
        window: how many facts back random memories reach, for all phases; None for the recipe's.
            Long stories need one: a reader does not learn from 75 facts at first.
        seed: of everything random.
        reader_from: folder of a run of the same recipe and data whose reader is taken as its first
            phases left it; those phases are then left out here.
        start_from: a trained model of the same sizes and words to begin with: a preset, a run or a
            `.keras` file; only the recipe's last phase is left then.
        driver: whether a driver of TF-Agents reads the stories, instead of one loop in the graph.
        changes: new values for the fields of the phases that train the policy.
        settle: episodes of one more phase for the reader before the policy learns, see
            `recipes.settled`.
        competent: percent of the validation answers that the reader may get wrong with everything
            in memory before the policy learns, see `lemn_tf.experiments.competence`; None for no
            such check.
        wider: units of the other readers that are tried if it gets more wrong; None for as many.
        rectified: whether the reader is rectified, see `MemN2N`.
    """

    train: str
    valid: str
    policy: str = "st-lemn"
    slots: int = 5
    recipe: str = "lemn"
    trainer: str | None = None
    episodes: dict[str, int] = dataclasses.field(default_factory=dict)
    units: int = 20
    hidden: int | None = None
    shuffle: bool = False
    store_questions: bool = False
    rename: bool = True
    roles: str | None = None
    sizes: tuple[int, ...] = ()
    room: bool = True
    window: int | None = None
    seed: int = 0
    reader_from: str | None = None
    start_from: str | None = None
    driver: bool = False
    changes: dict = dataclasses.field(default_factory=dict)
    settle: int = 0
    competent: float | None = 5.0
    wider: int | None = 50
    rectified: bool = False

    @property
    def learns(self) -> bool:
        """Whether the policy has anything to learn."""
        return retention.facts(self.policy).learns

    @property
    def chosen(self) -> str:
        """The recipe in use, which may depend on the trainer."""
        return recipes.chosen(self.recipe, self.trainer)

    @property
    def width(self) -> int | None:
        """Width of h for the policy; None for its own default."""
        wide = self.hidden is None and self.chosen in recipes.WIDE
        return self.units if wide else self.hidden

    @property
    def reader_phases(self) -> int:
        """How many phases there are before the policy learns, unless there is a `reader_from`."""
        return recipes.reader_phases(self.chosen) + bool(self.settle)

    @property
    def _size(self) -> float:
        """The size of memory for `recipes.get`: an infinite one leaves out the roomy phases."""
        return max((self.slots, *self.sizes)) if self.learns and self.room else math.inf

    def phases(self) -> tuple[Phase, ...]:
        """What is trained in which order."""
        changes = recipes.suited(self.chosen, retention.facts(self.policy)) | self.changes
        changes |= {"sizes": tuple(self.sizes)} if self.sizes else {}
        phases = recipes.get(self.chosen, self.trainer, self.episodes, self._size, **changes)
        if self.window is not None:
            phases = tuple(dataclasses.replace(p, window=self.window) for p in phases)
        first = recipes.reader_phases(self.chosen)
        phases = recipes.settled(phases, first, self.settle)
        if self.start_from is not None:
            phases = phases[-1:]
        elif self.reader_from is not None:
            phases = phases[first:]
        return phases if self.learns else recipes.without_policy(phases)

    def lasting(self, episodes: int) -> BabiSettings:
        """The same with `episodes` shared among the policy's phases that have no length yet."""
        lengths = recipes.policy_lengths(self.chosen, episodes, self._size)
        if self.start_from is not None:
            lengths = {list(lengths)[-1]: episodes}
        return dataclasses.replace(self, episodes={**lengths, **self.episodes})
