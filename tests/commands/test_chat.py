"""`lemn chat`."""

import io
import shutil

from lemn_tf import cli, runs


def test_through_a_pipe(exported, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("Mary took the milk.\nWhere is the milk?\n"))
    file = str(tmp_path / "memory")
    assert cli.main(["chat", str(exported), "--save", file]) == 0
    said = capsys.readouterr().out
    assert "memory: 1 of 5 slots" in said
    assert "100%  0 Mary took the milk." in said
    monkeypatch.setattr("sys.stdin", io.StringIO("/memory\n"))
    assert cli.main(["chat", str(exported), "--load", file]) == 0
    assert "Mary took the milk." in capsys.readouterr().out


def test_nothing_to_talk_to(tmp_path, capsys):
    for target in ("ftp://example", str(tmp_path)):
        assert cli.main(["chat", target]) == 2
        assert capsys.readouterr().err.startswith("lemn: error: ")


def test_what_is_not_exported_yet(tmp_path, capsys):
    for name in ("babi-noisy-st-lemn-5", "documents-lite-st-lemn-10-aware"):
        assert cli.main(["chat", name]) == 2
        assert f"lemn export {name} --out DIR/1" in capsys.readouterr().err
    assert cli.main(["chat", "imaze-mqn-st-lemn-4"]) == 2
    said = capsys.readouterr().err
    assert "acts in a world; it does not talk" in said
    assert "lemn play imaze-mqn-st-lemn-4" in said
    for name, shown in (("imaze-mqn-st-lemn-4", True), ("babi-noisy-st-lemn-5", False)):
        run = tmp_path / name
        run.mkdir()
        shutil.copy(runs.presets()[name].path, run / "model.keras")
        for target in (run, run / "model.keras"):
            assert cli.main(["chat", str(target)]) == 2
            said = capsys.readouterr().err
            assert (f"lemn play {target}" if shown else f"lemn export {target}") in said


def test_a_server_that_is_not_there(capsys, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # between the attempts
    for target in ("http://127.0.0.1:9", "grpc://127.0.0.1:9"):
        assert cli.main(["chat", target]) == 2
        assert f"no server answers at {target}: is it running?" in capsys.readouterr().err
