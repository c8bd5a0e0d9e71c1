"""Lines from arrays are the lines that `to_json` writes."""

import json

from lemn_tf.seeing import files
from lemn_tf.seeing.quickly import json_lines
from lemn_tf.seeing.subjects import TextSubject


def test_the_same_lines(preset, stories):
    subject = TextSubject(preset, stories)
    rows = list(range(4))
    traces = subject.traces(rows, hindsight=False)
    seen = subject._examine(None, False)(
        {name: array[rows] for name, array in subject.stories.arrays.items()}
    )
    quick = json_lines(seen, subject.words(seen, rows), rows).splitlines()
    slow = [files.to_json(line) for trace in traces for line in trace]
    assert len(quick) == len(slow) == 4 * (40 + 5)
    for ours, theirs in zip(quick, slow, strict=True):
        ours, theirs = json.loads(ours), json.loads(theirs)
        ours.pop("episode", None)
        assert set(ours) == set(theirs)
        for name, value in theirs.items():
            if name in ("keep", "attention", "margin"):
                several = value if isinstance(value, list) else [value]
                mine = ours[name] if isinstance(value, list) else [ours[name]]
                assert all(abs(a - b) < 1.1e-4 for a, b in zip(mine, several, strict=True))
            else:
                assert ours[name] == value


def test_all_episodes_of_a_file(preset, stories, tmp_path):
    subject = TextSubject(preset, stories)
    path = tmp_path / "all.jsonl"
    with files.writing(path, subject.about()) as writer:
        for text in subject.lines():
            writer.write_lines(text)
    one = subject.traces([7], hindsight=False)[0]
    again = files.read(path, 7)
    assert [step.evicted for step in again.steps()] == [step.evicted for step in one.steps()]
    assert [q.answer for q in again.questions()] == [q.answer for q in one.questions()]
