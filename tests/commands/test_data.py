"""`lemn data`: files of generated stories."""

from lemn_tf import cli


def test_data(tmp_path, capsys):
    arguments = ["data", "babi", "--variant", "noisy", "--episodes", "20", "--out", str(tmp_path)]
    assert cli.main(arguments) == 0
    assert "noisy_train.txt: 16 stories, 80 questions" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "noisy_test.txt",
        "noisy_train.txt",
        "noisy_valid.txt",
    ]
