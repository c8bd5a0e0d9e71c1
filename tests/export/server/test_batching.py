"""Concurrent requests are joined, and nobody suffers for it."""

import asyncio
import threading
import time
from concurrent import futures

import numpy as np
import pytest

from lemn_tf.export.errors import Code, ServingError
from lemn_tf.export.loaded import LoadedModel
from lemn_tf.export.server.batching import Batcher
from lemn_tf.export.server.gate import Gate


class Doubles:
    """Stands in for a signature: doubles `x`, fails on negative numbers, waits for `go`."""

    def __init__(self):
        self.inputs, self.batches, self.calls, self.go = {"x": None}, True, [], threading.Event()
        self.wait = True

    def rows(self, arrays):
        return len(arrays["x"])

    def steps(self, arrays):
        return 1

    def __call__(self, arrays, deadline=None):
        self.calls.append(arrays["x"].shape)
        assert not self.wait or self.go.wait(10)
        if (arrays["x"] < 0).any():
            raise ServingError(Code.INVALID_ARGUMENT, "x: negative")
        return {"y": 2 * arrays["x"]}


def batcher_of(signature, **options):
    """A batcher with threads of its own."""
    return Batcher(signature, futures.ThreadPoolExecutor(16), **options)


def submit(batcher, numbers, deadline=None):
    """A request; gives the future of its entry."""
    told = futures.Future()
    batcher.submit({"x": np.array(numbers)}, deadline, tell, told)
    return told


def tell(entries):
    for entry in entries:
        entry.ticket.set_result(entry)


def ask(batcher, numbers, deadline=None):
    """A request and its result: the outputs, and how many shared the call."""
    return submit(batcher, numbers, deadline).result(10).result()


def waiting_in(batcher):
    return sum(len(lane.queue) for lane in batcher.lanes.values())


def crowd(batcher, arrays, deadline=None):
    """Starts a first call, lets the others queue up behind it, then lets all go; their entries."""
    waiting = []
    for number, array in enumerate(arrays):
        waiting.append(submit(batcher, array, deadline))
        limit = time.monotonic() + 5
        while time.monotonic() < limit and not (
            batcher.signature.calls and waiting_in(batcher) >= number
        ):
            time.sleep(0.001)
    batcher.signature.go.set()
    return [told.result(10) for told in waiting]


def test_requests_that_wait_are_joined():
    batcher = batcher_of(Doubles())
    results = [w.result() for w in crowd(batcher, [[1], [2, 3], [4]])]
    assert [outputs["y"].tolist() for outputs, _ in results] == [[2], [4, 6], [8]]
    assert [batch for _, batch in results] == [1, 2, 2]
    assert batcher.signature.calls == [(1,), (3,)]


def test_one_bad_request_does_not_fail_the_others():
    batcher = batcher_of(Doubles())
    _, good, bad, other = crowd(batcher, [[1], [2], [-3], [4]])
    assert good.result()[0]["y"].tolist() == [4]
    assert other.result()[0]["y"].tolist() == [8]
    with pytest.raises(ServingError, match="negative"):
        bad.result()
    assert batcher.signature.calls == [(1,), (3,), (1,), (1,), (1,)]
    assert ask(batcher, [5])[0]["y"].tolist() == [10]


def test_only_requests_of_one_shape_are_joined_and_only_so_many_rows():
    batcher = batcher_of(Doubles(), batch_rows=3)
    arrays = [[[1]], [[2]], [[3]] * 2, [[4]]]
    results = [w.result() for w in crowd(batcher, arrays)]
    assert [outputs["y"].shape for outputs, _ in results] == [(1, 1), (1, 1), (2, 1), (1, 1)]
    assert sorted(batcher.signature.calls) == [(1, 1), (1, 1), (3, 1)]


def test_nobody_waits_for_a_request_of_another_shape():
    """One that takes for ever has a lane of its own, and so has a large one."""
    batcher = batcher_of(Doubles(), batch_rows=4)
    slow, large = submit(batcher, [[1, 1]]), submit(batcher, [1] * 9)
    limit = time.monotonic() + 5
    while len(batcher.signature.calls) < 2 and time.monotonic() < limit:
        time.sleep(0.001)
    batcher.signature.wait = False
    assert ask(batcher, [5])[0]["y"].tolist() == [10]
    assert not slow.done()
    assert not large.done()
    batcher.signature.go.set()
    assert slow.result(5).result()[0]["y"].tolist() == [[2, 2]]
    assert large.result(5).batch == 1


def test_too_many_large_ones_are_sent_away():
    batcher = batcher_of(Doubles(), batch_rows=4, gate=Gate(inside=1, waiting=1))
    large = [submit(batcher, [1] * 9) for _ in range(2)]
    limit = time.monotonic() + 5
    while batcher.gate._here < 2 and time.monotonic() < limit:
        time.sleep(0.001)
    with pytest.raises(ServingError, match="try later"):
        ask(batcher, [1] * 9)
    batcher.signature.go.set()
    assert [told.result(5).batch for told in large] == [1, 1]
    assert ask(batcher, [1] * 9)[0]["y"].tolist() == [2] * 9


def test_a_leader_waits_for_those_who_ask_again():
    batcher = batcher_of(Doubles())
    crowd(batcher, [[1], [2], [3]])
    batcher.lanes[((),)].took = 10.0  # as if the model were slow: they come well within that time
    with futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda n: ask(batcher, [n]), [4, 5]))
    assert [batch for _, batch in results] == [2, 2]
    assert batcher.signature.calls == [(1,), (2,), (2,)]


def test_a_leader_waits_for_half_of_those_who_are_late():
    batcher = batcher_of(Doubles())
    crowd(batcher, [[n] for n in range(7)])  # 1, then 6
    assert ask(batcher, [4])[1] == 1
    batcher.lanes[((),)].took = 10.0
    with futures.ThreadPoolExecutor(3) as pool:
        results = list(pool.map(lambda n: ask(batcher, [n]), [5, 6, 7]))
    assert [batch for _, batch in results] == [3, 3, 3]


def test_a_leader_soon_stops_waiting_for_those_who_left():
    batcher = batcher_of(Doubles())
    crowd(batcher, [[n] for n in range(9)])
    for _ in range(3):
        assert ask(batcher, [4])[1] == 1
    batcher.lanes[((),)].took = 10.0
    start = time.monotonic()
    assert ask(batcher, [5])[1] == 1
    assert time.monotonic() - start < 30


def test_a_request_that_waited_too_long_is_not_run():
    batcher = batcher_of(Doubles())
    first = submit(batcher, [1])
    second = submit(batcher, [2], time.monotonic() + 0.05)
    time.sleep(0.1)
    batcher.signature.go.set()
    with pytest.raises(ServingError, match="deadline"):
        second.result(5).result()
    assert first.result(5).result()[0]["y"].tolist() == [2]
    assert batcher.signature.calls == [(1,)]


def loop_crowd(batcher, arrays, deadline=None):
    """As `crowd`, from an event loop; results or errors."""

    async def ask_all():
        asked = []
        for number, array in enumerate(arrays):
            run = batcher.run_from_loop({"x": np.array(array)}, deadline)
            asked.append(asyncio.create_task(run))
            while not (batcher.signature.calls and waiting_in(batcher) >= number):
                await asyncio.sleep(0.001)
        batcher.signature.go.set()
        return await asyncio.gather(*asked, return_exceptions=True)

    return asyncio.run(asyncio.wait_for(ask_all(), 20))


def test_requests_from_an_event_loop_are_joined():
    batcher = batcher_of(Doubles())
    results = loop_crowd(batcher, [[1], [2, 3], [4]])
    assert [outputs["y"].tolist() for outputs, _ in results] == [[2], [4, 6], [8]]
    assert [batch for _, batch in results] == [1, 2, 2]
    assert batcher.signature.calls == [(1,), (3,)]


def test_one_bad_request_from_an_event_loop_does_not_fail_the_others():
    batcher = batcher_of(Doubles())
    _, good, bad, other = loop_crowd(batcher, [[1], [2], [-3], [4]])
    assert [good[0]["y"].tolist(), other[0]["y"].tolist()] == [[4], [8]]
    assert isinstance(bad, ServingError)
    assert ask(batcher, [5])[0]["y"].tolist() == [10]  # a thread may ask too


def test_who_gives_up_on_an_event_loop_holds_up_nobody():
    batcher = batcher_of(Doubles(), batch_rows=3)

    async def ask_all():
        def run(numbers):
            return asyncio.create_task(batcher.run_from_loop({"x": np.array(numbers)}, None))

        first, quitter, last = run([1]), run([2, 2]), run([3, 3])
        while waiting_in(batcher) < 2:
            await asyncio.sleep(0.001)
        quitter.cancel()
        batcher.signature.go.set()
        outputs = [(await one)[0]["y"].tolist() for one in (first, last)]
        assert quitter.cancelled()
        return outputs

    assert asyncio.run(asyncio.wait_for(ask_all(), 20)) == [[2], [6, 6]]


def test_a_large_request_does_not_hold_up_the_event_loop():
    batcher = batcher_of(Doubles(), batch_rows=2)

    async def ask_one():
        large = asyncio.create_task(batcher.run_from_loop({"x": np.ones([4])}, None))
        while not batcher.signature.calls:
            await asyncio.sleep(0.001)
        batcher.signature.go.set()
        return (await large)[0]["y"].tolist()

    assert asyncio.run(asyncio.wait_for(ask_one(), 20)) == [2.0] * 4


def test_many_threads(toy):
    model = LoadedModel(toy / "1")
    batcher = batcher_of(model.signature("double"))

    def one(n):
        outputs, batch = ask(batcher, np.full([1 + n % 3, 2], float(n)))
        assert outputs["y"].tolist() == [[2.0 * n] * 2] * (1 + n % 3)
        return batch

    with futures.ThreadPoolExecutor(32) as pool:
        assert max(pool.map(one, range(1000))) > 1
    model.close()
