"""Traces as files: they come back as they were, and their length does not matter."""

import resource
from pathlib import Path

import pytest

from lemn_tf.seeing import files
from lemn_tf.seeing.trace import Step


def test_a_trace_comes_back(trace, tmp_path):
    path = tmp_path / "trace.jsonl"
    assert files.save(trace, path, {"data": "here"}) == 6
    back = files.read(path)
    assert back.about == {"policy": "st-lemn", "slots": 2, "data": "here"}
    assert list(back) == list(trace)
    assert back.why(0) == trace.why(0)
    assert len(path.read_text().splitlines()) == 7


def test_one_episode_of_several(trace, tmp_path):
    with files.TraceWriter(tmp_path / "t.jsonl") as writer:
        for episode in range(3):
            writer.write(Step(0, (-1, 0), (0.0, 1.0), 0, text=f"item {episode}", episode=episode))
    (step,) = files.read(tmp_path / "t.jsonl", 1)
    assert step.text == "item 1"


def test_what_is_no_trace_is_refused(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": 1}\n')
    with pytest.raises(ValueError, match="is not a trace"):
        files.read(path)
    path.write_text('{"format": "lemn_tf trace, version 1"}\nnonsense\n{"t": 0}\n')
    with pytest.raises(ValueError, match="line 2: expected an object"):
        list(files.read(path))
    path.write_text('{"format": "lemn_tf trace, version 1"}\n{"t": 0}\n')
    with pytest.raises(ValueError, match="line 2: "):
        list(files.read(path))
    path.write_text('{"format": "lemn_tf trace, version 1"}\n{"t": 0')
    assert list(files.read(path)) == []  # still being written


def test_a_file_that_fails_is_not_there(tmp_path):
    def lines():
        yield Step(0, (-1, 0), (0.0, 1.0), 0)
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        files.save(lines(), tmp_path / "t.jsonl")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
def test_a_long_trace_needs_little_memory(tmp_path):
    """100,000 items: while they are written and read, only a few megabytes more are in use."""
    ids, keep, used = (1, 2, 3, 4, 5), (0.1, 0.9, 0.9, 0.9, 0.9), [resident()]

    def lines():
        for t in range(100_000):
            old = (t - 4, t - 3, t - 2, t - 1, t) if t >= 4 else (-1,) * (4 - t) + ids[: t + 1]
            yield Step(t, old, keep, 0, 0.8, t >= 4, old[1], f"item {t}")
            if t % 5_000 == 0:
                used.append(resident())

    assert files.save(lines(), tmp_path / "long.jsonl") == 100_000
    trace = files.read(tmp_path / "long.jsonl")
    assert "left at t=99990" in trace.why(99_986)
    used += [resident() for step in trace.steps() if step.t % 5_000 == 0]
    assert max(used) - used[0] < 20e6, used


def resident() -> int:
    """Bytes of memory in use now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
