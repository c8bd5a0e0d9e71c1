"""The programs in examples/: each learns what to keep, where FIFO has lost it."""

import importlib.util
import math
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
ACCURACY = ("first_flagged", "associative_recall", "tokens", "images")


def example(name):
    """The module of an example, which is a program and in no package."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def short(name, **sizes):
    """An example in short form: so few updates are over before XLA has compiled one."""
    return example(name).main(epochs=1, jit_compile=False, **sizes)


def best_of_fifo(slots, steps, chance):
    """The most that any model can get right from the newest items, if all are asked for alike."""
    return slots / steps + (1 - slots / steps) * chance


def test_every_example_is_tested():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*ACCURACY, "sensor"}


def test_first_flagged():
    # The first flagged item is in the first half, so FIFO can only guess, one of eight.
    assert short("first_flagged", count=3200, steps=12) > 0.125 + 0.2


@pytest.mark.slow
def test_associative_recall():
    accuracy = short("associative_recall", count=6400, steps=20)
    assert accuracy > best_of_fifo(slots=6, steps=20, chance=1 / 8) + 0.1


@pytest.mark.slow
def test_tokens():
    accuracy = short("tokens", count=4800, steps=20)
    assert accuracy > best_of_fifo(slots=5, steps=20, chance=1 / 8) + 0.1


def test_sensor():
    # A mean of four independent temperatures, of which FIFO knows a part: degrees, not 1.
    module = example("sensor")
    fifo = module.SPREAD / math.sqrt(module.EVENTS) * math.sqrt(1 - module.EVENTS / 12)
    assert short("sensor", count=3200, steps=12) < 0.6 * fifo


@pytest.mark.slow
def test_images():
    # Too short to learn what to keep: the digits are read by now, better than by chance, 0.1.
    assert short("images", count=4800, steps=10) > 0.15


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", ACCURACY)
def test_learned_policy_beats_fifo_by_far(name, seed):
    module = example(name)
    fifo, learned = module.main("fifo", seed), module.main("st-lemn", seed)
    assert fifo < 0.35
    assert learned > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_learned_policy_measures_what_fifo_has_lost(seed):
    module = example("sensor")
    fifo, learned = module.main("fifo", seed), module.main("st-lemn", seed)
    assert fifo > 0.4 * module.SPREAD
    assert learned < 0.1 * module.SPREAD
