"""Fetching the official bAbI tasks: whole or not at all."""

import hashlib
import io
import tarfile

import pytest

from lemn_tf.pipelines import babi_archive

STORY = "1 Mary went home.\n2 Where is Mary?\thome\t1\n"


def archive(path, members: dict[str, str]) -> tuple[str, str]:
    with tarfile.open(path, "w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content.encode()))
    return path.as_uri(), hashlib.sha256(path.read_bytes()).hexdigest()


def test_download(tmp_path):
    url, sha256 = archive(tmp_path / "a.tgz", {"tasks_1-20_v1-2/en/qa1.txt": STORY})
    folder = babi_archive.download(tmp_path / "data", url, sha256)
    assert (folder / "en" / "qa1.txt").read_text() == STORY
    assert babi_archive.download(tmp_path / "data", "file:///nowhere") == folder
    assert list((tmp_path / "data").iterdir()) == [folder]


@pytest.mark.parametrize(
    ("member", "checksum", "message"),
    [
        ("tasks_1-20_v1-2/a.txt", "0" * 64, "expected an archive with SHA-256 0000"),
        ("../evil.txt", None, "safe to unpack"),
        ("else/a.txt", None, "expected a folder tasks_1-20_v1-2"),
    ],
)
def test_a_bad_archive_leaves_nothing_behind(tmp_path, member, checksum, message):
    url, sha256 = archive(tmp_path / "a.tgz", {member: STORY})
    with pytest.raises(ValueError, match=message):
        babi_archive.download(tmp_path / "data", url, checksum or sha256)
    assert list((tmp_path / "data").iterdir()) == []
    assert not (tmp_path / "evil.txt").exists()


def test_offline_says_what_to_do(tmp_path):
    with pytest.raises(ConnectionError, match=r"could not fetch .* network, make .*lemn data"):
        babi_archive.download(tmp_path, (tmp_path / "missing.tgz").as_uri())
    assert list(tmp_path.iterdir()) == []
