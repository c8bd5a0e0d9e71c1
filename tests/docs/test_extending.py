"""docs/extending.md: its code runs as it stands, and does what the text says."""

import contextlib
import re
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from lemn_tf import StreamReader, retention
from lemn_tf.readers import MemN2N

pytestmark = pytest.mark.xdist_group("extending")  # what they share is set up once

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Everything that the page defines, after it has been run from top to bottom."""
    keras.utils.set_random_seed(0)
    names = {}
    with contextlib.chdir(tmp_path_factory.mktemp("extending")):
        for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
            exec(compile(block, str(PAGE), "exec"), names)
        names["run"] = sorted(path.name for path in Path("runs/nearest").iterdir())
    return names


def test_the_task_leaves_a_run_and_the_agent_finds_its_way(page):
    assert {"checkpoint.npz", "config.json", "history.jsonl", "model.keras"} <= set(page["run"])
    assert page["standing"].lines == 2
    assert page["won"] == 100


def test_what_the_page_trains_is_sound(page):
    assert {"hindsight", "loss"} <= set(page["history"].history)
    assert {"hindsight", "certainty"} <= set(page["shown"])
    assert page["accuracy"] == 1.0
    assert all(np.all(np.isfinite(weight)) for weight in page["mine"].get_weights())


def test_the_policy_is_found_by_name_and_trains_in_a_stream_reader(page):
    assert "gist" in retention.names()
    model = StreamReader(MemN2N(9, 3, units=8, hops=1, max_slots=8), 2, "gist")
    assert model.learns
    generator = np.random.default_rng(0)
    arrays = {
        "items": generator.integers(1, 9, [4, 6, 3]),
        "length": np.full([4], 6),
        "questions": generator.integers(1, 9, [4, 1, 3]),
        "ask_at": np.full([4, 1], 6),
        "answers": generator.integers(1, 9, [4, 1]),
    }
    batch = {name: tf.constant(array, tf.int32) for name, array in arrays.items()}
    model.compile(keras.optimizers.Adam(1e-2), run_eagerly=True)
    before = [np.array(w) for w in model.memory.policy.trainable_weights]
    model.fit(tf.data.Dataset.from_tensors(batch), verbose=0)
    after = model.memory.policy.trainable_weights
    assert any(np.any(np.array(w) != b) for w, b in zip(after, before, strict=True))


def test_the_reader_travels(page, tmp_path):
    reader, episodes = page["reader"], page["episodes"]
    reader.save(tmp_path / "model.keras")
    twin = keras.saving.load_model(tmp_path / "model.keras", compile=False)
    np.testing.assert_allclose(twin(episodes), reader(episodes), atol=1e-6)
