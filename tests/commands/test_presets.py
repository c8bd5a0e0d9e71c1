"""`lemn presets` names every model that ships, and says what it is."""

import json

from lemn_tf import cli, runs


def test_every_preset_is_listed(capsys):
    assert cli.main(["presets"]) == 0
    told = capsys.readouterr().out
    assert len(runs.presets()) >= 7
    for preset in runs.presets().values():
        assert f"{preset.name} (" in told
        assert preset.score in told
        assert preset.trained in told


def test_as_json(capsys):
    assert cli.main(["presets", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in told] == list(runs.presets())
    assert all(one["size"] > 10_000 for one in told)
