"""`lemn serve`, in a process of its own."""

import contextlib
import signal
import subprocess
import sys
import threading
import time
from concurrent import futures

import numpy as np
import pytest
import requests

from lemn_tf import cli
from lemn_tf.export.client import MemoryClient


@contextlib.contextmanager
def serving(path, *options):
    """`lemn serve` on free ports: the process, and where its REST and its gRPC are."""
    command = [sys.executable, "-m", "lemn_tf.cli", "serve", str(path), *options]
    process = subprocess.Popen(
        [*command, "--port=0", "--rest-port=0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        said = process.stdout.readline().split()
        assert said[:2] == ["serving", "small"]
        yield process, f"{said[3]}/v1/models/small", said[5]
    finally:
        process.kill()
        process.wait()


def test_it_serves_until_told_to_stop(exported):
    with serving(exported.parent, "--label=a=1") as (process, url, _):
        url = f"{url}/labels/a:predict"
        body = {"instances": [{"sentences": ["Mary went home."], "question": "Where is Mary?"}]}
        assert requests.post(url, json=body).status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == "stopped\n"
        assert process.wait(30) == 0


def told(client, number: int, seen: list) -> None:
    """Tells a client a sentence, and asks it something now and then."""
    who, where = ("Mary", "John")[number % 2], ("kitchen", "garden", "office")[number % 3]
    seen.append(client.observe(f"{who} went to the {where}."))
    if number % 4 == 3:
        reply = client.ask("Where is Mary?")
        seen.append(
            (reply.text, round(reply.probability, 5), [pair[0].id for pair in reply.evidence])
        )


def answered(url: str) -> int:
    """How many requests a server has answered well, by its metrics."""
    page = requests.get(f"{url.partition('/v1')[0]}/monitoring/prometheus/metrics").text
    counts = [line for line in page.splitlines() if "request_count{" in line and '"OK"' in line]
    return sum(int(float(line.split()[-1])) for line in counts)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["http", "grpc"])
def test_a_replica_that_is_killed_is_not_missed(exported, way):
    """Three servers in turn, of which one is killed in mid-stream: no answer is lost or changed."""
    expected, seen, steps = [], [], 60
    with MemoryClient(str(exported)) as alone:
        for number in range(steps):
            told(alone, number, expected)
        final = alone.state
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(serving(exported.parent)) for _ in range(3)]
        processes, urls, grpcs = zip(*found, strict=True)
        targets = urls if way == "http" else grpcs
        client = stack.enter_context(MemoryClient(targets))
        killer = threading.Timer(0, processes[1].kill)
        for number in range(steps):
            if number == steps // 3:
                killer.start()  # while requests are under way
            told(client, number, seen)
        killer.join()
        assert processes[1].wait(30) == -signal.SIGKILL
        counts = [answered(urls[0]), answered(urls[2])]
    assert seen == expected
    for name, value in final.items():
        np.testing.assert_array_equal(client.state[name], value, err_msg=name)
    assert abs(counts[0] - counts[1]) <= 1 + steps // 10  # in turn
    assert min(counts) > steps // 3


@pytest.mark.slow
def test_it_stops_in_the_middle_of_heavy_work(exported):
    """Four large requests are under way, which take longer than anybody waits."""
    rows = [{"sentences": ["Mary went home."] * 4000, "question": "Where is Mary?"}] * 200
    limits = ("--most-steps=4000", "--most-items=999999", "--most-bytes=99999999")
    with (
        serving(exported.parent, *limits, "--timeout=120") as (process, url, _),
        futures.ThreadPoolExecutor(4) as pool,
    ):
        calls = [
            pool.submit(requests.post, f"{url}:predict", json={"instances": rows}) for _ in "1234"
        ]
        time.sleep(3)
        assert not any(call.done() for call in calls)
        body = {"instances": [{"sentences": ["Mary left."], "question": "Where is Mary?"}]}
        start = time.monotonic()
        assert requests.post(f"{url}:predict", json=body).status_code == 200
        assert time.monotonic() - start < 5, "a small request waited for large ones"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--port", "99999"], "expected a port from 0 to 65535; got '99999'"),
        (["--rest-port", "-1"], "expected a port from 0 to 65535; got '-1'"),
        (["--label", "stable"], "expected LABEL=VERSION, e.g. stable=1; got 'stable'"),
        (["--keep", "0"], "expected a whole number >= 1; got '0'"),
        (["--timeout", "nan"], "expected a number >= 0; got 'nan'"),
    ],
)
def test_a_typo(arguments, message, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["serve", "models", *arguments])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_nothing_to_serve(tmp_path, capsys):
    assert cli.main(["serve", str(tmp_path), "--port", "0", "--rest-port", "0"]) == 2
    assert "expected a SavedModel" in capsys.readouterr().err
