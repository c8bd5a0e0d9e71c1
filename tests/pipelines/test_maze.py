import numpy as np
import pytest

from lemn_tf.mazes import Rules, best_actions, build, imazes, random_mazes
from lemn_tf.pipelines.maze import TABLES, walks


@pytest.fixture(scope="module")
def world():
    return build([*imazes([5, 7]), *random_mazes(4)], Rules(limit=25))


def take(stream, count=1):
    return list(stream.take(count).as_numpy_iterator())


def replay(world, batch):
    """Walks again, one step at a time, by the tables, and compares everything."""
    for b in range(len(batch["maze"])):
        maze, pose, over = batch["maze"][b], batch["poses"][b, 0], False
        assert pose in world.spawn[maze]
        assert batch["indicator"][b] == world.indicator[maze]
        for t in range(batch["actions"].shape[1]):
            assert batch["poses"][b, t] == pose
            assert batch["valid"][b, t] == (not over)
            np.testing.assert_array_equal(batch["frames"][b, t], world.rgb[world.frame[pose]])
            if over:
                assert (batch["rewards"][b, t], batch["done"][b, t]) == (0, False)
                continue
            pose = world.next[pose, batch["actions"][b, t]]
            over = bool(world.done[pose]) or t + 1 >= world.limit[maze]
            assert batch["rewards"][b, t] == world.reward[pose]
            assert batch["done"][b, t] == over


@pytest.mark.parametrize("explore", [None, 0.0, 0.5])
def test_walks_obey_the_tables(world, explore):
    policy = {} if explore is None else {"policy": best_actions(world), "explore": explore}
    for batch in take(walks(world.tables(), 5, 30, seed=3, **policy), 2):
        assert batch["frames"].shape == (5, 30, 32, 32, 3)
        assert batch["frames"].dtype == np.uint8
        assert batch["actions"].dtype == batch["indicator"].dtype == np.int32
        replay(world, batch)


def test_the_shortest_way_wins_from_every_start(world):
    stream = walks(world.tables(), 10, 25, policy=best_actions(world), starts="all")
    batches = take(stream, 99)
    assert [len(batch["maze"]) for batch in batches] == [10, 10, 10, 2]
    starts = np.concatenate([batch["poses"][:, 0] for batch in batches])
    np.testing.assert_array_equal(starts, world.spawn.ravel())
    assert all((batch["rewards"].max(1) == 1).all() for batch in batches)
    assert all((batch["done"].sum(1) == 1).all() for batch in batches)


def test_streams_are_seeded_and_go_on(world):
    first, again, other = (take(walks(world.tables(), 8, 6, seed=s), 3) for s in (1, 1, 2))
    for a, b in zip(first, again, strict=True):
        for key in a:
            np.testing.assert_array_equal(a[key], b[key])
    assert (first[0]["actions"] != first[1]["actions"]).any()
    assert (first[0]["actions"] != other[0]["actions"]).any()


def test_draws_are_even(world):
    batch = take(walks(world.tables(), 3000, 2))[0]
    starts = np.bincount(np.searchsorted(world.spawn.ravel(), batch["poses"][:, 0]), minlength=32)
    assert starts.min() > 50
    counts = np.bincount(batch["actions"].ravel())
    assert (np.abs(counts / counts.sum() - 1 / 3) < 0.04).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch": 0}, "at least 1, got 0 and 4"),
        ({"policy": "best"}, "policy 'random' or an int array"),
        ({"policy": np.zeros(3, int)}, r"got shape \[3\]"),
        ({"explore": 2.0}, "between 0 and 1, got 2.0"),
        ({"starts": "one"}, "'random' or 'all', got 'one'"),
    ],
)
def test_bad_arguments_are_refused(world, change, message):
    with pytest.raises(ValueError, match=message):
        walks(**({"tables": world.tables(), "batch": 2, "length": 4} | change))


def test_missing_tables_are_named(world):
    tables = {name: world.tables()[name] for name in TABLES if name not in ("limit", "spawn")}
    with pytest.raises(ValueError, match="missing spawn, limit"):
        walks(tables, 2, 4)
