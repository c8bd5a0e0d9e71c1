"""The memory as a value: its functions against plain Python lists, its file, and bad input."""

import io
import pickle
import zipfile

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st

from lemn_tf import memory
from lemn_tf.memory import EMPTY, NEVER, MemoryState

QUICK = hypothesis.settings(max_examples=40, deadline=None, derandomize=True)
ENTRY = {"tokens": tf.TensorSpec([2], tf.int32), "text": tf.TensorSpec([], tf.string)}
CARRY = (tf.TensorSpec([3]), tf.TensorSpec([], tf.int64))


def item_of(t: int, rows: int):
    """Item t of each row: recognisable, and different in each row."""
    tokens = np.array([[t, row] for row in range(rows)], np.int32)
    return {"tokens": tf.constant(tokens), "text": tf.constant([f"{t}.{r}" for r in range(rows)])}


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


WORD = st.text("ab_0", min_size=1, max_size=4)
LEAF = st.sampled_from([tf.float32, tf.int64, tf.string, tf.bool])
NESTS = st.recursive(
    LEAF,
    lambda inner: (
        st.dictionaries(WORD, inner, min_size=1, max_size=3)
        | st.lists(inner, min_size=1, max_size=3).map(tuple)
    ),
    max_leaves=5,
)


@QUICK
@hypothesis.given(entry=NESTS, carry=NESTS | st.just(()))
def test_any_nest_goes_flat_and_back_or_is_refused(entry, carry, tmp_path_factory):
    def spec(dtype):
        return tf.TensorSpec([2], dtype)

    state = memory.empty(1, 2, *(tf.nest.map_structure(spec, nest) for nest in (entry, carry)))
    try:
        flat = memory.to_flat(state)
    except ValueError as error:
        refusal = str(error)
    else:
        refusal = ""
    if refusal:
        assert "needs words as keys" in refusal
        return
    path = tmp_path_factory.mktemp("memory") / "state"
    memory.save(state, path)
    for twin in (memory.from_flat(flat), memory.load(path, like=state)):
        tf.nest.assert_same_structure(twin, state, check_types=True)
        assert [x.dtype for x in tf.nest.flatten(twin)] == [x.dtype for x in tf.nest.flatten(state)]


def small(slots=2, rows=1, clock=3) -> MemoryState:
    """A memory that has seen a few items."""
    state = memory.empty(rows, slots, ENTRY, CARRY)
    for t in range(clock):
        state = memory.write(state, item_of(t, rows), tf.zeros([rows], tf.int32))
    return state


def test_a_state_is_a_value():
    before = small()
    fork = memory.write(before, item_of(3, 1), tf.constant([1]))
    memory.forget(before, 2), memory.pin(before, 1)
    assert before.ids.numpy().tolist() == [[1, 2]]
    assert fork.ids.numpy().tolist() == [[1, 3]]
    assert before.slots == 2


def test_the_same_memory_gives_the_same_file(tmp_path):
    memory.save(small(), tmp_path / "a")
    memory.save(small(), tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "state"
    memory.save(small(clock=1), path)
    bad = small(clock=2)._replace(entries={"a__b": tf.zeros([1, 2])})
    with pytest.raises(ValueError, match="a__b"):
        memory.save(bad, path)
    assert memory.load(path).clock.numpy().tolist() == [1]
    assert [p.name for p in tmp_path.iterdir()] == ["state"]
    with pytest.raises(FileNotFoundError):
        memory.save(small(), tmp_path / "nowhere" / "state")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A state, and its file's content."""
    path = tmp_path_factory.mktemp("memory") / "state"
    memory.save(small(), path)
    return small(), path.read_bytes()


# -- files that are not what they should be --------------------------------------------------------


def test_load_says_what_is_wrong(tmp_path):
    path = tmp_path / "state"
    with pytest.raises(FileNotFoundError):
        memory.load(path)
    with pytest.raises(IsADirectoryError):
        memory.load(tmp_path)
    foreign = io.BytesIO()
    np.savez(foreign, a=np.zeros(3))
    for content in (b"", b"hello", pickle.dumps({"ids": 1}), foreign.getvalue()):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="not a saved memory, or damaged"):
            memory.load(path)


def test_load_refuses_another_version(tmp_path):
    path = tmp_path / "state"
    memory.save(small(), path)
    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()}
    members["format"] = b"lemn_tf memory, version 2"
    with zipfile.ZipFile(path, "w") as new:
        for name, content in members.items():
            new.writestr(name, content)
    with pytest.raises(
        ValueError, match=r"expected 'lemn_tf memory, version 1'; got '.*version 2'"
    ):
        memory.load(path)
    members["format"] = memory.FORMAT.encode()
    del members["int64/ids"]
    with zipfile.ZipFile(path, "w") as new:
        for name, content in members.items():
            new.writestr(name, content)
    with pytest.raises(ValueError, match=r"missing.*ids"):
        memory.load(path)


def test_load_refuses_another_kind(tmp_path):
    path = tmp_path / "state"
    memory.save(small(rows=3), path)
    assert memory.load(path, like=small(rows=1)).clock.shape == (3,)
    for other in (
        small(slots=3),
        memory.empty(1, 2, ENTRY),
        memory.empty(1, 2, tf.TensorSpec([2], tf.int32), CARRY),
    ):
        with pytest.raises(ValueError, match=r"another kind of memory: expected .* got "):
            memory.load(path, like=other)


@QUICK
@hypothesis.given(data=st.data())
def test_a_damaged_file_is_refused_or_harmless(saved, data, tmp_path_factory):
    state, whole = saved
    content = bytearray(whole)
    path = tmp_path_factory.mktemp("memory") / "state"
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    else:
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    try:
        loaded, refusal = memory.load(path, like=state), ""
    except ValueError as error:
        loaded, refusal = state, str(error)
    assert not refusal or str(path) in refusal
    for one, other in zip(tf.nest.flatten(loaded), tf.nest.flatten(state), strict=True):
        np.testing.assert_array_equal(one, other)


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
        (good["tokens"], ValueError, "nested as the memory's entries: expected .*got"),
        ({"tokens": good["tokens"]}, ValueError, "nested as"),
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
        with pytest.raises(ValueError, match=r"slot must be integers of shape \[B\]; got"):
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


def test_what_is_no_flat_memory():
    flat = memory.to_flat(small())
    with pytest.raises(ValueError, match=r"missing \{'clock'\}"):
        memory.from_flat({k: v for k, v in flat.items() if k != "clock"})
    with pytest.raises(ValueError, match="colour"):
        memory.from_flat({**flat, "colour": tf.zeros([1])})
    with pytest.raises(ValueError, match="at least one entries tensor"):
        memory.from_flat({k: v for k, v in flat.items() if not k.startswith("entries")})
    as_numpy = {k: v.numpy() for k, v in flat.items()}
    assert memory.from_flat(as_numpy).ids.numpy().tolist() == [[1, 2]]


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
