"""`lemn serve`: the embedded server on the command line."""

from __future__ import annotations

import argparse
import logging
import sys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `lemn serve`."""
    parser.add_argument(
        "path",
        metavar="DIR",
        help="a SavedModel, a folder of numbered versions of one, or a folder of such folders",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument("--port", type=int, default=8500, help="of gRPC (%(default)s)")
    parser.add_argument("--rest-port", type=int, default=8501, help="of REST (%(default)s)")
    parser.add_argument("--name", help="of the model; default: the name of its folder")
    parser.add_argument(
        "--label",
        action="append",
        default=[],
        type=_label,
        metavar="LABEL=VERSION",
        help="a name for a version, which then stays loaded; may be repeated",
    )
    parser.add_argument(
        "--keep", type=int, default=2, help="newest versions that stay loaded (%(default)s)"
    )
    parser.add_argument("--most-rows", type=int, default=64, help="rows in one batch (%(default)s)")
    parser.add_argument(
        "--most-bytes", type=int, default=16 << 20, help="of one request (%(default)s)"
    )
    parser.add_argument(
        "--timeout", type=float, default=30.0, help="seconds for a REST request (%(default)s)"
    )
    parser.add_argument(
        "--poll", type=float, default=1.0, help="seconds between looks for versions (%(default)s)"
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=1,
        help="for one operation; 0: as many as there are cores (%(default)s)",
    )
    parser.add_argument("--quiet", action="store_true", help="no log line for each request")


def _label(text: str) -> tuple[str, int]:
    label, _, version = text.partition("=")
    if not label or not version.isdecimal():
        raise argparse.ArgumentTypeError(f"expected LABEL=VERSION, e.g. stable=1; got {text!r}")
    return label, int(version)


def run(args: argparse.Namespace) -> int:
    """Serves until told to stop; returns the exit status."""
    logging.basicConfig(
        level=logging.WARNING if args.quiet else logging.INFO,
        format="%(asctime)s %(levelname)s %(message)s",
        stream=sys.stderr,
    )
    for noisy in ("uvicorn", "tensorflow", "absl"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    from lemn_tf.export.server import Server  # imports TensorFlow: not before --help

    try:
        server = Server(
            args.path,
            port=args.port,
            rest_port=args.rest_port,
            host=args.host,
            name=args.name,
            labels=dict(args.label),
            keep=args.keep,
            most_rows=args.most_rows,
            most_bytes=args.most_bytes,
            timeout=args.timeout,
            poll=args.poll,
            threads=args.threads,
        )
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    names = ", ".join(sorted(server.catalog.models))
    print(f"serving {names} on {server.rest_url} and {server.grpc_url}", flush=True)
    server.wait()
    print("stopped", flush=True)
    return 0
