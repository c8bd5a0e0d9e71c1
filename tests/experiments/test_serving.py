"""An exported agent plays as it does in process, through every door."""

import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf

import lemn_tf.mazes  # noqa: F401 (registers the environments)
from lemn_tf import runs
from lemn_tf.experiments.serving import agent_servable
from lemn_tf.export import MemoryClient, Server, export, transport
from lemn_tf.navigation.agent import MemoryAgent
from lemn_tf.navigation.navigator import Navigator
from lemn_tf.navigation.observations import ObservationEncoder

STEPS = 15
SHIPPED = "imaze-mqn-st-lemn-4"


@pytest.fixture(scope="module")
def agent():
    """A small FRMQN that leaves something to chance, so that its walks are not dull."""
    keras.utils.set_random_seed(3)
    sizes = {"units": 6, "width": 4, "filters": (2, 3)}
    made = Navigator("frmqn", 3, "st-lemn", temperature=1.0, dated=True, acted=2, **sizes)
    made.past.kernel.assign(keras.random.normal(made.past.kernel.shape))
    return made


@pytest.fixture(scope="module")
def exported(agent, tmp_path_factory):
    return export(agent_servable(agent), tmp_path_factory.mktemp("models") / "maze" / "1")


def played(act, length=5, steps=STEPS):
    """A walk through one maze: what was done, what was dropped, and where it ended."""
    env = gymnasium.make("lemn/IMaze-v0", length=length)
    frame, info = env.reset(seed=1)
    actions, dropped = [], []
    for _ in range(steps):
        action, evicted = act(frame[None])
        actions.append(int(action[0]))
        dropped.append(int(evicted[0]))
        frame, _, ended, _, info = env.step(actions[-1])
        if ended:
            break
    return actions, dropped, info["pose"], info["success"]


def in_process(agent):
    state = agent.initial_state(1)

    def act(frame):
        nonlocal state
        action, state, decision = agent.act(frame, state)
        return action, decision.evicted

    return act


def flat(run):
    """Acts by a function from a signature's name and arrays to arrays, the state in tensors."""
    state = run("initial_state", {"batch": np.zeros([1], np.int32)})

    def act(frame):
        nonlocal state
        told = run("act", {**state, "observation": frame})
        state = {name: told[name] for name in state}
        assert np.asarray(told["probabilities"]).sum() == pytest.approx(1)
        return np.asarray(told["action"]), np.asarray(told["evicted"])

    return act


def packed(run):
    """The same with the state as one string."""
    state = np.array([b""], object)

    def act(frame):
        nonlocal state
        told = run("act_packed", {"state": state, "observation": frame})
        state = told["state"]
        return told["action"], told["evicted"]

    return act


def test_a_maze_through_rest_and_grpc(agent, exported):
    expected = played(in_process(agent))
    assert len(set(expected[0])) == 3
    assert max(expected[1]) > 0
    with Server(exported.parent, port=0, rest_port=0) as server:
        rest = transport.connect(server.rest_url, "maze")
        grpc = transport.connect(f"grpc://127.0.0.1:{server.port}", "maze")
        for door in (rest, grpc):
            door.describe()
            assert played(flat(door.run)) == expected
            assert played(packed(door.run)) == expected
            door.close()


@pytest.mark.slow
def test_the_shipped_agent_wins_a_whole_maze_through_every_door(tmp_path):
    agent, whole = runs.load(SHIPPED), {"length": 9, "steps": 50}
    expected = played(in_process(agent), **whole)
    *_, success = expected
    assert success
    with Server(export(agent_servable(agent), tmp_path / "imaze" / "1"), 0, 0) as server:
        for address in (server.rest_url, f"grpc://127.0.0.1:{server.port}"):
            door = transport.connect(address, "imaze")
            door.describe()
            assert played(flat(door.run), **whole) == expected
            assert played(packed(door.run), **whole) == expected
            door.close()


def test_tensorflow_alone_plays_it(agent, exported):
    signatures = tf.saved_model.load(str(exported)).signatures

    def run(name, arrays):
        return signatures[name](**{key: tf.constant(x) for key, x in arrays.items()})

    names = {"initial_state", "act", "initial_state_packed", "act_packed", "pack", "unpack"}
    assert set(signatures) == names | {"serving_default"}
    inputs = [signatures[name].structured_input_signature[1] for name in ("serving_default", "act")]
    assert inputs[0].keys() == inputs[1].keys()
    assert played(flat(run)) == played(in_process(agent))


def test_there_is_a_card_and_no_talking(exported):
    card = (exported / "CARD.md").read_text()
    assert "An agent with a bounded memory." in card
    assert "`action` is what to do" in card
    assert (exported / "assets.extra" / "tf_serving_warmup_requests").stat().st_size > 1000
    with pytest.raises(ValueError, match="an agent that acts in a world; it does not talk"):
        MemoryClient(exported)


def test_observations_in_parts():
    parts = {"card": {"kind": "discrete", "size": 3}, "at": {"kind": "vector", "shape": [2]}}
    eyes = ObservationEncoder({"kind": "dict", "parts": parts}, 8)
    agent = MemoryAgent(eyes, 2, "mqn", 2, "fifo", units=8)
    servable = agent_servable(agent)
    assert list(servable.item) == ["observation__at", "observation__card"]
    given = {"observation__at": tf.ones([1, 2]), "observation__card": tf.constant([2])}
    fresh = agent.initial_state(1)
    state, done = servable.act(fresh, given)
    action, after, _ = agent.act({"card": np.array([2]), "at": np.ones([1, 2])}, fresh)
    assert done["action"].numpy().tolist() == action.numpy().tolist()
    tf.nest.map_structure(np.testing.assert_array_equal, state, after)
