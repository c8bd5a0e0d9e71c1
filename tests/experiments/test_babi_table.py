"""The cells of the bAbI tables: which there are, how each is trained, when one is done."""

import json

import pytest

from lemn_tf.experiments import babi_cells
from lemn_tf.experiments.babi_table import BabiTable
from lemn_tf.pipelines import babi as pipeline
from lemn_tf.pipelines import babi_generator


def test_given_stories_are_not_mixed_with_others(files, tmp_path):
    table = BabiTable(tmp_path, tmp_path)
    table.prepare(files["train"].parent)
    table.prepare(files["train"].parent)
    other = tmp_path / "given"
    pipeline.write_stories(babi_generator.generate("noisy", 8, seed=9), other / "noisy_test.txt")
    with pytest.raises(ValueError, match="holds other stories than"):
        table.prepare(other)


def test_the_actor_critic_explores_more_on_original(tmp_path):
    for row, column, entropy in (
        ("st-lemn-a2c", "original-5", 0.04),
        ("st-lemn-a2c", "noisy-5", 0.03),
        ("st-lemn", "original-5", 0.1),
    ):
        cell = babi_cells.plan([row], [column], seeds=1)[-1]
        table = BabiTable(tmp_path, tmp_path)
        policy, last = table.settings(cell).phases()[-2:]
        assert (policy.entropy, last.entropy) == (entropy, entropy)


def test_a_result_of_another_recipe_is_not_kept(tmp_path):
    """Seeds of one cell are all trained alike: a cell whose phases have changed is run again."""
    noisy, cell = babi_cells.plan(["s-lemn"], ["original-5", "noisy-5"], seeds=1)[:1:-1]
    table, path = BabiTable(tmp_path, tmp_path), tmp_path / "babi" / f"{cell.name}.json"
    path.parent.mkdir()
    assert not table.is_done(cell)
    lengths = table.settings(cell).episodes
    assert lengths == {"roomy": 16_000, "policy": 16_000, "polish": 32_000}
    assert list(table.settings(noisy).episodes) == ["policy", "polish"]
    for settings, done in (({"episodes": lengths}, True), ({"episodes": {"policy": 9}}, False)):
        path.write_text(json.dumps({"settings": settings}))
        assert table.is_done(cell) == done
