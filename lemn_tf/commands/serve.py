"""`lemn serve DIR`: the embedded server."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lemn_tf.commands.common import amount, whole_number

if TYPE_CHECKING:
    from lemn_tf.export.limits import Limits


class Serve:
    """Serves SavedModels from this machine, for a laptop and for tests."""

    name = "serve"
    help = "serve exported models from this machine, with TF Serving's API"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add(
            "path",
            metavar="DIR",
            help="a SavedModel, a folder of numbered versions of one, or a folder of such folders",
        )
        add("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
        add("--port", type=port, default=8500, help="of gRPC (%(default)s)")
        add("--rest-port", type=port, default=8501, help="of REST (%(default)s)")
        add("--name", type=name, help="of the model; default: the name of its folder")
        add(
            "--label",
            action="append",
            default=[],
            type=label,
            metavar="LABEL=VERSION",
            help="a name for a version, which then stays loaded; may be repeated",
        )
        count = whole_number(1)
        add("--keep", type=count, default=2, help="newest versions to keep (%(default)s)")
        add("--batch-rows", type=count, default=64, help="rows in one batch (%(default)s)")
        add("--most-rows", type=count, default=256, help="rows of a request (%(default)s)")
        add("--most-steps", type=count, default=1024, help="steps of a row (%(default)s)")
        add("--most-items", type=count, default=65536, help="rows times steps (%(default)s)")
        add("--most-bytes", type=count, default=4 << 20, help="bytes of a request (%(default)s)")
        add("--most-answer", type=count, default=16 << 20, help="bytes of an answer (%(default)s)")
        add("--timeout", type=amount, default=30.0, help="seconds for a request (%(default)s)")
        add("--poll", type=amount, default=1.0, help="seconds between checks for new versions (1)")
        add(
            "--threads",
            type=whole_number(0),
            default=1,
            help="for one operation; 0: as many as there are cores (%(default)s)",
        )
        add(
            "--state-key",
            metavar="FILE",
            help="sign packed states with the key in this file, and accept no others",
        )
        add("--quiet", action="store_true", help="no log line for each request")

    def check(self, arguments: argparse.Namespace) -> None:
        """Raises if there is no model to serve, no version that a label names, or no key."""
        from lemn_tf.export.folders import find_models, versions
        from lemn_tf.export.secret import read

        bases = find_models(Path(arguments.path), arguments.name).values()
        known = {number for base in bases for number in versions(base)}
        for name, number in arguments.label:
            if number not in known:
                raise ValueError(f"label {name}={number}: expected one of {sorted(known)}")
        if arguments.port and arguments.port == arguments.rest_port:
            raise ValueError(f"expected two ports; got {arguments.port} for both gRPC and REST")
        limits(arguments)
        if arguments.state_key:
            read(arguments.state_key)

    def run(self, arguments: argparse.Namespace) -> None:
        logging.basicConfig(
            level=logging.WARNING if arguments.quiet else logging.INFO,
            format="%(asctime)s %(levelname)s %(message)s",
            stream=sys.stderr,
        )
        for noisy in ("uvicorn", "tensorflow", "absl"):
            logging.getLogger(noisy).setLevel(logging.WARNING)
        from lemn_tf.export.server import Server
        from lemn_tf.export.server.signing import StateKey

        print(f"loading what is in {arguments.path} ...", file=sys.stderr, flush=True)
        server = Server(
            arguments.path,
            port=arguments.port,
            rest_port=arguments.rest_port,
            host=arguments.host,
            name=arguments.name,
            labels=dict(arguments.label),
            keep=arguments.keep,
            batch_rows=arguments.batch_rows,
            poll=arguments.poll,
            threads=arguments.threads,
            key=StateKey.read(arguments.state_key) if arguments.state_key else None,
            limits=limits(arguments),
        )
        names = ", ".join(sorted(server.catalog.models))
        print(f"serving {names} on {server.rest_url} and {server.grpc_url}", flush=True)
        server.wait()
        print("stopped", flush=True)


def limits(arguments: argparse.Namespace) -> Limits:
    """What one request may ask for, by the options; raises unless it can be something."""
    from lemn_tf.export.limits import Limits

    return Limits(
        rows=arguments.most_rows,
        steps=arguments.most_steps,
        items=arguments.most_items,
        request_bytes=arguments.most_bytes,
        answer_bytes=arguments.most_answer,
        seconds=arguments.timeout,
    )


def port(text: str) -> int:
    """An argparse type: a port, 0 for any that is free."""
    if not text.isdecimal() or len(text) > 5 or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to 65535; got {text!r}")
    return int(text)


def name(text: str) -> str:
    """An argparse type: a name that can stand in an address."""
    if not text or set(text) & set("/:"):
        raise argparse.ArgumentTypeError(f"expected a name without / and :; got {text!r}")
    return text


def label(text: str) -> tuple[str, int]:
    """An argparse type: LABEL=VERSION."""
    name, _, version = text.partition("=")
    if not name or not version.isdecimal():
        raise argparse.ArgumentTypeError(f"expected LABEL=VERSION, e.g. stable=1; got {text!r}")
    return name, int(version)
