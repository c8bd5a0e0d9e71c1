"""The memory as a value: its functions against plain Python lists, and bad input."""

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st

from lemn_tf import memory
from lemn_tf.memory import EMPTY, NEVER, MemoryState
from tests.memory.conftest import CARRY, ENTRY, QUICK, item_of, small


class ListMemory:
    """One row as a list of slots, each None or a dict; the obvious way to write it."""

    def __init__(self, slots, row):
        self.slots, self.row, self.clock = [None] * slots, row, 0

    def write(self, slot, pinned, expiry):
        entry = {"id": self.clock, "pinned": pinned, "expiry": expiry}
        self.slots.append(entry)
        del self.slots[slot]
        self.clock += 1

    def forget(self, wanted):
        self.slots = [None if s and s["id"] == wanted else s for s in self.slots]

    def pin(self, wanted, value):
        for slot in self.slots:
            if slot and slot["id"] == wanted:
                slot["pinned"] = value

    def check(self, state: MemoryState):
        row = self.row
        assert state.clock[row] == self.clock
        for i, slot in enumerate(self.slots):
            assert state.ids[row, i] == (slot["id"] if slot else EMPTY)
            assert bool(state.pinned[row, i]) == (slot["pinned"] if slot else False)
            assert state.expiry[row, i] == (slot["expiry"] if slot else NEVER)
            tokens = [slot["id"], row] if slot else [0, 0]
            assert state.entries["tokens"][row, i].numpy().tolist() == tokens
            text = f"{slot['id']}.{row}" if slot else ""
            assert state.entries["text"][row, i].numpy().decode() == text


@st.composite
def lives(draw):
    """A number of rows and of slots, and a list of things that happen."""
    rows, slots = draw(st.integers(1, 3)), draw(st.integers(1, 4))

    def each_row(strategy):
        return st.lists(strategy, min_size=rows, max_size=rows)

    write = st.tuples(
        st.just("write"),
        each_row(st.integers(0, slots)),
        each_row(st.booleans()),
        each_row(st.sampled_from([0, 5, NEVER])),
    )
    change = st.tuples(
        st.sampled_from(["forget", "pin", "unpin"]),
        each_row(st.integers(-1, 12)) | st.integers(-1, 12),
    )
    again = st.tuples(st.sampled_from(["flat", "file"]))
    events = st.one_of(write, write, change, again)
    return rows, slots, draw(st.lists(events, min_size=1, max_size=14))


@QUICK
@hypothesis.given(life=lives())
def test_any_life_is_that_of_a_list(life, tmp_path_factory):
    rows, slots, events = life
    state = memory.empty(rows, slots, ENTRY, CARRY)
    lists = [ListMemory(slots, row) for row in range(rows)]
    path = tmp_path_factory.mktemp("memory") / "state"
    for what, *given in events:
        if what == "write":
            slot, pinned, expiry = given
            item = item_of(int(state.clock[0]), rows)
            state = memory.write(state, item, tf.constant(slot), pinned, expiry)
            for one, *arguments in zip(lists, slot, pinned, expiry, strict=True):
                one.write(*arguments)
        elif what in ("forget", "pin", "unpin"):
            wanted = given[0]
            state = getattr(memory, what)(state, wanted)
            for row, one in enumerate(lists):
                which = wanted[row] if isinstance(wanted, list) else wanted
                one.forget(which) if what == "forget" else one.pin(which, what == "pin")
        elif what == "flat":
            state = memory.from_flat(memory.to_flat(state))
        else:
            memory.save(state, path)
            state = memory.load(path, like=state)
        memory.check_state(state)
    for one in lists:
        one.check(state)


def test_a_state_is_a_value():
    before = small()
    fork = memory.write(before, item_of(3, 1), tf.constant([1]))
    memory.forget(before, 2), memory.pin(before, 1)
    assert before.ids.numpy().tolist() == [[1, 2]]
    assert fork.ids.numpy().tolist() == [[1, 3]]
    assert before.slots == 2


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("slots", "error", "message"),
    [
        (0, ValueError, "at least 1 slot; got slots=0"),
        (-3, ValueError, "got slots=-3"),
        (2.0, TypeError, "whole number; got 2.0"),
        (True, TypeError, "whole number; got True"),
    ],
)
def test_no_slots(slots, error, message):
    with pytest.raises(error, match=message):
        memory.empty(1, slots, ENTRY)


def test_what_is_no_entry():
    with pytest.raises(TypeError, match=r"nests of tf.TensorSpec; got 3"):
        memory.empty(1, 2, 3)
    with pytest.raises(ValueError, match="fully known; got"):
        memory.empty(1, 2, tf.TensorSpec([None]))


def test_what_is_no_item():
    state = small(rows=2)
    good = item_of(3, 2)
    slot = tf.constant([0, 0])
    cases = [
        (good["tokens"], ValueError, "nested like the memory's entries: expected .*got"),
        ({"tokens": good["tokens"]}, ValueError, "nested like .*got {'tokens'"),
        ({**good, "tokens": tf.zeros([2, 2])}, TypeError, "must be int32; got float32"),
        ({**good, "tokens": tf.zeros([2, 3], tf.int32)}, ValueError, r"\(2, 2\); got \(2, 3\)"),
        ({**good, "tokens": tf.zeros([2], tf.int32)}, ValueError, r"got \(2,\)"),
        (item_of(3, 3), ValueError, r"must have shape \(2,.*got \(3,"),
    ]
    for item, error, message in cases:
        with pytest.raises(error, match=message):
            memory.write(state, item, slot)


def test_what_is_no_slot_or_id():
    state = small(rows=2)
    for slot in (tf.constant(0), tf.constant([0.0, 1.0])):
        with pytest.raises(ValueError, match=r"slot must be integers of shape \[B\] = \(2,\); got"):
            memory.write(state, item_of(3, 2), slot)
    with pytest.raises(ValueError, match=r"slot must be integers of shape \[B\] = \(2,\); got"):
        memory.write(state, item_of(3, 2), tf.constant([0, 0, 0]))
    with pytest.raises(ValueError, match="scalar or"):
        memory.forget(state, [[0, 1]])
    with pytest.raises(ValueError, match=r"scalar or \[B\] = \(2,\); got \(3,\)"):
        memory.pin(state, [0, 1, 2])
    with pytest.raises(ValueError, match="pinned must be a scalar or"):
        memory.write(state, item_of(3, 2), tf.constant([0, 0]), pinned=[True, False, True])


def test_what_is_no_state():
    state = small(rows=2)
    cases = [
        (tuple(state), TypeError, "expected a MemoryState; got tuple"),
        (state._replace(ids=tf.zeros([2, 2], tf.int32)), TypeError, "state.ids must be int64"),
        (state._replace(ids=np.zeros([2, 2], np.int64)), TypeError, "state.ids must hold tensors"),
        (state._replace(pinned=tf.zeros([2], tf.bool)), ValueError, "state.pinned must have rank"),
        (state._replace(expiry=tf.zeros([2, 3], tf.int64)), ValueError, "state.expiry must be"),
        (state._replace(clock=tf.zeros([3], tf.int64)), ValueError, "state.clock must be"),
        (state._replace(entries=tf.zeros([2, 4, 1])), ValueError, "state.entries must start with"),
        (state._replace(carry=tf.zeros([2])), ValueError, "state.carry must start with"),
    ]
    for bad, error, message in cases:
        with pytest.raises(error, match=message):
            memory.forget(bad, 0)


def test_works_in_a_graph_of_unknown_batch_and_under_xla():
    spec = tf.nest.map_structure(
        lambda x: tf.TensorSpec([None, *x.shape[1:]], x.dtype),
        memory.empty(1, 2, tf.TensorSpec([2])),
    )

    @tf.function(input_signature=[spec, tf.TensorSpec([None, 2])], jit_compile=True)
    def life(state, item):
        state = memory.write(state, item, tf.zeros(tf.shape(state.clock), tf.int32))
        return memory.forget(memory.pin(state, 0), 1)

    state = memory.empty(3, 2, tf.TensorSpec([2]))
    for _ in range(2):
        state = life(state, tf.ones([3, 2]))
    assert state.ids.numpy().tolist() == [[0, EMPTY]] * 3
    assert state.pinned.numpy().tolist() == [[True, False]] * 3
