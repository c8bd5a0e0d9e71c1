"""Archives from the network: fetched, checked and unpacked, whole or not at all.

What was fetched of an archive stays when the connection breaks; the next call goes on from there.
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

CHUNK = 1 << 20


def fetch(
    url: str, folder: Path, wanted: tuple[str, ...], sha256: str | None, advice: str = ""
) -> None:
    """Fetches a tar archive and unpacks some of its folders.

    Args:
        url: address of the archive.
        folder: where to unpack, made if missing.
        wanted: names of folders of the archive; all must be in it. They are looked for at its top,
            or in the only folder there.
        sha256: checksum the archive must have; None takes any.
        advice: what to do without a network, for the message.

    Raises:
        ConnectionError: the archive could not be fetched.
        ValueError: what came is not the archive.
    """
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / f".{Path(url).name}.part"
    try:
        _download(url, archive)
    except OSError as error:
        kept = archive.stat().st_size if archive.exists() else 0
        again = f" The first {kept:,} bytes are kept; run it again to go on." if kept else ""
        hint = f" {advice}" if advice else ""
        raise ConnectionError(f"could not fetch {url} ({error}).{again}{hint}") from error
    try:
        _unpack(archive, folder, wanted, sha256, url)
    finally:
        archive.unlink()


def _unpack(
    archive: Path, folder: Path, wanted: tuple[str, ...], sha256: str | None, url: str
) -> None:
    with archive.open("rb") as file:
        got = hashlib.file_digest(file, "sha256").hexdigest()
    if sha256 is not None and got != sha256:
        raise ValueError(f"{url}: expected an archive with SHA-256 {sha256}, got {got}")
    with tempfile.TemporaryDirectory(prefix=".unpacked-", dir=folder) as temporary:
        unpacked = Path(temporary)
        try:
            with tarfile.open(archive) as tar:
                tar.extractall(unpacked, filter="data")  # refuses paths outside and devices
        except (tarfile.TarError, EOFError) as error:
            raise ValueError(f"{url}: expected a tar archive safe to unpack: {error}") from error
        inside = list(unpacked.iterdir())
        if len(inside) == 1 and inside[0].is_dir() and inside[0].name not in wanted:
            unpacked = inside[0]
        for name in wanted:
            if not (unpacked / name).is_dir():
                raise ValueError(f"{url}: expected a folder {name} in it, got none")
        for name in wanted:
            os.replace(unpacked / name, folder / name)


def _download(url: str, archive: Path) -> None:
    """Fetches what is not there yet; a server that cannot go on in the middle starts afresh."""
    done = archive.stat().st_size if archive.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={done}-"} if done else {})
    try:
        source = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        if done and error.code == 416:  # nothing left to fetch
            return
        raise
    with source, archive.open("ab" if source.getcode() == 206 else "wb") as file:
        before, expected = file.tell(), source.headers.get("Content-Length")
        shutil.copyfileobj(source, file, CHUNK)
        if expected is not None and file.tell() - before < int(expected):
            raise ConnectionError(f"the connection ended after {file.tell():,} bytes")
