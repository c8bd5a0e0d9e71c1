"""Which server the wire tests talk to: any, by environment variables, or an embedded one.

    LEMN_TEST_URL=http://127.0.0.1:8501/v1/models/babi  LEMN_TEST_GRPC=127.0.0.1:8500  pytest ...

`make test-serving URL=... [GRPC=...]` sets them. Without a gRPC address those tests are skipped.
"""

import os
import re
from types import SimpleNamespace

import pytest


@pytest.fixture(scope="session")
def place(request):
    """Where the server is: `place.base`, `place.name`, `place.url`, `place.grpc` (or None)."""
    url = os.environ.get("LEMN_TEST_URL", "")
    if url:
        match = re.fullmatch(r"(https?://[^/]+)/v1/models/([^/:]+)/?", url)
        if not match:
            pytest.fail(f"expected URL=http://HOST:PORT/v1/models/NAME; got {url!r}")
        grpc_address = os.environ.get("LEMN_TEST_GRPC") or None
        yield SimpleNamespace(base=match[1], name=match[2], url=url.rstrip("/"), grpc=grpc_address)
        return
    from lemn_tf.export.server import Server

    exported = request.getfixturevalue("exported")
    with Server(exported.parent, port=0, rest_port=0) as server:
        name = exported.parent.name
        yield SimpleNamespace(
            base=server.rest_url,
            name=name,
            url=f"{server.rest_url}/v1/models/{name}",
            grpc=f"127.0.0.1:{server.port}",
        )
