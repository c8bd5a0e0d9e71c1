"""The report's page: all on it, and it works in a real browser, large and small, light and dark."""

import dataclasses
import re
from pathlib import Path

import pytest

from lemn_tf.seeing import report
from lemn_tf.seeing.findings import Findings, episodes, mistakes
from lemn_tf.seeing.regret import judge
from tests.seeing import chromium

HISTORY = [
    {"phase": "reader", "episodes": 32, "val_accuracy": 0.2, "seconds": 3.0},
    {"phase": "policy", "episodes": 64, "val_accuracy": 0.9, "seconds": 9.0},
]
FAILED = Path("build") / "screenshots"
"""Where pictures of pages that failed a test are kept."""


@pytest.fixture(scope="module")
def found(subject, examined):
    """Findings with real traces; scores are given, they are found out in other tests."""
    scores = {
        name: {"result": error, "recall": 90.0, "count": 60}
        for name, error in {"mine": 1.7, "fifo": 45.0, "lru": 44.0, "oracle": 0.0}.items()
    }
    curves = {
        name: [(3, 2 * one["result"] + 1), (5, one["result"])] for name, one in scores.items()
    }
    traces = {"mine": examined, "fifo": subject.traces(range(subject.count), "fifo")}
    verdicts = {name: judge(several) for name, several in traces.items()}
    made = {"command": "lemn report <mine>", "seed": 0}
    return Findings({"mine": subject}, scores, curves, traces, verdicts, {"mine": HISTORY}, made)


@pytest.fixture(scope="module")
def page(found, tmp_path_factory):
    return report.write(found, tmp_path_factory.mktemp("page") / "report.html")


def test_all_is_on_it_and_nothing_comes_from_elsewhere(page):
    text = page.read_text()
    for part in ("numbers", "player", "mistakes", "curves", "regret", "lives", "made"):
        assert f"id='{part}'" in text
    assert text.count("<svg") == 3
    assert "1.7%" in text
    assert "<td>mine</td><td class=n>4.4</td><td class=n>1.7</td>" in text  # with 3 and 5 slots
    assert "lemn report &lt;mine&gt;" in text
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", text)
    assert not re.search(r"url\(\s*['\"]?http|@import|fetch\(|XMLHttpRequest", text)
    assert page.stat().st_size < 2_000_000


def test_mistakes_can_be_watched(found):
    worst = mistakes(found)
    shows, places = episodes(found, worst)
    for one in worst:
        assert one.question.right is False
        assert shows[places[one.run, one.episode]]["name"].startswith(f"episode {one.episode}, ")
    assert len(shows) >= 2 * 4
    line = next(line for line in shows[0]["lines"] if line.get("w"))
    assert re.search(r"(left|was not stored) at t=\d+", line["w"])


def test_policies_stand_beside_each_other_only_in_the_same_episode(found):
    """Also if two episodes have the same items, as a long list of questions makes of a document."""
    traces = {name: [several[0], several[0]] for name, several in found.traces.items()}
    shows, _ = episodes(dataclasses.replace(found, traces=traces), [])
    assert [(one["who"], one["stream"]) for one in shows] == [
        *(("mine", 0), ("fifo", 0)),
        *(("mine", 2), ("fifo", 2)),
    ]


def test_only_html_is_written(found, tmp_path):
    with pytest.raises(ValueError, match=r"ends in \.html"):
        report.write(found, tmp_path / "report.txt")


@pytest.fixture
def browser(tmp_path, request):
    if chromium.found() is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    page = chromium.Page(tmp_path / "browser")
    failed = request.session.testsfailed
    yield page
    if request.session.testsfailed > failed:
        FAILED.mkdir(parents=True, exist_ok=True)
        page.picture(FAILED / f"{request.node.name}.png")
    page.close()


LUMINANCE = """
(() => {
  const light = c => { const [r, g, b] = c.match(/[\\d.]+/g).slice(0, 3).map(v => { v /= 255;
    return v <= 0.03928 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4); });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = node => { while (node) { const c = getComputedStyle(node).backgroundColor;
    if (!/, 0\\)$/.test(c) && c !== "transparent") return c; node = node.parentElement; }
    return "rgb(255,255,255)"; };
  const poor = [];
  const texts = "h1, h2, h3, p, td, th, dt, dd, span, strong, button, .what, .tag, .meter";
  for (const node of document.querySelectorAll(texts)) {
    if (!node.textContent.trim()) continue;
    const a = light(getComputedStyle(node).color), b = light(behind(node));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push([node.textContent.slice(0, 30), ratio.toFixed(2)]);
  }
  return poor;
})()
"""
"""Texts whose contrast with what stands behind them is below 4.5."""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [380, 1100])
def test_the_page_in_a_browser(page, browser, width, dark):
    browser.open(page, width, 900, dark)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("getComputedStyle(document.body).backgroundColor") == (
        "rgb(20, 23, 28)" if dark else "rgb(251, 250, 247)"
    )
    assert browser.run(LUMINANCE) == []
    assert browser.errors == []


def test_the_player_steps(page, browser):
    browser.open(page, 800)
    where = "document.getElementById('where').textContent"
    press = "document.getElementById('{}').click()".format
    assert browser.run(where) == "1 of 45"
    for _ in range(6):
        browser.run(press("next"))
    assert browser.run(where) == "7 of 45"
    assert browser.run("document.querySelectorAll('.slot').length") == 6
    assert browser.run("document.querySelectorAll('.slot.left').length") == 1
    assert "at t=" in browser.run("document.getElementById('news').textContent")
    browser.run(press("back"))
    assert browser.run(where) == "6 of 45"
    browser.run("document.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'}))")
    assert browser.run(where) == "7 of 45"
    browser.run("seek.value = 8; seek.dispatchEvent(new Event('input'))")
    assert browser.run(where) == "9 of 45"
    assert "question 1" in browser.run("document.getElementById('news').textContent")
    assert browser.run("document.querySelectorAll('.slot').length") == 5
    beside = "document.getElementById('beside').textContent"
    assert "fifo says" in browser.run(beside)
    browser.run("go(12)")
    held = browser.run("shows[1].lines[12].ids.filter((id, k) => k !== shows[1].lines[12].s)")
    texts = [browser.run(f"shows[0].items[{one}].x") for one in held]
    assert browser.run(beside) == "fifo keeps " + " · ".join(texts)
    browser.run("which.value = 1; which.dispatchEvent(new Event('change'))")
    assert browser.run(where) == "1 of 45"
    if browser.run("document.querySelectorAll('[data-show]').length"):
        browser.run("document.querySelector('[data-show]').click()")
        assert "expected" in browser.run("document.getElementById('news').textContent")
    browser.run("go(0); play()")
    assert "Pause" in browser.run("document.getElementById('play').textContent")
    assert browser.errors == []


def test_the_browser_would_notice(tmp_path, browser):
    """A page that is too wide, throws and cannot be read is seen to be so."""
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<meta name=viewport content='width=device-width'><body style='background:#fff'>"
        "<p style='width:900px;color:#eee'>x</p><script>missing()</script>"
    )
    browser.open(bad, 380)
    assert browser.run("document.documentElement.scrollWidth") > 380
    assert browser.run(LUMINANCE)
    assert browser.errors
