"""A server in a process of its own, which may not use more than so much memory."""

import re
import resource
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

MORE_SPACE, MORE_MEMORY = 3 << 30, 500 << 20
"""Bytes that the server may address, and may use, beyond what it has when it is ready."""
QUICK, LONG = 40, 1250
"""Examples of each kind: in `make test`, and in `make test-all` besides."""


def status(pid: int, key: str) -> int:
    """Bytes, from what Linux tells of a process."""
    text = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(re.search(rf"^{key}:\s+(\d+) kB", text, re.MULTILINE)[1])


@pytest.fixture(scope="session")
def server(exported):
    """`server.rest_url`, `.port`, `.pid`; at the end it must be up and not have grown."""
    command = [sys.executable, "-m", "lemn_tf.cli", "serve", str(exported.parent), "--quiet"]
    options = ["--port=0", "--rest-port=0", "--most-bytes=1048576", "--timeout=20"]
    process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
    try:
        said = process.stdout.readline()
        rest, port = re.search(r"(http://\S+) and grpc://127.0.0.1:(\d+)", said).groups()
        space, before = status(process.pid, "VmSize"), status(process.pid, "VmHWM")
        resource.prlimit(process.pid, resource.RLIMIT_AS, (space + MORE_SPACE,) * 2)
        yield SimpleNamespace(rest_url=rest, port=int(port), pid=process.pid)
        assert process.poll() is None, "the server is gone"
        assert status(process.pid, "VmHWM") - before < MORE_MEMORY
    finally:
        process.kill()
        process.wait()


@pytest.fixture(
    params=[pytest.param(QUICK, id="quick"), pytest.param(LONG, id="long", marks=pytest.mark.slow)]
)
def examples(request) -> int:
    """How many examples to try."""
    return request.param
