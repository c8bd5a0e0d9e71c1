"""Official data from the network: archives that are fetched, checked and unpacked.

Whole or not at all; but what was fetched of an archive stays when the connection breaks, and the
next call goes on from there.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import NamedTuple

CHUNK = 1 << 20


class Archive(NamedTuple):
    """A tar archive and what is wanted of it.

    Attributes:
        url: its address.
        sha256: the checksum that it must have; None takes any.
        wanted: names of folders of the archive; all must be in it. They are looked for at its top,
            or in the only folder there.
        instead: the command to use without a network, and what it does.
    """

    url: str
    sha256: str | None
    wanted: tuple[str, ...]
    instead: str


BABI = Archive(
    "https://dl.fbaipublicfiles.com/parlai/babi/babi.tar.gz",
    "f7f0bee187efca0d81c3daac1b162cda4eb7f9505dee5ad6846eabbed3dbf92e",
    ("tasks_1-20_v1-2",),
    "make stories of the same kind with 'lemn data babi --variant original|noisy|large --out DIR'",
)
"""All twenty bAbI tasks, v1.2, on their authors' file host; ParlAI's builder states the checksum
(parlai/tasks/babi/build.py)."""
TRIVIAQA = Archive(
    "https://nlp.cs.washington.edu/triviaqa/data/triviaqa-rc.tar.gz",
    "ef94fac6db0541e5bb5b27020d067a8b13b1c1ffc52717e836832e02aaed87b9",
    ("qa", "evidence"),
    "turn files of SQuAD's format into TriviaQA's with 'lemn data squad FILE --out DIR'",
)
"""TriviaQA for reading comprehension, 2.7 GB, from its authors; TensorFlow Datasets states the
checksum (url_checksums/trivia_qa.txt)."""


def download(archive: Archive, directory: str | os.PathLike) -> Path:
    """Fetches an archive and unpacks what is wanted of it, unless that has been done.

    Args:
        archive: which one.
        directory: where to unpack, made if missing.

    Returns:
        The folder that was wanted, or the directory if there were several.

    Raises:
        ConnectionError: the archive could not be fetched. What came is kept for the next call.
        ValueError: what came is not the archive.
    """
    directory = Path(directory)
    folders = [directory / name for name in archive.wanted]
    found = folders[0] if len(folders) == 1 else directory
    if all(folder.is_dir() for folder in folders):
        return found
    there = [folder for folder in folders if folder.exists()]
    if there:
        raise FileExistsError(
            f"{there[0]}: in the way of the folder from the archive: move it away"
        )
    directory.mkdir(parents=True, exist_ok=True)
    part = directory / f".{Path(archive.url).name}.part"
    try:
        _fetch(archive.url, part)
    except OSError as error:
        kept = part.stat().st_size if part.exists() else 0
        again = f" The first {kept:,} bytes are kept; run it again to go on." if kept else ""
        raise ConnectionError(
            f"could not fetch {archive.url} ({error}).{again} Without a network, {archive.instead}"
            f", or unpack the archive by hand into {directory}."
        ) from error
    try:
        _unpack(part, directory, archive)
    finally:
        part.unlink()
    return found


def _unpack(part: Path, directory: Path, archive: Archive) -> None:
    url, sha256, wanted, _ = archive
    with part.open("rb") as file:
        got = hashlib.file_digest(file, "sha256").hexdigest()
    if sha256 is not None and got != sha256:
        raise ValueError(f"{url}: expected an archive with SHA-256 {sha256}, got {got}")
    with tempfile.TemporaryDirectory(prefix=".unpacked-", dir=directory) as temporary:
        unpacked = Path(temporary)
        try:
            with tarfile.open(part) as tar:
                tar.extractall(unpacked, _plain(tar, unpacked))
        except (tarfile.TarError, EOFError) as error:
            raise ValueError(f"{url}: expected a tar archive safe to unpack: {error}") from error
        inside = list(unpacked.iterdir())
        if len(inside) == 1 and inside[0].is_dir() and inside[0].name not in wanted:
            unpacked = inside[0]
        for name in wanted:
            if not (unpacked / name).is_dir():
                raise ValueError(f"{url}: expected a folder {name} in it, got none")
        for name in wanted:
            os.replace(unpacked / name, directory / name)


def _plain(tar: tarfile.TarFile, folder: Path) -> list[tarfile.TarInfo]:
    """The members of an archive: plain files and folders, none outside the folder.

    Python's own filter for this came with 3.11.4, which many a machine does not have.
    """
    members = tar.getmembers()
    for member in members:
        inside = (folder / member.name).resolve().is_relative_to(folder.resolve())
        if not (inside and (member.isreg() or member.isdir())):
            raise tarfile.ReadError(f"{member.name} is no plain file or folder inside it")
        member.mode = 0o755 if member.isdir() else 0o644
    return members


def _fetch(url: str, part: Path) -> None:
    """Fetches what is still missing; a server that cannot resume starts from the beginning."""
    done = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={done}-"} if done else {})
    try:
        source = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        if done and error.code == 416:  # nothing left to fetch
            return
        raise
    with source, part.open("ab" if source.getcode() == 206 else "wb") as file:
        before, expected = file.tell(), source.headers.get("Content-Length")
        shutil.copyfileobj(source, file, CHUNK)
        if expected is not None and file.tell() - before < int(expected):
            raise ConnectionError(f"the connection ended after {file.tell():,} bytes")
