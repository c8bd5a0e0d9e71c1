"""Report: one HTML file that shows what runs remember; it needs no network and no server.

Headline numbers beside the rules and the clairvoyant bound, the budget curve, the learning curve,
an episode player with every drop explained, the worst mistakes, and how it was all made.

    found = findings.look({"mine": seeing.find("runs/mine", "test.txt")})
    report.write(found, "report.html")
"""

from __future__ import annotations

import json
import os
from importlib import resources
from pathlib import Path

from lemn_tf.files import write_atomically
from lemn_tf.seeing import sections
from lemn_tf.seeing.findings import Findings, episodes, mistakes


def write(found: Findings, out: str | os.PathLike) -> Path:
    """Writes the page, whole or not at all."""
    path = Path(out)
    if path.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"expected a file that ends in .html, got {str(out)!r}")
    worst = mistakes(found)
    shows, places = episodes(found, worst)
    parts = [
        sections.head(found),
        sections.headlines(found),
        sections.player(found),
        sections.mistakes(found, worst, places),
        sections.curves(found),
        sections.regret(found),
        sections.lives(found),
        sections.made(found),
    ]
    template = resources.files("lemn_tf.seeing").joinpath("page.html").read_text(encoding="utf-8")
    data = json.dumps(shows, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    page = template.replace("<!--CONTENT-->", "\n".join(parts)).replace("<!--DATA-->", data)
    write_atomically(path, page)
    return path
