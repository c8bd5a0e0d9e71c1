"""A headless Chromium, spoken to over a pipe by its DevTools protocol; nothing else is needed."""

import base64
import json
import os
import shutil
import subprocess

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def found() -> str | None:
    """The path of a Chromium on this machine."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Page:
    """One page of a browser.

    Args:
        folder: for what the browser keeps while it runs.
    """

    def __init__(self, folder):
        there, our_out = os.pipe()
        our_in, back = os.pipe()

        def place():  # the browser reads from 3 and writes to 4
            for end in (there, back):  # out of the way first, should they be 3 or 4 themselves
                os.set_inheritable(end, True)
            copies = os.dup(there), os.dup(back)
            os.dup2(copies[0], 3)
            os.dup2(copies[1], 4)

        command = [found(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command += ["--remote-debugging-pipe", f"--user-data-dir={folder}", "about:blank"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, preexec_fn=place, close_fds=False, **quiet)
        os.close(there)
        os.close(back)
        self.send, self.receive = os.fdopen(our_out, "wb", 0), os.fdopen(our_in, "rb", 0)
        self.count, self.buffer, self.session = 0, b"", None
        self.errors: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters):
        """Asks the browser for something, and takes down the errors it tells of meanwhile."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.send.write(json.dumps(message).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == self.count:
                assert "error" not in told, told["error"]
                return told["result"]
            self._note(told)

    def _next(self) -> dict:
        while b"\0" not in self.buffer:
            more = os.read(self.receive.fileno(), 1 << 16)
            assert more, "the browser has gone"
            self.buffer += more
        first, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(first)

    def _note(self, told: dict) -> None:
        parameters = told.get("params", {})
        if told.get("method") == "Runtime.exceptionThrown":
            self.errors.append(str(parameters["exceptionDetails"]))
        entry = parameters.get("entry", {})
        if told.get("method") == "Log.entryAdded" and entry.get("level") == "error":
            self.errors.append(entry["text"])
        if told.get("method") == "Runtime.consoleAPICalled" and parameters["type"] == "error":
            self.errors.append(str(parameters["args"]))
        self.loaded = told.get("method") == "Page.loadEventFired" or getattr(self, "loaded", False)

    def open(self, path, width: int = 1100, height: int = 900, dark: bool = False) -> None:
        """Shows a file in a window of that size."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.loaded = False
        self.call("Page.navigate", url=f"file://{path}")
        while not self.loaded:
            self._note(self._next())

    def run(self, script: str):
        """The value of an expression in the page."""
        told = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def picture(self, path, whole: bool = True) -> None:
        """Writes what the page looks like to a PNG."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))

    def close(self) -> None:
        """Ends the browser."""
        self.session = None
        self.call("Browser.close")
        self.process.wait(20)
        self.send.close()
        self.receive.close()
