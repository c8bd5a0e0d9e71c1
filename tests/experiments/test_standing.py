"""How far runs are, read from their folders."""

import json

from lemn_tf.experiments import standing


def test_a_run_is_told_from_its_folder(tmp_path, capsys, monkeypatch):
    assert standing.standing(tmp_path) == "not validated yet"
    line = {"phase": "policy", "phase_index": 1, "episodes": 8000, "best": 0.9314, "seconds": 125}
    text = json.dumps(line) + "\n" + '{"phase": "unfin'  # as a killed process may leave it
    (tmp_path / "history.jsonl").write_text(text)
    told = "policy, 8,000 episodes, best 0.931, 2 min"
    assert standing.standing(tmp_path) == told
    phases = {"phases": [{"episodes": 9}, {"episodes": 40000}]}
    (tmp_path / "config.json").write_text(json.dumps(phases))
    told = "policy, 8,000 of 40,000 episodes, best 0.931, 2 min"
    assert standing.standing(tmp_path) == told
    view = standing.View(terminal=False)
    view.show({"cell": tmp_path})
    assert capsys.readouterr().err == ""  # not yet time
    monkeypatch.setattr(standing, "SELDOM", 0.0)
    view.show({"cell": tmp_path})
    assert capsys.readouterr().err == f"running: cell: {told}\n"


def test_a_terminal_shows_lines_that_renew_themselves(tmp_path, capsys):
    view = standing.View(terminal=True)
    view.show({"cell": tmp_path})
    view.tell("one ended")
    view.close()
    said = capsys.readouterr().err
    assert "cell" in said
    assert "one ended" in said
