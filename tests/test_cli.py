"""The `lemn` command: what it prints, its exit codes, and that a typo gives no traceback."""

import json
import os
import re
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
    cut = tmp_path / "cut.txt"
    cut.write_text("1 Mary got the milk.\nMary went to the garden.\n")
    options = ["babi-noisy-st-lemn-5", "--data", str(cut)]
    done = subprocess.run(
        [sys.executable, "-m", "lemn_tf.cli", "evaluate", *options],
        capture_output=True,
        text=True,
        check=False,
        env={k: v for k, v in os.environ.items() if not k.startswith("TF_")},
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"lemn: error: {cut}, line 2: expected")
    assert done.stderr.count("\n") == 1


STORIES = f"--train {__file__} --valid {__file__} --out r"
WRONG = [
    line.split()
    for line in f"""
    train babi --slots x
    train babi --train nowhere.txt --valid x --out o
    train babi {STORIES} --shards 3
    train babi {STORIES} --shards 4 --workers 3
    train babi {STORIES} --phases x=1
    train babi {STORIES} --slots 10 --phases roomy=5
    train babi {STORIES} --policy nosuch
    train babi {STORIES} --policy oracle
    train babi {STORIES} --policy salient
    train babi {STORIES} --policy lru --trainer a2c
    train babi --train {__file__} --valid {__file__} --out {__file__}
    train maze --policy nosuch --out r
    train maze --maps nowhere.jsonl --env single-indicator --out r
    train maze --start-from nosuch --out r
    train maze --env single-indicator --generated 0 --out r
    train world --env CartPole-v1 --policy nosuch --out r
    train world --env CartPole-v1 --import nosuch --out r
    train documents --qa nowhere --evidence . --embeddings nowhere --out r
    train documents --qa {__file__} --evidence . --embeddings {__file__} --policy nosuch --out r
    train babi {STORIES} --slots 99999999999
    train babi {STORIES} --seed 99999999999999999999
    train babi {STORIES} --phases ,
    train babi {STORIES} --competent 101
    train babi {STORIES}
    train babi --train {__file__} --valid {__file__} --out=
    train maze --start-from babi-noisy-st-lemn-5 --out r
    reproduce babi --cell nosuch
    reproduce babi --presets {__file__}
    reproduce documents babi-noisy-st-lemn-5 --sets .
    reproduce documents documents-lite-st-lemn-10 --sets .
    reproduce triviaqa --qa . --evidence . --embeddings {__file__}
    sweep babi --param entropy=-1
    sweep babi --param rollouts=0
    sweep babi --param reward=nosuch
    sweep babi --param units=2
    sweep babi --param entropy=0.1 --cell nosuch
    report babi-noisy-st-lemn-5 --data {__file__} --out=
    demo --policy nosuch
    demo --policy fifo
    demo --shards 3
    bench train --policy nosuch
    bench train --shards 3
    data babi --variant loud --out d
    data babi --out {__file__}
    data maze --env imaze --count 3 --out x.jsonl
    evaluate nowhere --data x
    evaluate babi-noisy-st-lemn-5
    evaluate babi-noisy-st-lemn-5 --data {__file__}
    evaluate babi-noisy-st-lemn-5 --data {__file__} --policy nosuch
    evaluate babi-noisy-st-lemn-5 --data {__file__} --policy s-lemn
    evaluate babi-noisy-st-lemn-5 --qa {__file__} --evidence .
    evaluate imaze-mqn-st-lemn-4 --env nosuch
    evaluate imaze-mqn-st-lemn-4 --policy oracle
    evaluate documents-lite-st-lemn-10 --data {__file__}
    evaluate documents-lite-st-lemn-10 --qa {__file__} --evidence nowhere
    compare babi-noisy-st-lemn-5
    compare babi-noisy-st-lemn-5 --data nowhere.txt
    compare babi-noisy-st-lemn-5 --data {__file__}
    compare babi-noisy-st-lemn-5 --data {__file__} --policies fifo,nosuch
    compare babi-noisy-st-lemn-5 --data {__file__} --policies s-lemn
    compare babi-noisy-st-lemn-5 --data {__file__} --figure x.bmp
    compare imaze-mqn-st-lemn-4 --data {__file__}
    report nowhere --out r.html
    report babi-noisy-st-lemn-5 --data nowhere.txt --out r.html
    report babi-noisy-st-lemn-5 --data {__file__} --out r.html
    report babi-noisy-st-lemn-5 imaze-mqn-st-lemn-4 --data {__file__} --out r.html
    trace babi-noisy-st-lemn-5 --data {__file__}
    trace babi-noisy-st-lemn-5 --out x.jsonl
    trace babi-noisy-st-lemn-5 --data {__file__} --out x.jsonl
    play nowhere --out x.gif
    play babi-noisy-st-lemn-5 --out x.gif
    play imaze-mqn-st-lemn-4 --out nowhere/x.gif
    play imaze-mqn-st-lemn-4 --out x.bmp
    reproduce babi --rows nix
    reproduce babi --data nowhere
    reproduce maze --policies nosuch
    reproduce worlds --rows nosuch
    reproduce documents documents-lite-st-lemn-10 --sets nowhere
    reproduce triviaqa --qa . --evidence . --embeddings {__file__} --rows nosuch
    sweep babi --param loud=1
    sweep babi --param policy=nosuch
    sweep babi --param slots=0
    export nowhere --out models/babi/1
    export babi-noisy-st-lemn-5 --out models/babi/99999999999999999999
    bench evaluate --shards 3 --batch 4
    serve --port none
    serve . --name a/b
    serve nowhere
    chat DIR
    """.splitlines()
    if line.strip()
]
"""Command lines with something wrong, each known before TensorFlow is needed."""


def test_typing_mistakes_load_nothing_heavy(tmp_path):
    served = tmp_path / "empty" / "babi"
    (served / "1").mkdir(parents=True)
    (served / "1" / "saved_model.pb").touch()
    key = tmp_path / "key"
    key.write_text("short")
    script = """
        import json, sys
        from lemn_tf import cli
        heavy = {"tensorflow", "keras", "numpy", "numba", "matplotlib", "tf_agents", "uvicorn"}
        for arguments in json.loads(sys.argv[1]):
            try:
                code = cli.main(arguments)
            except SystemExit as end:
                code = end.code
            assert code == (0 if "--help" in arguments else 2), (code, arguments)
            assert not heavy & set(sys.modules), (heavy & set(sys.modules), arguments)
    """
    story = tmp_path / "story.txt"
    story.write_text("1 Mary got the milk.\n2 Where is it?\tgarden\t1\n")
    wrong = [[str(tmp_path) if one == "DIR" else one for one in arguments] for arguments in WRONG]
    bad = ("--label stable=7", "--timeout 0", "--port 8500 --rest-port 8500", f"--state-key {key}")
    wrong += [["serve", str(served), *options.split()] for options in bad]
    shown = ["trace", "babi-noisy-st-lemn-5", "--data", str(story), "--why"]
    wrong += [[*shown, "1"], [*shown, "0", "--episode", "1"]]
    command = [sys.executable, "-c", textwrap.dedent(script), json.dumps([*wrong, ["--help"]])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_world_that_nobody_knows_is_found_without_tensorflow():
    script = """
        import sys
        from lemn_tf import cli
        assert cli.main("train world --env NoSuch-v0 --out r".split()) == 2
        assert "tensorflow" not in sys.modules
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "`NoSuch` doesn't exist. If another package has it, say --import MODULE" in done.stderr


def test_a_policy_of_ones_own_is_known_to_the_command(monkeypatch, capsys, tmp_path):
    from lemn_tf import retention

    monkeypatch.setattr(retention, "_POLICIES", dict(retention._POLICIES))

    @retention.register("mine")
    class Mine(retention.RetentionPolicy):
        def score(self, seen, cells, carry):
            return self.opinion(cells.vectors[..., 0])

    (tmp_path / "x").touch()
    told = [*TRAIN[:3], str(tmp_path / "x"), "--valid", str(tmp_path / "x"), "--out", "o"]
    assert cli.main([*told, "--policy", "mine", "--trainer", "a2c"]) == 2
    assert re.search(r"--trainer: meant for im-lemn, .*got mine", capsys.readouterr().err)
    assert cli.main([*told, "--policy", "yours"]) == 2
    assert "unknown policy 'yours'; known are fifo" in capsys.readouterr().err


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
        ([*TRAIN, "--phases", "reader"], "expected NAME=EPISODES,...; got 'reader'"),
        ([*TRAIN, "--phases", "reader=0"], "expected a whole number >= 1; got '0'"),
        ([*TRAIN, "--slots", "65537"], "expected a whole number <= 65536; got '65537'"),
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
    told = capsys.readouterr().err
    assert told.startswith("lemn: error: ")
    assert message in told
    assert told.count("\n") == 1


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
