"""Files are written whole or not at all."""

from pathlib import Path

import pytest

from lemn_tf import files


def test_no_half_written_file(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint.npz"
    files.write_atomically(path, b"whole")

    def torn(self, data):
        with open(self, "wb") as file:
            file.write(data[:2])
        raise OSError("disk full")

    monkeypatch.setattr(Path, "write_bytes", torn)
    with pytest.raises(OSError, match="disk full"):
        files.write_atomically(path, b"newer")
    assert path.read_bytes() == b"whole"
    assert list(tmp_path.iterdir()) == [path]
