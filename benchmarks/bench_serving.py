"""How fast the embedded server answers `observe`, beside what it is made of.

    python benchmarks/bench_serving.py [--model DIR] [--seconds 1] [--rounds 5] [--clients 1 8 64]

Three processes: the server under test, a bare gRPC echo server that returns as many bytes as it
gets, and this one, which is the clients (one event loop, requests made once and sent again and
again) and which also calls the signature itself. Every round measures every line for a moment, so
that what else the machine does falls on all of them alike; processor time (Linux) shows what a
request costs even when the machine is busy. The aims: with one client, the median over gRPC is at
most twice the echo's plus the call's; with 64, gRPC makes half of the echo's requests and REST a
third.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import os
import platform
import statistics
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent import futures
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import grpc
import numpy as np

METHOD = "/tensorflow.serving.PredictionService/Predict"
TEXT = b"Mary went to the garden."
Connect = Callable[[int, contextlib.AsyncExitStack], Awaitable[list[Callable[[], Awaitable]]]]
"""Makes so many clients, each a function that sends a request and awaits the answer."""
Way = tuple[Connect, int]
"""How to reach a server, and the id of its process."""


def serve(path: str, pipe) -> None:
    """The process of the server under test, as `lemn serve` runs it; ends when the pipe says so."""
    from lemn_tf.export.server import Server

    with Server(path, port=0, rest_port=0) as server:
        pipe.send((server.port, server.rest_port))
        threading.Thread(target=lambda: (pipe.recv(), server.stop()), daemon=True).start()
        server.wait()


def echo(pipe) -> None:
    """The process of the echo server."""

    class Everything(grpc.GenericRpcHandler):
        def service(self, details):
            return grpc.unary_unary_rpc_method_handler(lambda body, context: body)

    server = grpc.server(futures.ThreadPoolExecutor(128))
    server.add_generic_rpc_handlers([Everything()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    pipe.send((port, 0))
    pipe.recv()
    server.stop(None)


@contextlib.contextmanager
def process(target, *arguments):
    """Runs `target` in a fresh process; gives its id and its ports."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    child = context.Process(target=target, args=(*arguments, there), daemon=True)
    child.start()
    try:
        yield child.pid, *here.recv()
    finally:
        with contextlib.suppress(BrokenPipeError):
            here.send("end")
        child.join(30)


def export_small(path: Path) -> Path:
    """An untrained model of the size that the bAbI runs use: weights do not change the speed."""
    from lemn_tf.export import export
    from lemn_tf.model import StreamReader
    from lemn_tf.readers.memn2n import MemN2N
    from lemn_tf.text import Vocabulary

    words = [
        "mary",
        "john",
        "went",
        "took",
        "the",
        "to",
        "garden",
        "kitchen",
        "office",
        "milk",
        "apple",
        "where",
        "is",
    ]
    vocabulary = Vocabulary(words)
    reader = MemN2N(vocabulary.size, sentence_length=8)
    model = StreamReader(reader, slots=10, policy="st-lemn", vocabulary=vocabulary)
    return export(model, path / "small" / "1")


def make_requests(path: Path) -> tuple[bytes, bytes, Callable[[], object]]:
    """The same `observe` as a gRPC message, as a JSON body, and as a call in this process."""
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2

    from lemn_tf.export import json_tensors
    from lemn_tf.export.transport.folder import Folder

    model = Folder(path).model
    state = model.run("initial_state", {"batch": np.zeros([1], np.int32)})
    for _ in range(2 * state["ids"].shape[1]):  # a full memory, as in the middle of a stream
        outputs = model.run("observe", state | {"item": np.array([TEXT], object)})
        state = {name: outputs[name] for name in state}
    inputs = state | {"item": np.array([TEXT], object)}
    message = predict_pb2.PredictRequest()
    message.model_spec.signature_name = "observe"
    for name, value in inputs.items():
        message.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    body = json_tensors.request(inputs, "observe")
    signature = model.signature("observe")
    return message.SerializeToString(), body, lambda: signature(inputs)


def summary(times: list[float], seconds: float) -> dict[str, float]:
    """Requests per second, and the median and 99th percentile in milliseconds."""
    cuts = statistics.quantiles(times, n=100) if len(times) > 1 else [times[0]] * 99
    return {"rps": len(times) / seconds, "p50": 1e3 * cuts[49], "p99": 1e3 * cuts[98]}


async def load(clients: int, seconds: float, connect: Connect) -> tuple[list[float], float]:
    """So many clients at once, each sending one request after another: times of each and of all."""
    async with contextlib.AsyncExitStack() as stack:
        calls = await connect(clients, stack)
        await asyncio.gather(*(call() for call in calls))  # warm up
        times: list[float] = []
        start = time.perf_counter()
        end = start + seconds

        async def client(call):
            while (now := time.perf_counter()) < end:
                await call()
                times.append(time.perf_counter() - now)

        await asyncio.gather(*(client(call) for call in calls))
        return times, time.perf_counter() - start


def here(function: Callable[[], object]) -> Connect:
    """No wire: calls in this process."""

    async def call():
        function()

    async def connect(clients, stack):
        return [call] * clients

    return connect


def over_grpc(port: int, message: bytes) -> Connect:
    """Clients that share a channel, as the ones of a busy program do."""

    async def connect(clients, stack):
        channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}")
        call = (await stack.enter_async_context(channel)).unary_unary(METHOD)
        return [lambda: call(message)] * clients

    return connect


def over_rest(port: int, name: str, body: bytes) -> Connect:
    """Clients with a connection each, which stays open; no HTTP library's own time is measured."""
    head = (
        f"POST /v1/models/{name}:predict HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()

    async def connect_one(stack):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        stack.callback(writer.close)

        async def call():
            writer.write(head + body)
            answer = (await reader.readuntil(b"\r\n\r\n")).lower()
            if not answer.startswith(b"http/1.1 200"):
                raise RuntimeError(f"expected 200; got {answer[:100]!r}")
            length = int(answer.split(b"content-length:")[1].split(b"\r\n")[0])
            await reader.readexactly(length)

        return call

    async def connect(clients, stack):
        return [await connect_one(stack) for _ in range(clients)]

    return connect


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has used so far; 0 where there is no /proc."""
    path = Path(f"/proc/{pid}/stat")
    if not path.exists():
        return 0.0
    user, system = path.read_text().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


async def rounds(ways: dict[str, Way], clients: list[int], seconds: float, count: int) -> dict:
    """All numbers: `{way: {clients: {rps, p50, p99, server, client}}}`."""
    lines = [(way, n) for way in ways for n in (clients if way != "in process" else [1])]
    times = {line: [] for line in lines}
    spent = {line: np.zeros(3) for line in lines}  # seconds: all, of the server, of the clients
    for _ in range(count):
        for way, n in lines:
            connect, server = ways[way]
            before = cpu_seconds(server), cpu_seconds(os.getpid())
            found, took = await load(n, seconds, connect)
            after = cpu_seconds(server), cpu_seconds(os.getpid())
            times[way, n] += found
            spent[way, n] += (took, after[0] - before[0], after[1] - before[1])
    results: dict[str, dict[int, dict[str, float]]] = {way: {} for way in ways}
    for way, n in lines:
        took, *cpu = spent[way, n]
        server, client = (1e3 * x / len(times[way, n]) for x in cpu)
        results[way][n] = summary(times[way, n], took) | {"server": server, "client": client}
    return results


def measure(path: Path, clients: list[int], seconds: float, count: int) -> dict:
    """Starts the servers and runs the rounds."""
    message, body, call = make_requests(path)
    with process(echo) as echoes, process(serve, str(path.parent)) as (pid, port, rest_port):
        ways = {
            "in process": (here(call), os.getpid()),
            "gRPC echo": (over_grpc(echoes[1], message), echoes[0]),
            "gRPC": (over_grpc(port, message), pid),
            "REST": (over_rest(rest_port, path.parent.name, body), pid),
        }
        return asyncio.run(rounds(ways, clients, seconds, count))


def verdicts(results: dict) -> dict[str, float]:
    """The ratios that the aims are about, all of one run."""
    alone = results["gRPC echo"][1]["p50"] + results["in process"][1]["p50"]
    found = {}
    for way in ("gRPC", "REST"):
        most = max(results[way])
        found[f"{way}: p50 of 1 client / (echo + in process)"] = results[way][1]["p50"] / alone
        for what, turned in (("rps", False), ("server", True)):
            ratio = results[way][most][what] / results["gRPC echo"][most][what]
            title = "server's CPU time of the echo's / its" if turned else "requests/s / the echo's"
            found[f"{way}: {most} clients: {title}"] = 1 / ratio if turned else ratio
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--model", type=Path, help="SavedModel DIR/NAME/VERSION; default: a small one"
    )
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="for each line of a round (%(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    args = parser.parse_args()
    if 1 not in args.clients:
        parser.error("--clients must include 1, to compare with")
    with tempfile.TemporaryDirectory() as folder:
        path = args.model or export_small(Path(folder))
        results = measure(path.resolve(), sorted(args.clients), args.seconds, args.rounds)
    ratios = verdicts(results)
    load_average = os.getloadavg()[0]
    if args.json:
        machine = {"cpus": os.cpu_count(), "machine": platform.machine(), "load": load_average}
        print(json.dumps({"results": results, "ratios": ratios, "machine": machine}, indent=1))
        return
    print(
        f"observe, {args.rounds} times {args.seconds:g} s a line, {os.cpu_count()} CPUs, "
        f"load {load_average:.1f}"
    )
    print(
        f"{'way':<12}{'clients':>8}{'requests/s':>12}{'x 1 client':>12}{'p50 ms':>9}{'p99 ms':>9}"
        "   CPU ms a request: server, clients"
    )
    for way, lines in results.items():
        for count, line in lines.items():
            print(
                f"{way:<12}{count:>8}{line['rps']:>12.0f}{line['rps'] / lines[1]['rps']:>12.1f}"
                f"{line['p50']:>9.2f}{line['p99']:>9.2f}{line['server']:>16.2f}"
                f"{line['client']:>9.2f}"
            )
    for title, value in ratios.items():
        least = "0.50" if title.startswith("gRPC") else "0.33"
        aim = "at most 2" if "p50" in title else f"at least {least}"
        print(f"{title}: {value:.2f}  (aim: {aim})")


if __name__ == "__main__":
    main()
