"""A conversation with a memory, in a terminal or through a pipe.

Every line is remembered, a line that ends in "?" is answered, and after each the memory is shown
with what it dropped. Lines that begin with "/" are for the chat itself: `/help` lists them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lemn_tf.export.client import Entry, MemoryClient, Observation, Reply, ServingError

HELP = """\
A line is remembered; a line that ends in "?" is answered. A reader of documents takes whole
paragraphs; if its policy needs the question, ask first, then paste the text, then ask again.
/memory            show the memory
/pin ID, /unpin ID keep an entry for good, or not
/forget ID         erase an entry
/save FILE         write the memory to a file
/load FILE         go on with a memory from a file
/reset             start with an empty memory
/quit, or quit     end"""
_MOST_EVIDENCE = 3


class Conversation:
    """Feeds lines to a `MemoryClient` and shows what it does."""

    def __init__(self, client: MemoryClient, console: Console):
        self.client, self.console = client, console

    def run(self, lines: Iterable[str]) -> None:
        """Handles lines until there are no more, or one is `/quit` or `quit`."""
        for line in lines:
            line = line.strip()
            if line.lower() in ("/quit", "quit"):
                return
            if not line:
                continue
            try:
                self.take(line)
            except (ServingError, ValueError, KeyError, OSError) as error:
                text = error.args[0] if isinstance(error, KeyError) else error
                self.console.print(f"[red]error:[/] {escape(str(text))}")

    def take(self, line: str) -> None:
        """Handles one line."""
        if line.startswith("/"):
            self._command(*line[1:].split(maxsplit=1))
            return
        if line.endswith("?") and self.client.aware and not self.client.clock:
            self.client.expect(line)
            self.console.print("reading for this question: paste the text, then ask it again")
        elif line.endswith("?"):
            self._answered(self.client.ask(line))
        else:
            self._observed(self.client.observe_many([line], chunk=1))
        strange = self.client.unknown_words(line)
        if strange:
            told = f"the model does not know {', '.join(strange)}: it treats all such words alike"
            self.console.print(f"[yellow]hint:[/] {escape(told)}")

    def _command(self, command: str = "help", argument: str = "") -> None:
        client = self.client
        if command in ("pin", "unpin", "forget"):
            if not argument.isdecimal():
                raise ValueError(
                    f"expected /{command} and the number of an entry; got {argument!r}"
                )
            getattr(client, command)(int(argument))
        elif command in ("save", "load"):
            if not argument:
                raise ValueError(f"expected /{command} and a file")
            getattr(client, command)(argument)
        elif command == "reset":
            client.reset()
        elif command != "memory":
            self.console.print(escape(HELP))
            return
        self._show()

    def _observed(self, observations: list[Observation | None]) -> None:
        seen = [one for one in observations if one is not None]
        if not seen:
            return
        self._show({one.entry.id for one in seen if one.stored})
        for one in seen:
            if one.dropped is not None:
                what = "not kept" if not one.stored else "dropped"
                text = f"[dim]{one.dropped.id}[/] {escape(one.dropped.text)}"
                self.console.print(f"[yellow]{what}:[/] {text}")

    def _answered(self, answer: Reply) -> None:
        source = "" if answer.source is None else f"  from {answer.source.id}"
        told = f"[bold green]{escape(answer.text)}[/]  ({answer.probability:.0%}){source}"
        self.console.print(told)
        for entry, weight in answer.evidence[:_MOST_EVIDENCE]:
            self.console.print(f"  {weight:5.0%}  [dim]{entry.id}[/] {escape(entry.text)}")

    def _show(self, newest: Collection[int] = ()) -> None:
        entries = self.client.memory()
        slots = self.client.state["ids"].shape[1]
        table = Table(title=f"memory: {len(entries)} of {slots} slots", title_justify="left")
        table.add_column("id", justify="right")
        table.add_column("keep", justify="right")
        table.add_column("entry", overflow="fold")
        for entry in entries:
            style = "bold" if entry.id in newest else None
            table.add_row(str(entry.id), _keep(entry), escape(entry.text), style=style)
        self.console.print(table)


def _keep(entry: Entry) -> str:
    if entry.pinned:
        return "pinned"
    return "" if entry.keep is None else f"{entry.keep:.0%}"
