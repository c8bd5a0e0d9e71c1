"""The table over documents: memories that hold the answer, rules that know the question, cells."""

import dataclasses
import json
import shutil
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from lemn_tf.experiments import documents, documents_training
from lemn_tf.experiments import documents_report as report
from lemn_tf.experiments import documents_table as table
from lemn_tf.experiments.documents_evidence import Evidence
from lemn_tf.experiments.documents_words import ARRIVAL, PARAGRAPH
from lemn_tf.pipelines import documents as files


class _Text:
    """A document whose text is "0123456789..." however long it is asked for."""

    def between(self, start, end):
        return str(start) if end > start else ""


def side() -> table.Side:
    """Two documents of 12 slots; slot j says j, and question q is answered by slots q and q + 6."""
    documents = []
    for number in range(2):
        holds = np.zeros([3, 12], bool)
        holds[[0, 1, 0, 1], [0, 1, 6, 7]] = True  # nothing answers the third
        best = np.where(holds, 5.0, 0.0) + 0.01 * np.arange(12)
        spans = np.tile(np.stack([np.arange(12), np.arange(1, 13)], axis=-1), [3, 1, 1])
        documents.append(
            Evidence(
                name=f"{number}",
                vectors=np.zeros([12, 2], np.float32),
                lexical=np.zeros([12, 6], np.float32),
                right=best,
                total=best,
                best=best,
                holds=holds,
                shared=np.tile(np.arange(12.0), [3, 1]),
                spans=spans,
                questions=np.arange(3),
            )
        )
    asked = [SimpleNamespace(normalized_aliases=(f"{q}", f"{q + 6}")) for q in range(3)]

    class Collection:
        entries = tuple(SimpleNamespace(name=f"{n}") for n in range(2))
        questions = asked

        def __getitem__(self, index):
            return _Text()

    return table.Side(Collection(), documents, {"hand": slice(0, 1), "sentence": slice(1, 2)})


def test_a_side_can_be_seen_in_parts():
    one = side()
    one.documents[0].vectors[:] = [3, 4]
    assert one.seen(["sentence"])[0].vectors.tolist() == [[4]] * 12
    assert one.seen(["sentence", "hand"])[0].vectors.tolist() == [[4, 3]] * 12


def test_memories_that_hold_the_answer():
    told = table.holding(side(), slots=3)
    assert len(told["exact"]) == 4  # the third question of each document has no slot to hold
    assert told["in_memory"] == [1.0] * 4
    assert told["exact"] == [1.0] * 4
    assert table.holding(side(), slots=3, seed=0) == told


@pytest.mark.parametrize(("rule", "kept"), [("overlap", [9, 10, 11]), ("best-span", [0, 6, 11])])
def test_rules_that_know_the_question(rule, kept):
    found = table.aware_rule(side(), 3, rule)
    assert found[0][0].tolist() == kept
    assert table.aware_rule(side(), 0.25, rule)[1][0].tolist() == kept


def test_the_rule_that_keeps_what_paragraphs_begin_with():
    one = side()
    far = np.zeros([12, ARRIVAL], np.float32)
    far[:, ARRIVAL - PARAGRAPH + 4] = [1, 2, 3, 4, 1, 2, 3, 1, 2, 3, 4, 5]
    seen = [dataclasses.replace(document, vectors=far) for document in one.documents]
    one = dataclasses.replace(one, documents=seen, parts={"slot": slice(0, ARRIVAL)})
    assert [ids.tolist() for ids in table.opening(one, 4)] == [[0, 1, 4, 7]] * 2
    assert [len(ids) for ids in table.opening(one, 0.5)] == [6, 6]


def test_documents_are_spread_over_the_file(towns):
    collection = files.read(towns.qa, towns.evidence)
    part = table.spread(collection, 18)
    assert [part.entries[0], part.entries[-1]] == [collection.entries[0], collection.entries[-1]]
    assert len(part) == 3
    assert table.spread(collection, None) is table.spread(collection, 10**6) is collection


def test_cells_are_not_run_again_and_make_the_page(tmp_path):
    cells, told = table.KeeperTable(tmp_path / "documents"), []

    def run(name, make):
        asked = ("reproduce", "documents", "towns")
        cells.run_here([table.KeeperCell(name, make, asked)], told.append)

    whole = table.summary(table.marks(side(), [np.arange(12)] * 2))
    some = table.summary(table.marks(side(), [np.arange(2)] * 2))
    assert whole["in_memory"] == pytest.approx(66.67)
    run("towns-whole", lambda: whole)
    run("towns-holding", lambda: table.summary(table.holding(side(), 3)))
    run("towns-10-fifo", lambda: some)
    run("towns-10-fifo", lambda: pytest.fail("it has a result"))
    run("towns-10-folds", lambda: {"shares": {"word vectors alone": 33.3}})
    assert len(told) == 4
    assert told[-2].startswith("towns-10-fifo: exact ")
    record = json.loads((tmp_path / "documents" / "towns-10-fifo.json").read_text())
    assert record["documents"] == some["documents"]
    assert record["command"] == "lemn reproduce documents towns"
    assert record["commit"]
    assert record["seconds"] >= 0
    text = report.write(tmp_path).read_text()
    assert "From ten random slots, one of which holds an answer: EM 100.0" in text
    assert "| fifo | 66.7 |" in text
    assert "- word vectors alone: 33.3" in text


class _Quick:
    """The rows of a set, without what they stand for."""

    views: ClassVar = {"": table.OWN}

    def __init__(self, side, context):
        if context:
            self.views = {**self.views, "minilm-": (*table.OWN, "sentence")}

    def __getattr__(self, name):
        return lambda *arguments: {"in_memory": 0.0}


def test_one_seed_of_every_set_comes_before_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "_Rows", _Quick)
    monkeypatch.setattr(report, "write", lambda results: results)
    model = SimpleNamespace(reader=SimpleNamespace(summary_parts={}))
    monkeypatch.setattr(report.runs, "load_reader", {"run": model}.get)
    told = []
    report.reproduce("run", ["towns", "rivers"], tmp_path, 2, told.append, ["st-lemn"])
    policies = [f"{size}-st-lemn-seed" for size in ("10-aware", "10", "0.2")]
    assert [line.split(":")[0] for line in told] == [
        f"{name}-{policy}{seed}"
        for seed in range(2)
        for name in ("towns", "rivers")
        for policy in policies
    ]
    report.reproduce("run", ["towns", "rivers"], tmp_path, 2, told.append)
    names = [line.split(":")[0] for line in told]
    assert len(set(names)) == len(names)
    assert names.index("rivers-0.2-im-lemn-seed0") < names.index("towns-10-aware-s-lemn-seed1")
    assert not any("minilm" in name for name in names)
    told.clear()
    report.reproduce("run", ["towns"], tmp_path, 1, told.append, ["minilm"], tmp_path / "vectors")
    assert [line.split(":")[0] for line in told] == [
        f"towns-{size}-minilm-{policy}"
        for policy in ("linear", "st-lemn-seed0", "s-lemn-seed0", "im-lemn-seed0")
        for size in ("10", "0.2")
    ]


@pytest.mark.slow
def test_the_whole_table_from_a_run(towns, tmp_path, monkeypatch):
    """Every kind of cell is made of a run over small documents."""
    folder = tmp_path / "towns"
    (folder / "qa").mkdir(parents=True)
    (folder / "evidence").symlink_to(towns.evidence)
    for name in ("train", "dev"):
        shutil.copy(towns.qa, folder / "qa" / f"wikipedia-{name}.json")
    settings = documents.Settings(
        qa=(towns.qa,),
        evidence=(towns.evidence,),
        embeddings=towns.vectors,
        slots=3,
        updates=4,
        policy="fifo",
    )
    documents_training.train(settings, tmp_path / "run")
    monkeypatch.setattr(report, "SIZES", (3,))
    monkeypatch.setattr(report, "EPOCHS", 1)
    page = report.reproduce(tmp_path / "run", [folder], tmp_path / "results", seeds=1)
    for policy in table.LEARNED:
        assert f"| {policy}-seed0 |" in page.read_text()
        assert (page.parent / "documents" / f"{folder.name}-10-aware-{policy}-seed0.json").exists()
