"""The `lemn` command: what it prints, its exit codes, and that a typo gives no traceback."""

import os
import subprocess
import sys
import textwrap

import pytest

import lemn_tf
from lemn_tf import cli

TRAIN = ["train", "babi", "--train", "x", "--valid", "x", "--out", "o"]


def test_not_a_word_of_tensorflow(tmp_path):
    """A command that loads everything prints its own message, and nothing else."""
    (tmp_path / "empty.txt").touch()
    options = ["babi-noisy-st-lemn-5", "--data", str(tmp_path / "empty.txt")]
    done = subprocess.run(
        [sys.executable, "-m", "lemn_tf.cli", "evaluate", *options],
        capture_output=True,
        text=True,
        check=False,
        env={k: v for k, v in os.environ.items() if not k.startswith("TF_")},
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"lemn: error: {tmp_path / 'empty.txt'}: expected")
    assert done.stderr.count("\n") == 1


def test_typing_mistakes_load_nothing_heavy():
    script = """
        import sys
        from lemn_tf import cli
        try:
            cli.main(sys.argv[1:])
        except SystemExit:
            pass
        heavy = {"tensorflow", "keras", "numpy", "numba", "matplotlib", "tf_agents", "uvicorn"}
        assert not heavy & set(sys.modules), heavy & set(sys.modules)
    """
    for arguments in (
        ["--help"],
        ["train", "babi", "--slots", "x"],
        ["serve", "--port", "none"],
        [*TRAIN[:3], "nowhere.txt", *TRAIN[4:]],
        ["evaluate", "nowhere", "--data", "x"],
        ["compare", "babi-noisy-st-lemn-5", "--data", "nowhere.txt"],
        ["export", "nowhere", "--out", "models/babi/1"],
        ["play", "nowhere", "--out", "x.gif"],
        ["serve", "nowhere"],
    ):
        command = [sys.executable, "-c", textwrap.dedent(script), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_help_and_version(capsys):
    for option, expected in (("--help", "demo"), ("--version", f"lemn_tf {lemn_tf.__version__}")):
        with pytest.raises(SystemExit) as stop:
            cli.main([option])
        assert stop.value.code == 0
        assert expected in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "required: command"),
        (["dmeo"], "invalid choice: 'dmeo'"),
        (["demo", "--slots", "0"], "expected a whole number >= 1; got '0'"),
        (["demo", "--episodes", "many"], "expected a whole number >= 1; got 'many'"),
        (["train", "babi", "--train", "x"], "required: --valid, --out"),
        (["train", "maze", "--env", "tower"], "invalid choice: 'tower'"),
        ([*TRAIN, "--recipe", "nix"], "invalid choice: 'nix'"),
        ([*TRAIN, "--reward", "nix"], "invalid choice: 'nix'"),
        ([*TRAIN, "--phases", "reader"], "expected a whole number >= 1; got ''"),
        (["bench", "sleep"], "invalid choice: 'sleep'"),
        (
            ["train", "maze", "--out", "o", "--episodes", "0"],
            "expected a whole number >= 1; got '0'",
        ),
        (["evaluate", "x", "--temperature", "nan"], "expected a number >= 0; got 'nan'"),
    ],
)
def test_a_typo(arguments, message, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "--variant", "loud"], "expected a variant of original, noisy, large, got 'loud'"),
        (["evaluate", "nix", "--data", "x"], "no run, .keras file or preset called 'nix'"),
        (
            ["compare", "imaze-mqn-st-lemn-4", "--data", "x"],
            "is a maze agent: expected a model that",
        ),
        (
            ["evaluate", "babi-noisy-st-lemn-5", "--lengths", "4"],
            "--lengths: meant for maze agents",
        ),
        (
            ["evaluate", "babi-noisy-st-lemn-5", "--data", "x", "--count", "9", "--seed", "0"],
            "--count, --seed: meant for maze agents",
        ),
        (["reproduce", "babi", "--rows", "nix"], "unknown rows ['nix']; known are fifo"),
        ([*TRAIN, "--policy", "nix"], "unknown policy 'nix'; known are fifo"),
        ([*TRAIN, "--phases", "dream=5"], "this recipe has no phase 'dream' for such a policy"),
        ([*TRAIN, "--policy", "oracle"], "oracle goes by labels: expected a policy that works"),
        (
            [*TRAIN, "--policy", "im-lemn", "--hidden", "7"],
            "--hidden: meant for s-lemn, st-lemn",
        ),
        (
            [*TRAIN, "--policy", "lru", "--trainer", "a2c"],
            "--trainer: meant for im-lemn, s-lemn",
        ),
        (
            [*TRAIN, "--policy", "fifo", "--no-room"],
            "--no-room: meant for im-lemn, s-lemn",
        ),
        ([*TRAIN, "--policy", "fifo", "--entropy", "0"], "--entropy: meant for im-lemn, s-lemn"),
        ([*TRAIN, "--shards", "3"], "expected shards that divide a batch of 32, got 3"),
        (["bench", "train", "--shards", "3"], "expected shards that divide a batch of 64, got 3"),
    ],
)
def test_bad_input_is_one_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").touch()
    assert cli.main(arguments) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("lemn: error: ")
    assert message in error


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (FileNotFoundError(2, "No such file or directory", "x.txt"), 2, "directory: 'x.txt'"),
        (ValueError("too small"), 2, "lemn: error: too small"),
        (KeyboardInterrupt(), 130, "lemn: stopped"),
    ],
)
def test_errors_of_a_command(raised, code, said, capsys, monkeypatch):
    class Fail:
        name, help = "fail", "fails"

        def add_arguments(self, parser):
            parser.add_argument("path")

        def run(self, arguments):
            assert arguments.path == "x.txt"
            raise raised

    monkeypatch.setattr(cli, "COMMANDS", {"fail": Fail()})
    assert cli.main(["fail", "x.txt"]) == code
    assert said in capsys.readouterr().err
