"""Retention policies: one family, found by name or passed as an object.

The names, and what `facts` says about them, are known without TensorFlow; classes are imported when
one is first used.

>>> get("st-lemn", hidden=5).name
'st-lemn'
>>> get("best")
Traceback (most recent call last):
...
ValueError: unknown policy 'best'; known are fifo, lifo, uniform, lru, oracle, im-lemn, ...
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lemn_tf.retention.catalogue import FOR_WORDS, GENERAL, Entry, Facts

if TYPE_CHECKING:
    from lemn_tf.retention.base import Cells, RetentionPolicy, Scores
    from lemn_tf.retention.decision import Decision, decide
    from lemn_tf.retention.input_matching import InputMatching, Similarity
    from lemn_tf.retention.lexical import DistinctSalient, Novelty, Overlap, Salient, SalientFirst
    from lemn_tf.retention.rules import FIFO, LIFO, LRU, Oracle, Uniform
    from lemn_tf.retention.spatial import Spatial, SpatialEncoder
    from lemn_tf.retention.spatio_temporal import SpatioTemporal

__all__ = [
    "FIFO",
    "LIFO",
    "LRU",
    "NAMES",
    "Cells",
    "Decision",
    "DistinctSalient",
    "Facts",
    "InputMatching",
    "Novelty",
    "Oracle",
    "Overlap",
    "RetentionPolicy",
    "Salient",
    "SalientFirst",
    "Scores",
    "Similarity",
    "Spatial",
    "SpatialEncoder",
    "SpatioTemporal",
    "Uniform",
    "decide",
    "facts",
    "find",
    "get",
    "names",
    "register",
]

NAMES = tuple(GENERAL)
"""The names of the built-in policies that take entries of any kind."""
_POLICIES: dict[str, Entry | type[RetentionPolicy]] = {**GENERAL, **FOR_WORDS}
_CLASSES = {entry.cls: entry.module for entry in (GENERAL | FOR_WORDS).values()} | {
    "Cells": "base",
    "Decision": "decision",
    "RetentionPolicy": "base",
    "Scores": "base",
    "Similarity": "input_matching",
    "SpatialEncoder": "spatial",
    "decide": "decision",
}
"""The public names that need TensorFlow, with the module of each."""


def __getattr__(name: str) -> Any:
    if name not in _CLASSES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # All of them, for Keras finds no class in a saved model before its module is imported.
    modules = {one: importlib.import_module(f"{__name__}.{one}") for one in _CLASSES.values()}
    return getattr(modules[_CLASSES[name]], name)


def names() -> tuple[str, ...]:
    """Every name that `get` knows: `NAMES`, rules for words, and what was registered since."""
    return tuple(_POLICIES)


def facts(name: str) -> Facts:
    """What is known of a policy by its name; that of a built-in one without loading TensorFlow.

    Example:

    >>> facts("lru").learns, facts("im-lemn").options
    (False, ('similarity', 'skip'))
    """
    known = _known(name)
    if isinstance(known, Entry):
        return known.facts
    policy = get(name)
    return Facts(policy.learns, policy.clairvoyant, known.options(), policy.suited)


def check_rule(policy: str, trained: str) -> None:
    """Raises unless a model that was trained with one policy can be used with this one as well."""
    if policy != trained and facts(policy).learns:
        raise ValueError(
            f"{policy} is learned: expected a run or preset that was trained with it, got one with "
            f"{trained}"
        )


def _known(name: Any) -> Entry | type[RetentionPolicy]:
    """The entry of a built-in policy, or the class of a registered one."""
    if not isinstance(name, str) or name not in _POLICIES:
        raise ValueError(f"unknown policy {name!r}; known are {', '.join(names())}")
    return _POLICIES[name]


def register(name: str) -> Callable[[type[RetentionPolicy]], type[RetentionPolicy]]:
    """Decorator: registers a policy of your own under this name, and with Keras for saving.

    Defining the same class again, as a notebook does, replaces it.

    Example:

    >>> from lemn_tf import RetentionPolicy
    >>> @register("smallest")
    ... class Smallest(RetentionPolicy):
    ...     def score(self, seen, cells, carry):
    ...         return self.opinion(-cells.vectors[..., 0])
    >>> get("smallest").name
    'smallest'

    Raises:
        ValueError: the name is taken by another class.
    """
    if not isinstance(name, str) or not name:
        raise TypeError(f"register takes the policy's name, as in @register('mine'); got {name!r}")
    import keras

    from lemn_tf.retention.base import RetentionPolicy

    def add(policy: type[RetentionPolicy]) -> type[RetentionPolicy]:
        if not (isinstance(policy, type) and issubclass(policy, RetentionPolicy)):
            raise TypeError(f"expected a class of RetentionPolicy to name {name!r}; got {policy!r}")
        taken = find(name) if name in _POLICIES else policy
        if _identity(taken) != _identity(policy):
            raise ValueError(
                f"the policy name {name!r} is taken by {'.'.join(_identity(taken))}; "
                f"expected a new one for {'.'.join(_identity(policy))}"
            )
        if keras.saving.get_registered_name(policy) == policy.__name__:  # not known to Keras yet
            keras.saving.register_keras_serializable("retention")(policy)
        _POLICIES[name] = policy
        return policy

    return add


def _identity(policy: type) -> tuple[str, str]:
    return policy.__module__, policy.__qualname__


def find(policy: str | RetentionPolicy) -> type[RetentionPolicy]:
    """The class of a policy by its name, or of a policy object."""
    from lemn_tf.retention.base import RetentionPolicy

    if isinstance(policy, RetentionPolicy):
        return type(policy)
    known = _known(policy)
    if isinstance(known, Entry):
        return getattr(importlib.import_module(f"{__name__}.{known.module}"), known.cls)
    return known


def get(policy: str | RetentionPolicy, **options) -> RetentionPolicy:
    """The policy of that name, built with `options`; a policy object is returned as it is.

    Args:
        policy: one of `names()`, or a `RetentionPolicy`.
        **options: arguments of the policy's class, such as `hidden=20` or `shuffle=True`.
    """
    cls = find(policy)
    if not isinstance(policy, str):
        if options:
            raise ValueError(f"options {sorted(options)} go with a policy's name, not an object")
        return policy
    try:
        return cls(**{"name": policy, **options})
    except (TypeError, ValueError) as error:
        raise ValueError(f"policy {policy!r} does not take these options: {error}") from error
