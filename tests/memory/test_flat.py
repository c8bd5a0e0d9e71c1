"""A memory goes flat and comes back, whatever nests it holds."""

import hypothesis
import pytest
import tensorflow as tf
from hypothesis import strategies as st

from lemn_tf import memory
from tests.memory.conftest import QUICK, small

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
@hypothesis.given(entry=NESTS, carry=NESTS | st.just(()), stream=NESTS | st.just(()))
def test_any_nest_goes_flat_and_back_or_is_refused(entry, carry, stream, tmp_path_factory):
    def spec(dtype):
        return tf.TensorSpec([2], dtype)

    nests = (entry, carry, stream)
    state = memory.empty(1, 2, *(tf.nest.map_structure(spec, nest) for nest in nests))
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
