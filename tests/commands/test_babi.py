"""Training, scoring and reproducing on bAbI files, small: every row of the tables can be run."""

import dataclasses
import json
import resource
from pathlib import Path

import keras
import pytest
import tensorflow as tf

from lemn_tf import runs
from lemn_tf.commands import evaluate, report, reproduce
from lemn_tf.experiments import babi
from lemn_tf.pipelines import babi as pipeline
from lemn_tf.pipelines import babi_generator

TINY = {
    "lemn": {"linear start": 8, "reader": 8},
    "paper": {"fifo": 8},
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    paths = {}
    for number, split in enumerate(("train", "valid", "test")):
        paths[split] = folder / f"noisy_{split}.txt"
        pipeline.write_stories(babi_generator.generate("noisy", 8, seed=number), paths[split])
    return paths


def tiny(files, row, **changes) -> babi.Settings:
    return babi.Settings(
        str(files["train"]),
        str(files["valid"]),
        row.policy,
        slots=3,
        recipe=row.recipe,
        trainer=row.trainer,
        episodes=TINY[row.recipe],
        shuffle=row.shuffle,
        **changes,
    ).lasting(24)


@pytest.fixture
def small_batches(monkeypatch):
    """Recipes with batches of 4: the number of an update's stories is not the point here."""
    from lemn_tf import recipes

    small = {
        name: tuple(dataclasses.replace(phase, batch_size=4) for phase in phases)
        for name, phases in recipes.RECIPES.items()
    }
    monkeypatch.setattr(recipes, "RECIPES", small)


@pytest.mark.parametrize("row", ["fifo", "im-lemn"])
def test_a_row_trains_and_scores(row, files, tmp_path, small_batches):
    settings = tiny(files, reproduce.ROWS[row])
    trained = babi.train(settings, tmp_path / "run", jit_compile=False)
    history = (tmp_path / "run" / "history.jsonl").read_text().splitlines()
    assert [json.loads(line)["phase"] for line in history] == [p.name for p in settings.phases()]
    loaded = runs.load(tmp_path / "run")
    result = babi.score(loaded, files["test"])
    assert result == babi.score(trained, files["test"])
    assert result["questions"] == 40
    assert result["policy"] == reproduce.ROWS[row].policy
    assert babi.score(loaded, files["test"], slots=40)["support_recall"] == 100


@pytest.mark.slow
@pytest.mark.parametrize(
    "row",
    [
        "fifo-paper",
        "st-lemn",
        "s-lemn",
        "st-lemn-a2c",
        "st-lemn-paper",
        "shuffled-s-lemn",
        "shuffled-st-lemn",
    ],
)
def test_the_other_rows(row, files, tmp_path, small_batches):
    test_a_row_trains_and_scores(row, files, tmp_path, None)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
def test_memory_stays_flat(files, tmp_path, monkeypatch, small_batches):
    """Sixty epochs more, each with its checkpoint and validation, take under a megabyte each."""
    monkeypatch.setattr(babi.training, "EPOCH", 8)
    pages = []

    class Count(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            pages.append(int(Path("/proc/self/statm").read_text().split()[1]))

    lengths = {**TINY["lemn"], "roomy": 8, "policy": 8, "polish": 80 * 8}
    settings = dataclasses.replace(tiny(files, reproduce.ROWS["s-lemn"]), episodes=lengths)
    babi.train(settings, tmp_path / "run", callbacks=lambda *_: [Count()], jit_compile=False)
    assert len(pages) > 80
    assert (pages[-1] - pages[-61]) * resource.getpagesize() < 60e6


def test_a_reader_is_trained_once(files, tmp_path, small_batches):
    first = tiny(files, reproduce.ROWS["fifo"])
    babi.train(first, tmp_path / "first", jit_compile=False)
    second = tiny(files, reproduce.ROWS["s-lemn"], reader_from=str(tmp_path / "first"))
    assert [phase.name for phase in second.phases()] == ["roomy", "policy", "polish"]
    babi.train(second, tmp_path / "second", jit_compile=False)
    missing = dataclasses.replace(second, reader_from=str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match="no reader of a finished phase 1"):
        babi.train(missing, jit_compile=False)


def test_words_that_were_never_seen(files, tmp_path):
    model = babi.build(babi.Settings("", ""), babi.Stories(files["train"]).vocabulary, 7)
    path = tmp_path / "strange.txt"
    path.write_text("1 Zorro took the rhinoceros home.\n2 Where is the rhinoceros?\tattic\t1\n")
    assert babi.score(model, path)["error_rate"] == 100


def test_long_sentences_are_read_to_their_end(files, tmp_path):
    """A file may hold longer sentences than the one that the model was trained on."""
    model = babi.build(babi.Settings("", ""), babi.Stories(files["train"]).vocabulary, 7)
    path = tmp_path / "long.txt"
    path.write_text(
        "1 Mary went very far away indeed to the kitchen.\n2 Where is Mary?\tkitchen\t1\n"
    )
    assert babi.Stories(path, model.vocabulary).arrays["items"].shape[-1] == 9
    assert babi.score(model, path)["questions"] == 1


def test_stories_are_scored_with_other_names(files):
    """Facts stay where they are: a rule keeps the same ones, however people are called."""
    model = babi.build(babi.Settings("", ""), babi.Stories(files["train"]).vocabulary, 7)
    model = model.with_policy("fifo")
    plain, renamed = (babi.score(model, files["test"], renamings=k) for k in (0, 3))
    assert (plain["questions"], renamed["questions"]) == (40, 120)
    assert plain["support_recall"] == renamed["support_recall"]


def test_questions_without_labels(files, tmp_path):
    """Supporting facts are spoken of where they are known; the oracle needs all of them."""
    model = babi.build(babi.Settings("", ""), babi.Stories(files["train"]).vocabulary, 7)
    path = tmp_path / "stories.txt"
    facts = "1 Mary went to the garden.\n2 Where is Mary?\tgarden{}\n"
    for first, labelled, recall in (("\t1", 2, 100), ("", 1, 100), (None, 0, None)):
        second = "" if first is None else "\t1"
        path.write_text(facts.format(first or "") + facts.format(second))
        result = babi.score(model, path)
        assert (result["questions"], result["labelled"]) == (2, labelled)
        assert result["support_recall"] == recall
        rows = evaluate.compare({"mine": model}, path, slots=5)
        assert len(rows) == (2 if labelled == 2 else 1)
        assert (rows[0]["regret"] is None) == (labelled < 2)
        assert evaluate.table(rows, "").row_count == len(rows)
        data = babi.Stories(path, model.vocabulary).batches(2, buckets=1)
        model.compile(jit_compile=False)
        shown = model.evaluate(data, verbose=0, return_dict=True)
        assert shown["support_recall"] == (recall or 0) / 100
    assert result["right_if_supported"] is None


def test_a_file_without_questions(files, tmp_path):
    path = tmp_path / "stories.txt"
    path.write_text("1 Mary went home.\n")
    for settings in (
        babi.Settings(str(path), str(files["valid"])),
        babi.Settings(str(files["train"]), str(path)),
    ):
        with pytest.raises(ValueError, match=r"stories\.txt: expected stories with questions"):
            babi.train(settings, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_is_resumed_with_the_same_data_and_shards_only(files, tmp_path, monkeypatch):
    monkeypatch.setattr(babi, "run_loop", lambda *_: None)
    train = tmp_path / "train.txt"
    train.write_bytes(files["train"].read_bytes())
    settings = babi.Settings(str(train), str(files["valid"]))
    babi.train(settings, tmp_path / "run", shards=2)
    babi.train(settings, tmp_path / "run", shards=2)
    with pytest.raises(ValueError, match=r"other settings \(shards differ\)"):
        babi.train(settings, tmp_path / "run", shards=1)
    train.write_bytes(files["test"].read_bytes())
    with pytest.raises(ValueError, match=r"other settings \(train_digest differ\)"):
        babi.train(settings, tmp_path / "run", shards=2)


def test_questions_in_the_stream_as_in_training(tmp_path):
    for name, stored in (("with", True), ("without", False)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps({"store_questions": stored}))
        (tmp_path / name / "model.keras").touch()
    ours, other = str(tmp_path / "with"), str(tmp_path / "without")
    assert evaluate.stores_questions([ours, ours + "/model.keras"], None) is True
    assert evaluate.stores_questions([other, "babi-noisy-st-lemn-5"], None) is False
    assert evaluate.stores_questions([ours, other], False) is False
    with pytest.raises(ValueError, match="say --store-questions or --no-store-questions"):
        evaluate.stores_questions([ours, other], None)


def test_one_entropy_bonus_however_many_objectives():
    both = babi.Settings("", "", trainer="both").phases()[-1]
    first, second = babi.training.objectives_of(both)
    assert (first.entropy, first.final_entropy) == (0.1, 0.02)
    assert (second.entropy, second.final_entropy) == (0.0, None)


def test_the_actor_critic_alone_trains_by_its_own_recipe(files):
    alone = babi.Settings("", "", trainer="a2c", units=8)
    assert [phase.name for phase in alone.phases()[2:]] == ["policy", "anneal"]
    assert {phase.objectives for phase in alone.phases()[2:]} == {("a2c",)}
    lengths = alone.lasting(1000).episodes
    assert list(lengths) == ["policy", "anneal"]
    assert sum(lengths.values()) == 1000
    (objective,) = babi.training.objectives_of(alone.phases()[-1])
    assert objective.rollouts == alone.phases()[-1].rollouts
    words = babi.Stories(files["train"]).vocabulary
    for trainer, hidden, width in (("a2c", None, 8), ("a2c", 3, 3), ("both", None, 2)):
        settings = dataclasses.replace(alone, trainer=trainer, hidden=hidden)
        assert babi.build(settings, words, 7).memory.policy.hidden_width == width
    asked = dataclasses.replace(alone, changes={"entropy": 0.2}).phases()
    assert [phase.entropy for phase in asked] == [0.1, 0.1, 0.2, 0.2]


def test_stories_are_lived_through_several_times(files, monkeypatch, small_batches):
    """An update has as many rows as any other, of fewer stories."""
    seen = []

    def look(trainee, run):
        for index, phase in enumerate(trainee.recipe):
            seen.append((phase, next(iter(trainee.batches(index, phase, 0)))))

    monkeypatch.setattr(babi, "run_loop", look)
    settings = tiny(files, reproduce.ROWS["st-lemn-a2c"], changes={"rollouts": 2})
    babi.train(settings)
    for phase, batch in seen:
        assert all(len(values) == phase.batch_size for values in batch.values())
        items = batch["items"].numpy().reshape(phase.batch_size, -1)
        assert len({row.tobytes() for row in items}) == phase.batch_size // phase.rollouts
        if phase.rollouts == 2:
            assert (items[::2] == items[1::2]).all()
    assert [phase.rollouts for phase, _ in seen] == [1, 1, 2, 2]


def test_a_rule_can_take_the_place_of_a_policy_but_no_untrained_one(files):
    model = babi.build(babi.Settings("", ""), babi.Stories(files["train"]).vocabulary, 7)
    assert evaluate.with_rule(model, "st-lemn") is model
    assert evaluate.with_rule(model, "fifo").memory.policy.name == "fifo"
    with pytest.raises(ValueError, match="s-lemn is learned: expected a run or preset that was"):
        evaluate.with_rule(model, "s-lemn")
    rows = evaluate.compare({"mine": model, "last in": model.with_policy("lifo")}, files["test"], 5)
    assert [row["name"] for row in rows] == ["mine", "last in", "oracle"]
    assert rows[-1]["regret"] == 0 <= rows[0]["regret"]


def test_input_matching_is_pushed_to_explore():
    pushed = babi.Settings("", "", "im-lemn").phases()
    assert [phase.entropy for phase in pushed] == [0.1, 0.1, 0.5, 0.5, 0.5]
    asked = babi.Settings("", "", "im-lemn", changes={"entropy": 0.2}).phases()
    assert [phase.entropy for phase in asked] == [0.1, 0.1, 0.2, 0.2, 0.2]


def test_given_stories_are_not_mixed_with_others(files, tmp_path):
    reproduce.prepare_data(tmp_path / "data", files["train"].parent)
    reproduce.prepare_data(tmp_path / "data", files["train"].parent)
    other = tmp_path / "given"
    pipeline.write_stories(babi_generator.generate("noisy", 8, seed=9), other / "noisy_test.txt")
    with pytest.raises(ValueError, match="holds other stories than"):
        reproduce.prepare_data(tmp_path / "data", other)


def test_the_plan():
    cells = reproduce.plan(["st-lemn"], ["noisy-5"], seeds=2)
    assert [cell.name for cell in cells] == [
        "fifo-noisy-5-seed0",
        "fifo-noisy-5-seed1",
        "st-lemn-noisy-5-seed0",
        "st-lemn-noisy-5-seed1",
    ]
    everything = reproduce.plan(list(reproduce.ROWS), None, seeds=3)
    assert len(everything) == len(reproduce.ROWS) * len(reproduce.COLUMNS) * 3
    own = reproduce.plan(["st-lemn-paper"], ["original-5", "large-10"])
    seeds = {"original": [], "large": []}
    for cell in own:
        seeds[cell.variant] += [cell.seed] if cell.first else []
    assert seeds == {"original": [0, 1, 2], "large": [0, 1, 2, 3, 4]}
    known = {cell.name for cell in everything}
    assert all(cell.first is None or cell.first.name in known for cell in everything)
    with pytest.raises(ValueError, match="unknown columns"):
        reproduce.plan(["st-lemn"], ["noisy-7"], seeds=1)


def test_the_actor_critic_explores_more_on_original(tmp_path):
    for row, column, entropy in (
        ("st-lemn-a2c", "original-5", 0.04),
        ("st-lemn-a2c", "noisy-5", 0.03),
        ("st-lemn", "original-5", 0.1),
    ):
        cell = reproduce.plan([row], [column], seeds=1)[-1]
        policy, last = reproduce.settings_of(cell, tmp_path).phases()[-2:]
        assert (policy.entropy, last.entropy) == (entropy, entropy)


def test_a_result_of_another_recipe_is_not_kept(tmp_path):
    """Seeds of one cell are all trained alike: a cell whose phases have changed is run again."""
    noisy, cell = reproduce.plan(["s-lemn"], ["original-5", "noisy-5"], seeds=1)[:1:-1]
    path = tmp_path / f"{cell.name}.json"
    assert not reproduce.is_done(cell, tmp_path, tmp_path)
    lengths = reproduce.settings_of(cell, tmp_path).episodes
    assert lengths == {"roomy": 16_000, "policy": 16_000, "polish": 32_000}
    assert list(reproduce.settings_of(noisy, tmp_path).episodes) == ["policy", "polish"]
    for settings, done in (({"episodes": lengths}, True), ({"episodes": {"policy": 9}}, False)):
        path.write_text(json.dumps({"settings": settings}))
        assert reproduce.is_done(cell, tmp_path, tmp_path) == done
    folder = tmp_path / "runs" / cell.name
    for number in range(2):
        folder.mkdir(parents=True)
        reproduce.put_aside(folder)
        assert not folder.exists()
        assert folder.with_suffix(f".old{number}").is_dir()
    reproduce.put_aside(folder)


def test_the_preset_is_the_run_that_validates_best(files, tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "noisy_valid.txt").write_bytes(files["valid"].read_bytes())
    words = babi.Stories(files["train"]).vocabulary
    for seed in (0, 1):
        folder = tmp_path / "runs" / f"st-lemn-noisy-5-seed{seed}"
        folder.mkdir(parents=True)
        model = babi.build(babi.Settings("", ""), words, 7)
        guess = words.lookup(["kitchen" if seed else "john"])  # one is right now and then
        model.reader.bias.assign(9.0 * tf.one_hot(guess[0], words.size))
        model.save(folder / "model.keras")
        record = {"row": "st-lemn", "variant": "noisy", "slots": 5, "seed": seed}
        (tmp_path / "babi").mkdir(exist_ok=True)
        (tmp_path / "babi" / f"{seed}.json").write_text(json.dumps(record))
    monkeypatch.setattr(report, "RENAMINGS", 2)
    ((target, errors),) = report.copy_presets(tmp_path, tmp_path, tmp_path / "presets").items()
    assert target.name == "babi-noisy-st-lemn-5.keras"
    one, other = errors.values()
    assert one == 100 > other
    assert target.read_bytes() == (folder / "model.keras").read_bytes()
    (folder / "model.keras").unlink()  # one of two runs is elsewhere: no choice
    assert not report.copy_presets(tmp_path, tmp_path, tmp_path / "presets")


def test_the_report_shows_all_seeds(tmp_path):
    folder = tmp_path / "babi"
    folder.mkdir()
    for seed, (valid, test) in enumerate([(3.0, 2.0), (1.0, 4.0)]):
        record = {
            "row": "st-lemn",
            "variant": "noisy",
            "slots": 5,
            "seed": seed,
            "scores": {
                "valid": {"error_rate": valid, "generated": False},
                "test": {"error_rate": test, "generated": True},
            },
            "settings": {"episodes": {"policy": 1000, "polish": 500 * (1 + seed)}},
            "seconds": 1800,
        }
        (folder / f"{seed}.json").write_text(json.dumps(record))
    report.write(tmp_path)
    text = (tmp_path / "babi.md").read_text()
    assert "**2.0** (by validation 4.0, mean 3.0: 2.0, 4.0)" in text
    assert "noisy test" in text
    assert "| st-lemn | - | 1.5, 2 | - | - | - |" in text
    assert "4.0 beats the paper's 11.7" in text
    assert "2 trainings, 1.0 hours" in text
