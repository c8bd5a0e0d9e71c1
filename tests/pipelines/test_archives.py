"""Official data from a server that breaks off, goes on, or sends something else."""

import hashlib
import http.server
import io
import tarfile
import threading

import pytest

from lemn_tf.pipelines.archives import BABI, TRIVIAQA, download


def packed(members):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return data.getvalue()


ARCHIVE = packed({"qa/wikipedia-dev.json": "{}", "evidence/wikipedia/A.txt": "text", "README": ""})
SHA256 = hashlib.sha256(ARCHIVE).hexdigest()


@pytest.fixture
def server():
    """Serves ARCHIVE; `sends` is how many bytes come before the connection breaks."""

    class Handler(http.server.BaseHTTPRequestHandler):
        sends, asked, ranges = len(ARCHIVE), [], True

        def do_GET(self):
            wanted = self.headers.get("Range")
            self.asked.append(wanted)
            begin = int(wanted[6:-1]) if wanted and self.ranges else 0
            if begin >= len(ARCHIVE):
                self.send_error(416)
                return
            self.send_response(206 if begin else 200)
            self.send_header("Content-Length", str(len(ARCHIVE) - begin))
            self.end_headers()
            self.wfile.write(ARCHIVE[begin : begin + type(self).sends])

        def log_message(self, *_):
            pass

    Handler.asked = []
    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{running.server_address[1]}/t.tar.gz"
    Handler.archive = TRIVIAQA._replace(url=url, sha256=SHA256)
    yield Handler
    running.shutdown()
    running.server_close()


def test_a_whole_archive(server, tmp_path):
    folder = download(server.archive, tmp_path / "new")
    assert (folder / "evidence" / "wikipedia" / "A.txt").read_text() == "text"
    assert sorted(path.name for path in folder.iterdir()) == ["evidence", "qa"]
    assert download(TRIVIAQA._replace(url="http://nowhere"), folder) == folder


@pytest.mark.parametrize("ranges", [True, False])
def test_a_broken_connection_is_resumed(server, tmp_path, ranges):
    server.sends, server.ranges = 50, ranges
    with pytest.raises(ConnectionError, match=r"The first 50 bytes are kept.*lemn data squad"):
        download(server.archive, tmp_path)
    assert not (tmp_path / "qa").exists()
    server.sends = len(ARCHIVE)
    download(server.archive, tmp_path)
    assert (tmp_path / "qa" / "wikipedia-dev.json").exists()
    assert server.asked == [None, "bytes=50-"]


def test_an_archive_fetched_before_the_power_went_is_unpacked(server, tmp_path):
    (tmp_path / ".t.tar.gz.part").write_bytes(ARCHIVE)
    download(server.archive, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["evidence", "qa"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (packed({"qa/a.json": "{}"}), "expected a folder evidence in it"),
        (b"no archive", "expected a tar archive safe to unpack"),
        (ARCHIVE[:80], "expected a tar archive safe to unpack"),
    ],
    ids=["no evidence", "no archive", "torn"],
)
def test_something_else_leaves_nothing(tmp_path, data, message):
    (tmp_path / "x.tar.gz").write_bytes(data)
    out = tmp_path / "out"
    url = (tmp_path / "x.tar.gz").as_uri()
    with pytest.raises(ValueError, match=message):
        download(TRIVIAQA._replace(url=url, sha256=None), out)
    assert list(out.iterdir()) == []


def test_a_folder_in_the_way_is_named(tmp_path):
    (tmp_path / "qa").mkdir()
    with pytest.raises(FileExistsError, match="qa: in the way"):
        download(TRIVIAQA, tmp_path)


# -- bAbI: one folder, in an archive of files


STORY = "1 Mary went home.\n2 Where is Mary?\thome\t1\n"


def babi(path, members):
    """An archive of such members in place of the official one."""
    path.write_bytes(packed(members))
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    return BABI._replace(url=path.as_uri(), sha256=sha256)


def test_one_folder_is_what_is_returned(tmp_path):
    archive = babi(tmp_path / "a.tgz", {"tasks_1-20_v1-2/en/qa1.txt": STORY})
    folder = download(archive, tmp_path / "data")
    assert (folder / "en" / "qa1.txt").read_text() == STORY
    assert download(BABI._replace(url="file:///nowhere"), tmp_path / "data") == folder
    assert list((tmp_path / "data").iterdir()) == [folder]


@pytest.mark.parametrize(
    ("member", "changes", "message"),
    [
        ("tasks_1-20_v1-2/a.txt", {"sha256": "0" * 64}, "expected an archive with SHA-256 0000"),
        ("../evil.txt", {}, "safe to unpack"),
        ("else/a.txt", {}, "expected a folder tasks_1-20_v1-2"),
    ],
)
def test_a_bad_archive_leaves_nothing_behind(tmp_path, member, changes, message):
    archive = babi(tmp_path / "a.tgz", {member: STORY})._replace(**changes)
    with pytest.raises(ValueError, match=message):
        download(archive, tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []
    assert not (tmp_path / "evil.txt").exists()


def test_an_archive_with_a_link_is_refused(tmp_path):
    path = tmp_path / "a.tgz"
    with tarfile.open(path, "w:gz") as tar:
        link = tarfile.TarInfo("tasks_1-20_v1-2/passwords")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    archive = BABI._replace(url=path.as_uri(), sha256=None)
    with pytest.raises(ValueError, match=r"passwords is no plain file or folder"):
        download(archive, tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []


def test_offline_says_what_to_do(tmp_path):
    missing = BABI._replace(url=(tmp_path / "missing.tgz").as_uri())
    with pytest.raises(ConnectionError, match=r"could not fetch .* network, make .*lemn data"):
        download(missing, tmp_path)
    assert list(tmp_path.iterdir()) == []
