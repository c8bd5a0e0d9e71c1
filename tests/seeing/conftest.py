"""A small trained-like model of text, stories for it, and a short trace."""

import pytest

from lemn_tf import runs
from lemn_tf.pipelines import babi as pipeline
from lemn_tf.pipelines import babi_generator
from lemn_tf.seeing.trace import Asked, Step, Trace

STORY = ("Mary took the milk.", "Mary went home.", "John is bored.", "John left.")


@pytest.fixture(scope="session")
def stories(tmp_path_factory):
    """A file of twelve Noisy stories."""
    path = tmp_path_factory.mktemp("stories") / "noisy_test.txt"
    pipeline.write_stories(babi_generator.generate("noisy", 12, seed=5), path)
    return path


@pytest.fixture(scope="session")
def preset():
    return runs.load("babi-noisy-st-lemn-5")


@pytest.fixture
def trace() -> Trace:
    """Four items, two slots; the milk leaves, and is asked for."""
    steps = [
        Step(0, (-1, -1, 0), (0.0, 1.0, 1.0), 0, text=STORY[0], kind="picks up"),
        Step(1, (-1, 0, 1), (0.0, 1.0, 1.0), 0, text=STORY[1], kind="moves"),
        Step(2, (0, 1, 2), (0.9, 0.8, 0.3), 2, 0.5, True, 1, STORY[2]),
        Step(3, (0, 1, 3), (0.04, 0.61, 0.9), 0, 0.57, True, 1, STORY[3]),
    ]
    early = Asked(
        *(1, 2, (0, 1), (0.7, 0.3), "Where is the milk?", "home", "home", True, 0.9, (0, 1)), {}
    )
    late = Asked(
        *(2, 4, (1, 3), (0.4, 0.6), "Where is the milk?", "garden", "home", False, 0.2, (0, 1)),
        costs={0: 0.7},
    )
    return Trace([*steps[:2], early, *steps[2:], late], {"policy": "st-lemn", "slots": 2})


@pytest.fixture(scope="session")
def subject(preset, stories):
    from lemn_tf.seeing.subjects import TextSubject

    return TextSubject(preset, stories, "mine")


@pytest.fixture(scope="session")
def examined(subject):
    """Traces of all stories, with hindsight."""
    return subject.traces(range(subject.count))
