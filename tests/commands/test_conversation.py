"""What the chat shows."""

import io

from rich.console import Console

from lemn_tf.commands.conversation import Conversation
from lemn_tf.export import MemoryClient

PLACES = ("kitchen", "garden", "office")


def test_a_conversation(exported, tmp_path):
    output = io.StringIO()
    lines = [f"Mary went to the {PLACES[n % 3]}, [b]{n}[/b]." for n in range(7)]
    file = tmp_path / "memory"
    commands = [
        f"/save {file}",
        "/reset",
        f"/load {file}",
        "/pin",
        "/forget 99",
        "/help",
        "/pin 99",
    ]
    with MemoryClient(exported) as client:
        chat = Conversation(client, Console(file=output, width=80))
        chat.run([*lines, "", "Where is Mary?", *commands, "/quit", "never read"])
        said = output.getvalue()
        assert "memory: 5 of 5 slots" in said
        assert "[b]0[/b]" in said
        assert said.count("dropped:") + said.count("not kept:") == 2
        assert client.ask("Where is Mary?").text in said
        assert said.count("error:") == 3
        assert "/forget ID" in said
        assert client.clock == 7
        assert "never read" not in said
        assert said.count("hint: the model does not know b, 0: it treats all such words alike") == 1
        assert "does not know where" not in said


def test_quit_ends_it(exported):
    output = io.StringIO()
    with MemoryClient(exported) as client:
        Conversation(client, Console(file=output)).run(["Mary went home.", "Quit", "Mary left."])
        assert client.clock == 1
    assert "hint: the model does not know home" in output.getvalue()
