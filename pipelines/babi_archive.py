"""The official bAbI tasks: fetched, checked and unpacked."""

import os
from pathlib import Path

from .archives import fetch

# All twenty tasks, v1.2, on their authors' file host. The SHA-256 is the one stated by ParlAI's
# builder (parlai/tasks/babi/build.py), which reaches the archive through parl.ai/downloads/babi/.
ARCHIVE = "https://dl.fbaipublicfiles.com/parlai/babi/babi.tar.gz"
ARCHIVE_SHA256 = "f7f0bee187efca0d81c3daac1b162cda4eb7f9505dee5ad6846eabbed3dbf92e"
ARCHIVE_FOLDER = "tasks_1-20_v1-2"


def download(
    directory: str | os.PathLike, url: str = ARCHIVE, sha256: str = ARCHIVE_SHA256
) -> Path:
    """Fetches, checks and unpacks the official bAbI tasks; whole or not at all.

    Args:
        directory: where the folder of tasks is to appear.
        url: address of the archive.
        sha256: checksum the archive must have.

    Returns:
        The unpacked folder, e.g. with `en-10k/qa2_two-supporting-facts_train.txt` in it. If it is
        there already nothing is fetched.

    Raises:
        ConnectionError: the archive could not be fetched.
        ValueError: what was fetched is not the archive.
    """
    directory = Path(directory)
    folder = directory / ARCHIVE_FOLDER
    if folder.is_dir():
        return folder
    advice = (
        "Without a network, make stories of the same kind with 'lemn data babi --variant "
        "original|noisy|large --out DIR', or unpack the archive by hand so that "
        f"{folder} exists."
    )
    fetch(url, directory, (ARCHIVE_FOLDER,), sha256, advice)
    return folder
