"""A picture of a report as a browser shows it, for the guide: `make pictures`.

python docs/screenshot.py report.html report.png
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def main(page: str, picture: str) -> None:
    """Lets a headless Chromium take the picture."""
    names = ("chromium", "chromium-browser", "google-chrome")
    browser = next(filter(None, map(shutil.which, names)), None)
    if browser is None:
        sys.exit("no Chromium on this machine: the picture of the report stays as it is")
    with tempfile.TemporaryDirectory() as folder:
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command += [f"--user-data-dir={folder}", "--window-size=900,1000"]
        command += [
            f"--screenshot={Path(picture).resolve()}",
            Path(page).resolve().as_uri() + "#12",
        ]
        subprocess.run(command, check=True, capture_output=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
