"""Retention policies: one family, found by name or passed as an object.

>>> get("st-lemn", hidden=5).name
'st-lemn'
>>> get("best")
Traceback (most recent call last):
...
ValueError: unknown policy 'best'; known are fifo, lifo, uniform, lru, oracle, im-lemn, ...
"""

from lemn_tf.retention.base import Cells, Decision, RetentionPolicy, Scores, decide
from lemn_tf.retention.input_matching import InputMatching, Similarity
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
    "InputMatching",
    "Oracle",
    "RetentionPolicy",
    "Scores",
    "Similarity",
    "Spatial",
    "SpatialEncoder",
    "SpatioTemporal",
    "Uniform",
    "decide",
    "get",
]

_POLICIES = {
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
"""The names `get` knows."""


def get(policy: str | RetentionPolicy, **options) -> RetentionPolicy:
    """The policy of that name, built with `options`; a policy object is returned as it is.

    Args:
        policy: one of `NAMES`, or a `RetentionPolicy`.
        **options: arguments of the policy's class, such as `hidden=20` or `shuffle=True`.
    """
    if isinstance(policy, RetentionPolicy):
        if options:
            raise ValueError(f"options {sorted(options)} go with a policy's name, not an object")
        return policy
    if not isinstance(policy, str) or policy not in _POLICIES:
        raise ValueError(f"unknown policy {policy!r}; known are {', '.join(NAMES)}")
    try:
        return _POLICIES[policy](**{"name": policy, **options})
    except (TypeError, ValueError) as error:
        raise ValueError(f"policy {policy!r} does not take these options: {error}") from error
