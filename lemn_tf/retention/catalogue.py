"""The policies that ship with the library, by name: where each is, and what can be said of it.

Nothing heavy is imported here, so that a name or an option that does not exist is reported before
TensorFlow is loaded. A test holds these facts to the classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Facts(NamedTuple):
    """What is known of a policy before it is built; see `RetentionPolicy`.

    Attributes:
        learns: whether it has anything to train.
        clairvoyant: whether it knows the future.
        options: the names of its arguments.
        suited: values that suit its training better than a recipe's own.
    """

    learns: bool = False
    clairvoyant: bool = False
    options: tuple[str, ...] = ()
    suited: Mapping[str, Any] = {}


class Entry(NamedTuple):
    """A policy of the library: its module in this package, its class, and its facts."""

    module: str
    cls: str
    facts: Facts = Facts()


_LEARNED = Facts(learns=True, options=("units", "hidden", "shuffle", "skip", "reservoir"))
GENERAL = {
    "fifo": Entry("rules", "FIFO"),
    "lifo": Entry("rules", "LIFO"),
    "uniform": Entry("rules", "Uniform"),
    "lru": Entry("rules", "LRU"),
    "oracle": Entry("rules", "Oracle", Facts(clairvoyant=True)),
    "im-lemn": Entry(
        "input_matching",
        "InputMatching",
        Facts(learns=True, options=("similarity", "skip"), suited={"entropy": 0.5}),
    ),
    "s-lemn": Entry("spatial", "Spatial", _LEARNED),
    "st-lemn": Entry("spatio_temporal", "SpatioTemporal", _LEARNED),
}
"""Policies that take entries of any kind."""
FOR_WORDS = {
    "salient": Entry("lexical", "Salient", Facts(options=("first",))),
    "distinct-salient": Entry("lexical", "DistinctSalient"),
    "novelty": Entry("lexical", "Novelty", Facts(options=("rare",))),
    "salient-first": Entry("lexical", "SalientFirst", Facts(options=("first",))),
    "overlap": Entry("lexical", "Overlap", Facts(options=("question_aware",))),
}
"""Rules for words."""
