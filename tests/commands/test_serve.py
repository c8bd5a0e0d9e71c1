"""`lemn serve`, in a process of its own."""

import contextlib
import signal
import subprocess
import sys
import time
from concurrent import futures

import pytest
import requests

from lemn_tf import cli


@contextlib.contextmanager
def serving(path, *options):
    """`lemn serve` on free ports: the process, and where its REST is."""
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
        yield process, f"{said[3]}/v1/models/small"
    finally:
        process.kill()
        process.wait()


def test_it_serves_until_told_to_stop(exported):
    with serving(exported.parent, "--label=a=1") as (process, url):
        url = f"{url}/labels/a:predict"
        body = {"instances": [{"sentences": ["Mary went home."], "question": "Where is Mary?"}]}
        assert requests.post(url, json=body).status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == "stopped\n"
        assert process.wait(30) == 0


@pytest.mark.slow
def test_it_stops_in_the_middle_of_heavy_work(exported):
    """Four large requests are under way, which take longer than anybody waits."""
    rows = [{"sentences": ["Mary went home."] * 4000, "question": "Where is Mary?"}] * 60
    limits = ("--most-steps=4000", "--most-items=999999", "--most-bytes=99999999")
    with (
        serving(exported.parent, *limits, "--timeout=120") as (process, url),
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
