"""What a sweep varies: its parameters, their values, and every combination of them."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Mapping, Sequence

from lemn_tf import retention
from lemn_tf.experiments.babi_settings import BabiSettings
from lemn_tf.recipes import Phase

Value = str | int | float | bool | None
LENGTH = "episodes"
"""The parameter that stands for the episodes that train the policy."""
FIXED = ("train", "valid", "seed", "episodes", "changes", "reader_from", "driver", "roles")
"""Settings that a sweep does not vary."""
LEAST = {"units": 4} | dict.fromkeys(
    ("slots", "at_most", "hidden", "window", "batch_size", "rollouts", "episodes", "wider"), 1
)
"""The least value of a parameter where it is not 0."""
CHOICES = {"reward": ("sign", "probability")}
"""Names that a parameter may have as its value, where nothing else checks them."""
NO_CHANGE = ("name", "episodes", "objectives", "keep_share")
"""What a sweep does not vary in a phase."""


def parameters() -> dict[str, str]:
    """What can be varied, and the type of each: settings, and fields of the policy's phases."""
    own = {f.name: str(f.type) for f in dataclasses.fields(BabiSettings)}
    phase = {f.name: str(f.type) for f in dataclasses.fields(Phase)}
    known = {name: kind for name, kind in phase.items() if name not in NO_CHANGE}
    known |= {name: kind for name, kind in own.items() if name not in FIXED}
    return known | {LENGTH: "int"}


def parsed(name: str, text: str) -> Value:
    """The value of a parameter from its text.

    Example:

    >>> parsed("entropy", "0.05"), parsed("slots", "5"), parsed("window", "none")
    (0.05, 5, None)
    """
    known = parameters()
    if name not in known:
        raise ValueError(f"unknown parameter {name!r}; known are {', '.join(sorted(known))}")
    kinds = known[name].split(" | ")
    if "None" in kinds and text.lower() == "none":
        return None
    try:
        if "bool" in kinds:
            return {"true": True, "false": False}[text.lower()]
        if "int" in kinds or "float" in kinds:
            return _number(name, text, int if "int" in kinds else float)
    except KeyError:
        pass
    if "str" in kinds and text in CHOICES.get(name, (text or None,)):
        return text
    expected = " or ".join(CHOICES.get(name, (known[name],)))
    raise ValueError(f"{name}: expected {expected}, got {text!r}")


def _number(name: str, text: str, kind: type[int] | type[float]) -> int | float:
    least = LEAST.get(name, 0)
    try:
        number = kind(text)
    except ValueError:
        number = -1
    if not least <= number < 2**31:
        raise ValueError(f"{name}: expected {kind.__name__} of at least {least}, got {text!r}")
    return number


@dataclasses.dataclass(frozen=True)
class SweepCell:
    """One training: values of the parameters, and a seed."""

    values: tuple[tuple[str, Value], ...]
    seed: int

    @property
    def label(self) -> str:
        """The values in words."""
        return ", ".join(f"{name}={value}" for name, value in self.values)

    @property
    def name(self) -> str:
        told = [*(f"{name}={value}" for name, value in self.values), f"seed{self.seed}"]
        return re.sub(r"[^\w.=-]+", "-", "_".join(told))

    def settings(self, train: str, valid: str, lengths: Mapping[str, int]) -> BabiSettings:
        """How it is trained.

        Args:
            train, valid: files of stories.
            lengths: other lengths of phases, by name.
        """
        values = dict(self.values)
        length = values.pop(LENGTH, None)
        own = {field.name for field in dataclasses.fields(BabiSettings)}
        settings = BabiSettings(
            train=train,
            valid=valid,
            seed=self.seed,
            episodes=dict(lengths),
            changes={name: value for name, value in values.items() if name not in own},
            **{name: value for name, value in values.items() if name in own},  # type: ignore[arg-type]
        )
        return settings.lasting(int(length)) if length else settings

    def check(self, lengths: Mapping[str, int]) -> None:
        """Raises unless it can be trained."""
        settings = self.settings("", "", lengths)
        if retention.facts(settings.policy).clairvoyant:
            raise ValueError(f"{settings.policy} needs labels: expected another policy")
        for phase in settings.phases():
            if phase.batch_size % phase.rollouts:
                raise ValueError(f"{self.label}: rollouts do not divide {phase.batch_size}")


def grid(values: Mapping[str, Sequence[Value]], seeds: int) -> list[SweepCell]:
    """Every combination of the values, with several seeds of each.

    Example:

    >>> [cell.name for cell in grid({"slots": [5, 10]}, 2)]
    ['slots=5_seed0', 'slots=5_seed1', 'slots=10_seed0', 'slots=10_seed1']
    """
    pairs = [[(name, value) for value in several] for name, several in values.items()]
    combined = itertools.product(*pairs)
    return [SweepCell(values, seed) for values in combined for seed in range(seeds)]
