"""Retention policies: one family, found by name or passed as an object.

>>> get("st-lemn", hidden=5).name
'st-lemn'
>>> get("best")
Traceback (most recent call last):
...
ValueError: unknown policy 'best'; known are fifo, lifo, uniform, lru, oracle, im-lemn, ...
"""

from collections.abc import Callable

import keras

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
    "find",
    "get",
    "names",
    "register",
]

_POLICIES: dict[str, type[RetentionPolicy]] = {
    "fifo": FIFO,
    "lifo": LIFO,
    "uniform": Uniform,
    "lru": LRU,
    "oracle": Oracle,
    "im-lemn": InputMatching,
    "s-lemn": Spatial,
    "st-lemn": SpatioTemporal,
}
NAMES = tuple(_POLICIES)
"""The names of the built-in policies that take entries of any kind."""
_POLICIES |= {
    "salient": Salient,
    "distinct-salient": DistinctSalient,
    "novelty": Novelty,
    "salient-first": SalientFirst,
    "overlap": Overlap,
}


def names() -> tuple[str, ...]:
    """Every name that `get` knows: `NAMES`, rules for words, and what was registered since."""
    return tuple(_POLICIES)


def register(name: str) -> Callable[[type[RetentionPolicy]], type[RetentionPolicy]]:
    """Decorator: registers a policy of your own under this name, and with Keras for saving.

    Defining the same class again, as a notebook does, replaces it.

    Example:

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

    def add(policy: type[RetentionPolicy]) -> type[RetentionPolicy]:
        if not (isinstance(policy, type) and issubclass(policy, RetentionPolicy)):
            raise TypeError(f"expected a class of RetentionPolicy to name {name!r}; got {policy!r}")
        taken = _POLICIES.get(name, policy)
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
    if isinstance(policy, RetentionPolicy):
        return type(policy)
    if not isinstance(policy, str) or policy not in _POLICIES:
        raise ValueError(f"unknown policy {policy!r}; known are {', '.join(names())}")
    return _POLICIES[policy]


def get(policy: str | RetentionPolicy, **options) -> RetentionPolicy:
    """The policy of that name, built with `options`; a policy object is returned as it is.

    Args:
        policy: one of `names()`, or a `RetentionPolicy`.
        **options: arguments of the policy's class, such as `hidden=20` or `shuffle=True`.
    """
    cls = find(policy)
    if isinstance(policy, RetentionPolicy):
        if options:
            raise ValueError(f"options {sorted(options)} go with a policy's name, not an object")
        return policy
    try:
        return cls(**{"name": policy, **options})
    except (TypeError, ValueError) as error:
        raise ValueError(f"policy {policy!r} does not take these options: {error}") from error
