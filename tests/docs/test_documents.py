"""docs/documents.md: its code runs, over a few documents in the places that it names."""

import contextlib
import re
from pathlib import Path

from tests.experiments.conftest import corpus

PAGE = Path(__file__).parents[2] / "docs" / "documents.md"


def test_the_page_runs(tmp_path):
    made = corpus(tmp_path / "squad")
    (tmp_path / "squad" / "qa").mkdir(exist_ok=True)
    questions = tmp_path / "squad" / "qa" / "wikipedia-train.json"
    questions.write_bytes(Path(made.qa).read_bytes())
    vectors = tmp_path / "glove.6B.100d.txt"
    vectors.write_text("".join(f"{word} 0.5 -0.25\n" for word in ("the", "gate", "red", "blue")))
    names: dict = {}
    with contextlib.chdir(tmp_path):
        for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
            exec(compile(block, str(PAGE), "exec"), names)
        batch = next(iter(names["data"]))
    assert batch["length"].shape[0] == 8
    assert sum(names["counts"].values()) >= 30
