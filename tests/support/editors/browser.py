"""A real browser for tests: Chromium without a window, told what to do over its debugging pipe.

The pipe (Chrome DevTools Protocol, ``--remote-debugging-pipe``) needs nothing but the browser: no driver, no port, no
package. The browser is ``$CHROMIUM``, or the first of :data:`NAMES` on the PATH.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 60.0

# File descriptors 3 and 4 are the pipe's by convention; a launcher puts them there, from numbers that cannot be those.
LAUNCHER = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
for end, number in zip(ends, (3, 4)):
    os.dup2(end, number, inheritable=True)
os.execvp(sys.argv[3], sys.argv[3:])
"""


def find_browser() -> str | None:
    """The browser to use, or None."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One browser with one page."""

    def __init__(self, profile: Path) -> None:
        executable = find_browser()
        assert executable is not None, "look with find_browser first"
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        flags = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage")
        quiet = ("--no-first-run", "--disable-background-networking", "--disable-component-update", "--mute-audio")
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-c", LAUNCHER, str(theirs_in), str(theirs_out), executable, *flags, *quiet),
                *(f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"),
            ],
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._numbers = itertools.count(1)
        self._unread = b""
        self.events: list[dict[str, Any]] = []
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    _session: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._out)  # the browser ends with its pipe
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command's result. Raises AssertionError for an error or where no answer comes."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != number:
            self.events.append(answer)
        assert "error" not in answer, f"{method}: {answer['error']}"
        found: dict[str, Any] = answer["result"]
        return found

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + SECONDS
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            read = os.read(self._in, 1 << 20)
            assert read, f"the browser ended: {self._process.wait(10)}"
            self._unread += read
        message, self._unread = self._unread.split(b"\0", 1)
        found: dict[str, Any] = json.loads(message)
        return found

    def view(self, width: int, height: int, *, dark: bool = False) -> None:
        """Size of the window in pixels, and the colours that the system asks for."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, url: str) -> None:
        """Load a page and wait until its script has drawn (it says so in ``data-ready``)."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        self.until("document.documentElement?.dataset.ready === 'yes'")

    def value(self, expression: str) -> Any:
        """Return the value of an expression in the page, as JSON."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait until an expression holds."""
        end = time.monotonic() + SECONDS
        while not self.value(expression):
            assert time.monotonic() < end, f"never: {expression}"
            time.sleep(0.02)

    def press(self, key: str) -> None:
        """One key, as a user presses it."""
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def screenshot(self, path: Path) -> None:
        """Write the visible page to a file as a PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def requests(self) -> list[str]:
        """Addresses that pages have asked for so far."""
        self.call("Page.getFrameTree")  # what happened before is in the events by then
        return [
            event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"
        ]

    def complaints(self) -> list[str]:
        """Errors that pages have logged: exceptions, and what a content policy refused."""
        self.call("Page.getFrameTree")
        found = [
            e["params"]["exceptionDetails"]["text"] for e in self.events if e["method"] == "Runtime.exceptionThrown"
        ]
        entries = (event["params"]["entry"] for event in self.events if event["method"] == "Log.entryAdded")
        return found + [entry["text"] for entry in entries if entry["level"] == "error"]
