"""Three ways to the same signatures: REST, gRPC, and a SavedModel in this process; or replicas.

Each transport runs a signature on arrays and describes what signatures there are. Which one a
target means is read off its form: `http://host:8501`, `grpc://host:8500` or `host:8500`, or a
folder. Only what that way needs is imported: `requests`, `grpc` or TensorFlow.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from lemn_tf.export.transport.base import Interface, Transport

__all__ = ["Interface", "Target", "Transport", "connect"]

Target = str | os.PathLike | Sequence[str]
"""What a client can connect to; several addresses are replicas of one model."""


def connect(target: Target, name: str | None = None, timeout: float = 30.0) -> Transport:
    """The transport that `target` means.

    Args:
        target: `http://HOST:PORT[/v1/models/NAME]`, `grpc://HOST:PORT[/NAME]`, `HOST:PORT`, or a
            folder with a SavedModel or with numbered versions of one. Several addresses are
            replicas, which are asked in turn.
        name: of the model, if the target does not say it; needed unless there is only one model
            and the server can tell (TF Serving cannot).
        timeout: seconds for each request.
    """
    if not isinstance(target, str | os.PathLike):
        from lemn_tf.export.transport.replicas import Replicas

        return Replicas([connect(one, name, timeout) for one in target])
    text = str(target)
    if (port := re.match(r"(?:\w+://)?[^/]*:(\d+)(?:/|$)", text)) and not 0 < int(
        port[1][:9]
    ) < 1 << 16:
        raise ValueError(f"expected a port from 1 to 65535; got {text!r}")
    if match := re.fullmatch(r"(https?://[^/]+)(?:/v1/models/([^/:]+))?/?", text):
        from lemn_tf.export.transport.rest import Rest

        return Rest(match[1], match[2] or name, timeout)
    match = re.fullmatch(r"grpc://([^/]+)(?:/([^/:]+))?/?", text)
    if match or (re.fullmatch(r"[\w.-]+:\d+|\[[0-9a-fA-F:]+\]:\d+", text) and not _is_dir(text)):
        from lemn_tf.export.transport.rpc import Grpc

        return Grpc(match[1], match[2] or name, timeout) if match else Grpc(text, name, timeout)
    if _is_dir(text):
        from lemn_tf.export.transport.folder import Folder

        return Folder(text)
    raise ValueError(
        "expected http://HOST:PORT, grpc://HOST:PORT, HOST:PORT or a folder with a SavedModel; "
        f"got {text!r}"
    )


def _is_dir(text: str) -> bool:
    return Path(text).is_dir()
