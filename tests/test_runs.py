"""Trained models by name: every preset loads, and answers stories that it has never seen."""

import keras
import numpy as np
import pytest

import lemn_tf
from lemn_tf import runs
from lemn_tf.experiments import babi, mazes
from lemn_tf.pipelines import babi as pipeline
from lemn_tf.pipelines import babi_generator


@pytest.mark.parametrize("name", runs.presets())
def test_a_preset_is_what_it_says(name):
    preset, model = runs.presets()[name], lemn_tf.from_preset(name)
    model = getattr(model, "model", model)
    assert model.memory.slots == preset.slots
    assert model.memory.policy.name == preset.policy


def test_every_file_is_a_preset():
    files = {path.stem for path in runs.PRESETS.iterdir() if path.suffix != ".json"}
    assert files == set(runs.presets())


@pytest.mark.parametrize("name", [name for name in runs.presets() if name.startswith("babi")])
def test_a_preset_answers(name, tmp_path):
    variant, slots = name.split("-")[1], runs.presets()[name].slots
    path = tmp_path / "stories.txt"
    pipeline.write_stories(babi_generator.generate(variant, 60, seed=4711), path)
    model = lemn_tf.from_preset(name).model
    assert model.memory.slots == slots
    result = babi.score(model, path)
    assert result["questions"] == 300
    assert result["error_rate"] < 8
    assert babi.score(model.with_policy("fifo"), path)["error_rate"] > result["error_rate"] + 4


def test_one_preset_holds_with_few_slots_and_many(tmp_path):
    pipeline.write_stories(
        babi_generator.generate("noisy", 60, seed=4711), tmp_path / "stories.txt"
    )
    model = lemn_tf.from_preset("babi-noisy-st-lemn-3to20").model
    errors = [
        babi.score(model, tmp_path / "stories.txt", slots)["error_rate"] for slots in (3, 7, 20)
    ]
    assert errors[0] < 24
    assert max(errors[1:]) < 2


def test_a_damaged_config_is_named(tmp_path):
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match=r"config\.json is damaged"):
        runs.config(tmp_path)


REEF = """The Great Barrier Reef lies off the coast of Queensland in Australia. It is made of about
2,900 reefs and stretches for 2,300 kilometres. James Cook ran aground on it in June 1770. Tourism
earns three billion dollars a year. The ship Pandora sank there on 29 August 1791. Its water is warm
and its corals are many-coloured. Turtles lay their eggs on Raine Island."""


@pytest.mark.parametrize("name", [name for name in runs.presets() if name.startswith("documents")])
def test_a_preset_of_documents_reads_an_article(name):
    reader = lemn_tf.from_preset(name)
    question = "Who ran aground on the reef in 1770?"
    if reader.model.memory.policy.question_aware:
        reader.expect(question)
    reader.observe_many([REEF])
    reply = reader.ask(question)
    assert reply.text == "James Cook"
    assert "James Cook" in reply.source.text
    assert runs.presets()[name].size < 15e6


def test_names_that_are_none(tmp_path):
    with pytest.raises(ValueError, match="unknown preset 'nix', and no such folder; presets are"):
        lemn_tf.from_preset("nix")
    with pytest.raises(ValueError, match=r"no run, \.keras file or preset called 'nix'"):
        lemn_tf.load("nix")
    with pytest.raises(ValueError, match=r"is not a finished run: expected a model\.keras in it"):
        lemn_tf.load(tmp_path)
    (tmp_path / "model.keras").write_text("not a model")
    with pytest.raises(ValueError, match="or is damaged: expected a zip archive"):
        lemn_tf.load(tmp_path)


def test_agents_are_found_as_all_models_are():
    assert type(lemn_tf.load("imaze-mqn-st-lemn-4")).__name__ == "Navigator"
    with pytest.raises(ValueError, match="imaze-mqn-st-lemn-4 is a Navigator: expected a model t"):
        runs.load_reader("imaze-mqn-st-lemn-4")
    with pytest.raises(ValueError, match="is a StreamReader: expected a maze agent"):
        mazes.load_agent("babi-noisy-st-lemn-5")


def test_a_small_file_has_half_the_size_and_nearly_the_same_weights(tmp_path):
    model = keras.Sequential([keras.Input([64]), keras.layers.Dense(999), keras.layers.Dense(3)])
    model.save(tmp_path / "full.keras")
    runs.save_small(model, tmp_path / "small.keras")
    full, small = (tmp_path / f"{name}.keras" for name in ("full", "small"))
    assert small.stat().st_size < 0.6 * full.stat().st_size
    for a, b in zip(model.get_weights(), runs.load(small).get_weights(), strict=True):
        assert b.dtype == np.float32
        np.testing.assert_allclose(a, b, atol=1e-3)
