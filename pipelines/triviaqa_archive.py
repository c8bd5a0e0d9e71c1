"""The official TriviaQA files for reading comprehension: fetched, checked and unpacked."""

from __future__ import annotations

import os
from pathlib import Path

from .archives import fetch

# The reading-comprehension version, from its authors. The SHA-256 is the one that TensorFlow
# Datasets states (url_checksums/trivia_qa.txt).
ARCHIVE = "https://nlp.cs.washington.edu/triviaqa/data/triviaqa-rc.tar.gz"
ARCHIVE_SHA256 = "ef94fac6db0541e5bb5b27020d067a8b13b1c1ffc52717e836832e02aaed87b9"
WANTED = ("qa", "evidence")


def download(
    directory: str | os.PathLike, url: str = ARCHIVE, sha256: str | None = ARCHIVE_SHA256
) -> Path:
    """Fetches TriviaQA for reading comprehension, 2.7 GB, and unpacks it; whole or not at all.

    Args:
        directory: where the folders `qa` and `evidence` are to appear.
        url: address of the archive.
        sha256: checksum the archive must have; None takes any.

    Returns:
        The folder. If `qa` and `evidence` are there already nothing is fetched.

    Raises:
        ConnectionError: the archive could not be fetched. What came is kept for the next call.
        ValueError: what came is not the archive.
    """
    folder = Path(directory)
    if all((folder / name).is_dir() for name in WANTED):
        return folder
    there = [name for name in WANTED if (folder / name).exists()]
    if there:
        raise FileExistsError(f"{folder / there[0]}: in the way of the archive's; move it aside")
    advice = (
        "Without a network, turn files of SQuAD's format into TriviaQA's with "
        "'lemn data squad FILE --out DIR', or unpack the archive by hand into the folder."
    )
    fetch(url, folder, WANTED, sha256, advice)
    return folder
