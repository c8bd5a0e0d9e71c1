"""The `lemn` command: what it prints, its exit codes, and that a typo gives no traceback."""

import os
import subprocess
import sys
import textwrap

import pytest

import lemn_tf
from lemn_tf import cli
from lemn_tf.commands import common

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


def test_typing_mistakes_load_nothing_heavy(tmp_path):
    served = tmp_path / "empty" / "babi"
    (served / "1").mkdir(parents=True)
    (served / "1" / "saved_model.pb").touch()
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
        ["report", "babi-noisy-st-lemn-5", "--data", "nowhere.txt", "--out", "r.html"],
        ["report", "nowhere", "--out", "r.html"],
        ["trace", "babi-noisy-st-lemn-5", "--data", __file__],
        ["play", "imaze-mqn-st-lemn-4", "--out", "nowhere/x.gif"],
        ["reproduce", "babi", "--rows", "nix"],
        ["data", "babi", "--variant", "loud", "--out", "d"],
        ["train", "babi", "--train", __file__, "--valid", __file__, "--out", "r", "--shards", "3"],
        [
            "train",
            "babi",
            "--train",
            __file__,
            "--valid",
            __file__,
            "--out",
            "r",
            "--phases",
            "x=1",
        ],
        ["evaluate", "babi-noisy-st-lemn-5"],
        ["compare", "babi-noisy-st-lemn-5"],
        ["play", "babi-noisy-st-lemn-5", "--out", "x.gif"],
        ["sweep", "babi", "--param", "loud=1"],
        ["serve", str(served), "--label", "stable=7"],
        ["chat", str(tmp_path)],
    ):
        command = [sys.executable, "-c", textwrap.dedent(script), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_the_variants_are_those_of_the_generator():
    from lemn_tf.pipelines import babi_generator

    assert common.VARIANTS == babi_generator.VARIANTS


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
        (["demo", "--variant", "loud"], "invalid choice: 'loud'"),
        (["data", "babi", "--variant", "loud", "--out", "d"], "invalid choice: 'loud'"),
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
        (["evaluate", "nix", "--data", "x"], "no run, .keras file or preset called 'nix'"),
        (
            ["compare", "imaze-mqn-st-lemn-4", "--data", "x"],
            "expected a model that answers questions",
        ),
        (
            ["evaluate", "babi-noisy-st-lemn-5", "--lengths", "4"],
            "--lengths: meant for agents",
        ),
        (
            ["evaluate", "babi-noisy-st-lemn-5", "--data", "x", "--count", "9", "--seed", "0"],
            "--count, --seed: meant for agents",
        ),
        (["reproduce", "babi", "--rows", "nix"], "unknown rows ['nix']; known are fifo"),
        ([*TRAIN, "--policy", "nix"], "unknown policy 'nix'; known are fifo"),
        ([*TRAIN, "--phases", "dream=5"], "this recipe has no phase 'dream' for such a policy"),
        ([*TRAIN, "--policy", "oracle"], "oracle needs labels: expected a policy that works"),
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
        (FileNotFoundError(2, "No such file", "x.txt"), 2, "lemn: error: x.txt: No such file\n"),
        (OSError("no room"), 2, "lemn: error: no room\n"),
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
