"""Nothing leaves a watched memory unseen."""

import json

import tensorflow as tf

from lemn_tf import EpisodicMemory
from lemn_tf.seeing import files
from lemn_tf.seeing.watch import FileSink, Watch


def stream(watch, count=5):
    state = watch.memory.initial_state(2, tf.TensorSpec([], tf.string))
    for t in range(count):
        state, _ = watch.observe(state, tf.constant([f"a{t}", f"b{t}"]))
    return state


def memory(policy="fifo"):
    return EpisodicMemory(2, policy, encoder=lambda texts: tf.zeros([*texts.shape, 1]))


def test_a_sink_gets_what_leaves(tmp_path):
    gone = []
    stream(Watch(memory(), sink=gone.append))
    assert [(one.row, one.id, one.t, one.entry) for one in gone] == [
        *((0, 0, 2, b"a0"), (1, 0, 2, b"b0")),
        *((0, 1, 3, b"a1"), (1, 1, 3, b"b1")),
        *((0, 2, 4, b"a2"), (1, 2, 4, b"b2")),
    ]
    stream(Watch(memory("lifo"), sink=FileSink(tmp_path / "gone.jsonl")), 3)
    lines = [json.loads(line) for line in (tmp_path / "gone.jsonl").read_text().splitlines()]
    assert [(line["id"], line["t"], line["text"]) for line in lines] == [
        *((2, 2, "a2"), (2, 2, "b2")),
    ]


def test_a_dry_run_changes_nothing():
    gone = []
    watch = Watch(memory(), sink=gone.append)
    state = stream(watch, 2)
    (first, second) = watch.dry_run(state, tf.constant(["x", "y"]))
    assert (first.id, first.entry, second.entry) == (0, b"a0", b"b0")
    assert gone == []
    assert state.ids.numpy().tolist() == [[0, 1], [0, 1]]


def test_a_trace_of_a_live_memory(tmp_path):
    with Watch(memory(), trace=tmp_path / "t.jsonl") as watch:
        stream(watch)
    trace = files.read(tmp_path / "t.jsonl")
    assert trace.about == {"policy": "fifo", "slots": 2}
    assert [step.t for step in trace.steps()] == [0, 1, 2, 3, 4]
    assert trace.why(1).startswith("a1 (1) left at t=3 with keep probability 0.")
