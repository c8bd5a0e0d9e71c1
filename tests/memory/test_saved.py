"""The file of a memory: whole or refused, and never larger than it says."""

import io
import pickle
import zipfile

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st

from lemn_tf import memory
from tests.memory.conftest import CARRY, ENTRY, QUICK, small


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


# -- files that would grow ------------------------------------------------------------------------


def repacked(path, changes):
    """The file of a memory with other contents under some of its names."""
    memory.save(small(), path)
    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()} | changes
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in members.items():
            new.writestr(name, content)


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path):
    path = tmp_path / "state"
    repacked(path, {"int64/clock": bytes(20_000_000)})
    assert path.stat().st_size < 100_000
    with pytest.raises(ValueError, match=r"expected at most 1,000,000 bytes; unpacks to 20,"):
        memory.load(path, limit=1_000_000)


def test_a_tensor_that_claims_more_than_it_holds_is_refused(tmp_path):
    path = tmp_path / "state"
    claim = tf.make_tensor_proto(1, tf.int64, shape=[1 << 27], allow_broadcast=True)
    assert len(claim.SerializeToString()) < 100
    repacked(path, {"int64/clock": claim.SerializeToString()})
    with pytest.raises(ValueError, match=r"expected 1073741824 bytes in clock"):
        memory.load(path)
    claim = tf.make_tensor_proto("", tf.string, shape=[1 << 27], allow_broadcast=True)
    repacked(path, {"string/entries__text": claim.SerializeToString()})
    with pytest.raises(ValueError, match="strings in entries__text"):
        memory.load(path)


@pytest.mark.parametrize("dtype", ["variant", "resource"])
def test_what_is_no_plain_tensor_is_refused(tmp_path, dtype):
    path = tmp_path / "state"
    claim = tf.make_tensor_proto(1, tf.int64)
    claim.dtype = tf.as_dtype(dtype).as_datatype_enum
    repacked(path, {f"{dtype}/entries__more": claim.SerializeToString()})
    with pytest.raises(ValueError, match="expected a tensor of plain"):
        memory.load(path)
