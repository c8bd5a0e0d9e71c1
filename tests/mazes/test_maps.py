import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lemn_tf.mazes import (
    Maze,
    distances,
    goal_distance,
    imaze,
    load_jsonl,
    random_maze,
    save_jsonl,
)

GOOD = ("######", "#YS.R#", "#+..C#", "######")
BLOCKED = Maze(("######", "#YSCR#", "######"), "R", id="blocked")


def test_a_maze_knows_its_cells():
    maze = Maze(GOOD, "R")
    assert (maze.spawn, maze.indicator_cell, maze.right, maze.wrong) == (
        (1, 2),
        (1, 1),
        (1, 4),
        (2, 4),
    )
    assert maze.shape == (4, 6)
    assert maze.cells[1].tolist() == [6, 1, 0, 0, 3, 6]
    assert maze.cells[2, 1] == 5
    with pytest.raises(dataclasses.FrozenInstanceError):
        maze.goal = "C"
    with pytest.raises(ValueError, match="read-only"):
        maze.cells[0, 0] = 0


@pytest.mark.parametrize(
    ("rows", "goal", "message"),
    [
        (("#YSR#", "#####"), "R", "at least 3 rows"),
        ((*GOOD[:2], "#+..#", GOOD[3]), "R", "row 0 has 6 cells, row 2 has 5"),
        ((*GOOD[:2], "#+?.C#", GOOD[3]), "R", r"unknown character '\?' at row 2, column 2"),
        ((*GOOD[:2], 7, GOOD[3]), "R", "row 2 is 7"),
        ((GOOD[0], "#Y..R#", *GOOD[2:]), "R", r"one spawn \(S\), got 0"),
        ((GOOD[0], "#YSSR#", *GOOD[2:]), "R", r"one spawn \(S\), got 2"),
        ((GOOD[0], "#YSLR#", *GOOD[2:]), "R", "indicator .* got 2"),
        ((GOOD[0], "#.S.R#", *GOOD[2:]), "R", "indicator .* got 0"),
        ((GOOD[0], "#YS..#", *GOOD[2:]), "R", "red goal .* got 0"),
        ((*GOOD[:2], "#+...#", GOOD[3]), "R", "cyan goal .* got 0"),
        ((*GOOD[:3], "###+##"), "R", r"outer walls .* got '#\+'"),
        ((GOOD[0], "#YS.R.", *GOOD[2:]), "R", "outer walls"),
        (GOOD, "C", "expected goal 'R' for indicator 'Y' .* got 'C'"),
        (GOOD, "", "got ''"),
    ],
)
def test_bad_maps_say_why(rows, goal, message):
    with pytest.raises(ValueError, match=message):
        Maze(rows, goal)


def test_the_name_is_in_the_message():
    with pytest.raises(ValueError, match="maze 'seven': expected goal"):
        Maze(GOOD, "C", id="seven")


def test_distances():
    maze = Maze(GOOD, "R")
    assert distances(maze, maze.spawn)[maze.wrong] == 3
    assert maze.wrong not in distances(maze, maze.spawn, blocked=[(1, 4), (1, 3), (2, 3)])
    assert goal_distance(maze) == 2
    assert goal_distance(BLOCKED) is None


@settings(max_examples=20, deadline=None)
@given(seeds=st.lists(st.integers(0, 10**6), max_size=5), length=st.integers(2, 30))
def test_files_round_trip(tmp_path_factory, seeds, length):
    mazes = [random_maze(seed) for seed in seeds] + [imaze(length, "L"), BLOCKED]
    path = tmp_path_factory.mktemp("maps") / "maps.jsonl"
    save_jsonl(path, mazes)
    assert load_jsonl(path) == mazes


GOOD_LINE = json.dumps({"id": "0", "goal": "R", "rows": GOOD})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "one JSON object a line"),
        ("[1]", "expected a JSON object, got list"),
        ('{"rows": []}', "missing goal; keys given: rows"),
        ("{}", "missing rows and goal; keys given: none"),
        ('{"rows": "###", "goal": "R"}', "list of strings, got str"),
        (GOOD_LINE.replace("S", "."), "exactly one spawn"),
        (GOOD_LINE.replace("+", "x"), "unknown character 'x' at row 2"),
        (GOOD_LINE.replace("YS.R#", "YS.R"), "ragged rows"),
    ],
)
def test_file_errors_name_file_and_line(tmp_path, line, message):
    path = tmp_path / "maps.jsonl"
    path.write_text(f"{GOOD_LINE}\n\n{line}\n")
    with pytest.raises(ValueError, match=rf"maps\.jsonl:3: .*{message}"):
        load_jsonl(path)


def test_a_byte_order_mark_and_a_file_without_maps(tmp_path):
    path = tmp_path / "maps.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD_LINE.encode())
    assert len(load_jsonl(path)) == 1
    path.write_bytes(b"\n")
    with pytest.raises(ValueError, match=r"maps\.jsonl: expected at least one map, found none"):
        load_jsonl(path)


def test_numbers_as_ids_become_text(tmp_path):
    path = tmp_path / "maps.jsonl"
    path.write_text(json.dumps({"id": 3, "goal": "R", "rows": GOOD}))
    assert load_jsonl(path)[0].id == "3"


def test_cells_are_bytes():
    assert imaze(5).cells.dtype == np.uint8
