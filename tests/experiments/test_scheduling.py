"""Jobs as processes: what is run, what is said of it, and how it is stopped."""

import sys
import time

from lemn_tf.experiments import scheduling

SCRIPT = "import sys; print(sys.argv[1]); sys.exit(sys.argv[1] == 'bad')"


def test_processes_say_how_they_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(scheduling, "LEMN", (sys.executable, "-c", SCRIPT))
    ended: dict[str, bool] = {}
    with scheduling.Processes(2, tmp_path / "xla") as scheduler:
        for name in ("good", "bad"):
            scheduler.start(scheduling.Job(name, (name,), tmp_path / f"{name}.log"))
        deadline = time.time() + 60
        while len(ended) < 2 and time.time() < deadline:
            ended |= scheduler.ended()
            time.sleep(0.05)
        assert scheduler.ended() == {}  # each is told of once
    assert ended == {"good": True, "bad": False}
    assert (tmp_path / "bad.log").read_text() == "bad\n"
