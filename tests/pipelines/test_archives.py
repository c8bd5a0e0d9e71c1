"""Archives from a server that breaks off, goes on, or sends something else."""

import hashlib
import http.server
import io
import tarfile
import threading

import pytest

from lemn_tf.pipelines import archives, triviaqa_archive


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
    Handler.url = f"http://127.0.0.1:{running.server_address[1]}/t.tar.gz"
    yield Handler
    running.shutdown()
    running.server_close()


def test_a_whole_archive(server, tmp_path):
    folder = triviaqa_archive.download(tmp_path / "new", server.url, SHA256)
    assert (folder / "evidence" / "wikipedia" / "A.txt").read_text() == "text"
    assert sorted(path.name for path in folder.iterdir()) == ["evidence", "qa"]
    assert triviaqa_archive.download(folder, "http://nowhere") == folder


@pytest.mark.parametrize("ranges", [True, False])
def test_a_broken_connection_is_resumed(server, tmp_path, ranges):
    server.sends, server.ranges = 50, ranges
    with pytest.raises(ConnectionError, match=r"The first 50 bytes are kept.*lemn data squad"):
        triviaqa_archive.download(tmp_path, server.url, SHA256)
    assert not (tmp_path / "qa").exists()
    server.sends = len(ARCHIVE)
    triviaqa_archive.download(tmp_path, server.url, SHA256)
    assert (tmp_path / "qa" / "wikipedia-dev.json").exists()
    assert server.asked == [None, "bytes=50-"]


def test_an_archive_fetched_before_the_power_went_is_unpacked(server, tmp_path):
    (tmp_path / ".t.tar.gz.part").write_bytes(ARCHIVE)
    triviaqa_archive.download(tmp_path, server.url, SHA256)
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
        archives.fetch(url, out, ("qa", "evidence"), None)
    assert list(out.iterdir()) == []


def test_a_folder_in_the_way_is_named(tmp_path):
    (tmp_path / "qa").mkdir()
    with pytest.raises(FileExistsError, match="qa: in the way"):
        triviaqa_archive.download(tmp_path)
