"""Workers: who they are, how they meet, and which shards each computes."""

import threading

import pytest

from lemn_tf.experiments.crew import free_ports
from lemn_tf.learning import workers


@pytest.mark.parametrize(
    "text",
    [
        "two",
        "{}",
        '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}}',
        '{"cluster": {"chief": ["a:1"], "worker": []}, "task": {"type": "chief", "index": 0}}',
    ],
)
def test_what_is_no_list_of_workers_is_refused(text):
    with pytest.raises(ValueError, match=r"TF_CONFIG: expected workers only, such as .* got"):
        workers.read_config(text)


def test_every_shard_is_computed_by_one_worker():
    crew = []
    for rank in range(3):
        one = workers.Workers()
        one.rank, one.count = rank, 3
        crew.append(one)
    assert [number for one in crew for number in one.share(6)] == list(range(6))
    with pytest.raises(ValueError, match="expected shards that 3 workers can share, got 4"):
        crew[0].share(4)


def test_workers_wait_for_each_other():
    addresses = [f"127.0.0.1:{port}" for port in free_ports(3)]
    there: list[int] = []

    def come(rank):
        workers.meet(addresses, rank, seconds=30)
        there.append(rank)

    others = [threading.Thread(target=come, args=(rank,)) for rank in (1, 2)]
    for thread in others:
        thread.start()
    assert there == []
    come(0)
    for thread in others:
        thread.join()
    assert sorted(there) == [0, 1, 2]


@pytest.mark.parametrize("rank", [0, 1])
def test_nobody_waits_for_ever(rank):
    addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
    with pytest.raises(workers.WorkerLost, match=f"worker {rank + 1} of 2 waited 0 s for"):
        workers.meet(addresses, rank, seconds=0.3)
