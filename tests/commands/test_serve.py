"""`lemn serve`, in a process of its own."""

import signal
import subprocess
import sys

import pytest
import requests

from lemn_tf import cli


def test_it_serves_until_told_to_stop(exported):
    command = [sys.executable, "-m", "lemn_tf.cli", "serve", str(exported.parent)]
    process = subprocess.Popen(
        [*command, "--port=0", "--rest-port=0", "--label=a=1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        said = process.stdout.readline().split()
        assert said[:2] == ["serving", "small"]
        url = f"{said[3]}/v1/models/small/labels/a:predict"
        body = {"instances": [{"sentences": ["Mary went home."], "question": "Where is Mary?"}]}
        assert requests.post(url, json=body).status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == "stopped\n"
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()


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
