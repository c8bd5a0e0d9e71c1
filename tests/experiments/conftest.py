"""Small files of stories, and recipes with small batches."""

import dataclasses

import pytest

from lemn_tf import recipes
from lemn_tf.pipelines import babi as pipeline
from lemn_tf.pipelines import babi_generator


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    paths = {}
    for number, split in enumerate(("train", "valid", "test")):
        paths[split] = folder / f"noisy_{split}.txt"
        pipeline.write_stories(babi_generator.generate("noisy", 8, seed=number), paths[split])
    return paths


@pytest.fixture
def small_batches(monkeypatch):
    """Recipes with batches of 4: the number of an update's stories is not the point here."""
    small = {
        name: tuple(dataclasses.replace(phase, batch_size=4) for phase in phases)
        for name, phases in recipes.RECIPES.items()
    }
    monkeypatch.setattr(recipes, "RECIPES", small)
