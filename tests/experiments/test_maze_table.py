"""The maze table: its runs, how they are trained, and that a result says how to get it again."""

import argparse
import json
import shlex
from pathlib import Path

import keras

from lemn_tf.commands.maze_reproduce import add_reproduce_arguments, run_reproduce
from lemn_tf.experiments import maze_table
from lemn_tf.experiments.maze_cells import MazeCell, plan
from lemn_tf.experiments.maze_table import MazeTable
from lemn_tf.navigation.navigator import Navigator


def parse(text):
    parser = argparse.ArgumentParser()
    add_reproduce_arguments(parser)
    return parser.parse_args(shlex.split(text))


def test_cells_are_trained_by_the_recipe_of_their_row(tmp_path):
    table = MazeTable(tmp_path, tmp_path, maps="given.jsonl", frames=9)
    settings = table.settings(MazeCell("single-indicator", "frmqn", "fifo", 2))
    assert (settings.policy, settings.seed, settings.slots) == ("fifo", 2, 5)
    assert (settings.maps, settings.generated) == ("given.jsonl", 1000)
    assert (settings.recipe.frames, settings.recipe.guidance) == (9, 1.0)
    settings = table.settings(MazeCell("imaze", "mqn", "st-lemn", 0))
    assert (settings.maps, settings.slots, settings.recipe.guidance) == (None, 4, 0.0)


def test_a_cell_is_trained_scored_and_can_be_had_again(tmp_path, monkeypatch):
    cell = MazeCell("single-indicator", "mqn", "fifo", 1)
    given = str(tmp_path / "given.jsonl")
    Path(given).touch()
    trained = []

    def train_agent(settings, folder, show):
        trained.append(settings)
        keras.utils.set_random_seed(0)
        folder.mkdir(parents=True)
        agent = Navigator("mqn", 5, "fifo", units=6, width=4, filters=(2, 3))
        agent.save(folder / "model.keras")
        line = {"frames": 9, "success": 1.0, "val_success_rate": 2.0, "best": 2.0, "seconds": 3.0}
        (folder / "history.jsonl").write_text(json.dumps(line) + "\n")

    def score_agent(model, env):
        return {"env": env, "policy": model.memory.policy.name, "success_rate": 2.0}

    monkeypatch.setattr(maze_table, "train_agent", train_agent)
    monkeypatch.setattr(maze_table, "score_agent", score_agent)
    table = MazeTable(tmp_path / "out", tmp_path / "results", maps=given, frames=9)
    words = table.process(cell)
    assert words[:2] == ["reproduce", "maze"]
    assert run_reproduce(parse(shlex.join(words[2:]))) is None  # what the cell's process does
    assert trained == [table.settings(cell)]
    assert table.is_done(cell)
    record = json.loads((tmp_path / "results" / "maze" / f"{cell.name}.json").read_text())
    assert record["scores"] == {"env": cell.env, "policy": "fifo", "success_rate": 2.0}
    assert record["curve"] == [[9, 1.0, 2.0]]
    assert str(tmp_path) not in record["command"]
    again = parse(record["command"].removeprefix("lemn reproduce maze"))
    assert (again.maps, again.frames) == ("given.jsonl", 9)
    assert cell in plan(again.envs, again.readers, again.policies, again.seeds, again.maze_seeds)
    assert table.summary(record) == "success 2.0%"
