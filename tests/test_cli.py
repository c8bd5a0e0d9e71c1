"""The `lemn` command: what it prints, its exit codes, and that a typo gives no traceback."""

import pytest

import lemn_tf
from lemn_tf import cli


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
    ],
)
def test_a_typo(arguments, message, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_bad_input_is_one_line(capsys):
    assert cli.main(["demo", "--variant", "loud"]) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error == "lemn: error: expected a variant of original, noisy, large, got 'loud'"


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (FileNotFoundError(2, "No such file or directory", "x.txt"), 2, "directory: 'x.txt'"),
        (ValueError("too small"), 2, "lemn: error: too small"),
        (KeyboardInterrupt(), 130, "lemn: stopped"),
    ],
)
def test_commands_are_added_by_a_decorator(raised, code, said, capsys, monkeypatch):
    monkeypatch.setattr(cli, "COMMANDS", dict(cli.COMMANDS))

    @cli.command
    class Fail:
        name, help = "fail", "fails"

        def add_arguments(self, parser):
            parser.add_argument("path")

        def run(self, arguments):
            assert arguments.path == "x.txt"
            raise raised

    assert cli.main(["fail", "x.txt"]) == code
    assert said in capsys.readouterr().err


def test_demo(capsys):
    assert cli.main(["demo", "--episodes", "3", "--slots", "4"]) == 0
    out = capsys.readouterr().out
    for expected in ("Where is", "●", "3 stories (noisy), 15 questions, 4 slots", "untrained"):
        assert expected in out
    for name in lemn_tf.retention.NAMES:
        assert name in out
