"""A language server that knows how its files shall end: editors are tested against it, without a model.

`scripted_server.py SCRIPT LOG` reads SCRIPT, a JSON object, and appends each message it gets to LOG, one a line:

- `targets`: by file name, the texts that the file may become. A completion is what turns the left side into the
  beginning of a target and leaves of the right side what it can.
- `covers`: by file name, how many characters right of the cursor a completion takes the place of at least.
- `delayMs`: how long a completion takes; `encoding`: the position encoding to agree on; `exits`: end at the first
  completion, as a crash would.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from pathlib import Path
from typing import Any

UNITS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
AUTOMATIC = 2
REQUEST_CANCELLED = -32800
METHOD_NOT_FOUND = -32601


class Server:
    def __init__(self, script: dict[str, Any], log: Path) -> None:
        self.script, self.log = script, log
        self.encoding = script.get("encoding", "utf-16")
        self.texts: dict[str, str] = {}
        self.waiting: dict[int | str, threading.Timer] = {}
        self.lock = threading.Lock()
        self.snippets = False

    # --- messages ------------------------------------------------------------------------------------------------

    def send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        with self.lock:
            sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            sys.stdout.buffer.flush()

    def run(self) -> None:
        while (message := read_message()) is not None:
            with self.log.open("a", encoding="utf-8") as log:
                log.write(json.dumps(message) + "\n")
            if message.get("method") == "exit":
                return
            if "method" in message:
                self.handle(message["method"], message.get("params") or {}, message.get("id"))

    def handle(self, method: str, params: dict[str, Any], number: int | str | None) -> None:
        if method == "textDocument/didOpen":
            self.texts[params["textDocument"]["uri"]] = params["textDocument"]["text"]
        elif method == "textDocument/didChange":
            for change in params["contentChanges"]:
                self.change(params["textDocument"]["uri"], change)
        elif method == "$/cancelRequest":
            timer = self.waiting.pop(params["id"], None)
            if timer is not None:
                timer.cancel()
                self.send({"id": params["id"], "error": {"code": REQUEST_CANCELLED, "message": "cancelled"}})
        elif method == "initialized":
            self.status("ready")
        elif method == "workspace/didChangeConfiguration":
            self.status("ready" if params["settings"]["fim-server"].get("enabled", True) else "off")
        elif number is not None:
            self.answer(method, params, number)

    def answer(self, method: str, params: dict[str, Any], number: int | str) -> None:
        if method in ("textDocument/inlineCompletion", "textDocument/completion"):
            if self.script.get("exits"):
                sys.exit(3)
            timer = threading.Timer(
                self.script.get("delayMs", 0) / 1000, self.complete, (method.endswith("/completion"), params, number)
            )
            self.waiting[number] = timer
            timer.start()
        elif method == "initialize":
            self.send({"id": number, "result": {"capabilities": self.capabilities(params)}})
        elif method == "workspace/executeCommand":
            self.send({"id": number, "result": self.command(params["command"], params.get("arguments") or [])})
        elif method == "shutdown":
            self.send({"id": number, "result": None})
        else:
            self.send({"id": number, "error": {"code": METHOD_NOT_FOUND, "message": method}})

    def capabilities(self, params: dict[str, Any]) -> dict[str, Any]:
        commands = ["accepted", "dismissed", "explainAt", "statistics", "setEnabled", "reload"]
        text_document = params["capabilities"]["textDocument"]
        inline = text_document.get("inlineCompletion") is not None
        self.snippets = bool(text_document.get("completion", {}).get("completionItem", {}).get("snippetSupport"))
        return {
            "positionEncoding": self.encoding,
            "textDocumentSync": 2,
            "executeCommandProvider": {"commands": [f"fim-server.{name}" for name in commands]},
            "inlineCompletionProvider": {},
            **({} if inline else {"completionProvider": {}}),
        }

    def status(self, state: str, **last: object) -> None:
        status: dict[str, Any] = {"state": state, "message": state, "model": self.script.get("model")}
        if last:
            status["last"] = {"items": 1, "guarantee": "exact", "latency": {"totalMs": 12}, **last}
        self.send({"method": "fim-server/status", "params": status})

    # --- documents and completions -------------------------------------------------------------------------------

    def offset(self, text: str, position: dict[str, int]) -> int:
        name, width = UNITS[self.encoding]
        lines = text.split("\n")
        before = sum(len(line) + 1 for line in lines[: position["line"]])
        line = lines[position["line"]].encode(name)[: position["character"] * width]
        return before + len(line.decode(name))

    def position(self, text: str, offset: int) -> dict[str, int]:
        name, width = UNITS[self.encoding]
        line = text[:offset].rsplit("\n", 1)[-1]
        return {"line": text[:offset].count("\n"), "character": len(line.encode(name)) // width}

    def change(self, uri: str, change: dict[str, Any]) -> None:
        text = self.texts[uri]
        if "range" not in change:
            self.texts[uri] = change["text"]
            return
        start, end = (self.offset(text, change["range"][side]) for side in ("start", "end"))
        self.texts[uri] = text[:start] + change["text"] + text[end:]

    def complete(self, menu: bool, params: dict[str, Any], number: int | str) -> None:
        if self.waiting.pop(number, None) is None:
            return
        uri = params["textDocument"]["uri"]
        text = self.texts[uri]
        offset = self.offset(text, params["position"])
        name = uri.rsplit("/", 1)[-1]
        edits = middles(text[:offset], text[offset:], self.script["targets"].get(name, []), self.covers(name))
        if params.get("context", {}).get("triggerKind") == AUTOMATIC:
            edits = edits[:1]
        items = []
        for index, (middle, covered) in enumerate(edits):
            span = {"start": params["position"], "end": self.position(text, offset + covered)}
            if menu:
                items.append(list_item(text[:offset], middle, span, self.snippets))
            else:
                argument = {"id": str(index), "guarantee": "exact"}
                command = {"title": "accepted", "command": "fim-server.accepted", "arguments": [argument]}
                items.append({"insertText": middle, "range": span, "command": command})
        self.status("ready", items=len(items), reason=None if items else "no target begins like this")
        self.send({"id": number, "result": {"isIncomplete": True, "items": items} if menu else {"items": items}})

    def covers(self, name: str) -> int:
        return int(self.script.get("covers", {}).get(name, 0))

    # --- commands ------------------------------------------------------------------------------------------------

    def command(self, name: str, arguments: list[Any]) -> Any:
        if name == "fim-server.setEnabled":
            self.status("ready" if arguments[0] else "off")
            return arguments[0]
        if name == "fim-server.explainAt":
            return explanation(arguments[0])
        if name == "fim-server.statistics":
            return {"requests": 7, "accepted": 3, "latency": {"p50Ms": 12.5}}
        return None


def middles(left: str, right: str, targets: list[str], covers: int) -> list[tuple[str, int]]:
    """The texts that make targets, and how many characters of the right side each takes the place of."""
    edits = []
    line_end = (right + "\n").index("\n")
    for target in targets:
        for covered in range(covers, line_end + 1):
            stays = right[covered:]
            if len(left) + len(stays) < len(target) and target.startswith(left) and target.endswith(stays):
                edits.append((target[len(left) : len(target) - len(stays)], covered))
                break
    return edits


def list_item(left: str, middle: str, span: dict[str, Any], snippet: bool) -> dict[str, Any]:
    """Item of a completion list.

    It begins with the word at the cursor, whose place eglot puts labels in. It is a snippet wherever the editor takes
    one: Neovim inserts the text before the first blank of a plain text.
    """
    found = re.search(r"\w*\Z", left)
    word = found.group() if found else ""
    start = {**span["start"], "character": span["start"]["character"] - len(word)}
    text = re.sub(r"[\\$}]", r"\\\g<0>", word + middle) if snippet else word + middle
    text_edit = {"range": {**span, "start": start}, "newText": text}
    names = {"label": (word + middle).strip(), "filterText": word + middle}
    return {**names, "insertTextFormat": 2 if snippet else 1, "textEdit": text_edit}


def explanation(argument: dict[str, Any]) -> dict[str, Any]:
    text = argument.get("text")
    return {
        "uri": argument["uri"],
        "position": argument["position"],
        "language": "python",
        "guarantee": "exact",
        "diagnostics": [],
        "ignored": [],
        "inside": None,
        "expected": ['")"', "NAME"],
        "likely": '")"',
        "openLeft": [{"name": "call", "line": 0, "text": "f("}],
        "openRight": [{"text": ")", "line": 0}],
        "grammar": "start: NAME",
        "shortest": "x",
        "candidates": [
            {"text": ")", "probability": 0.4, "allowed": True, "reason": None},
            {"text": "]", "probability": 0.2, "allowed": False, "reason": '"]" cannot come here'},
        ],
        **({"verdict": {"viable": False, "complete": False, "rejectedAt": 1}} if text else {}),
    }


def read_message() -> dict[str, Any] | None:
    length = 0
    while line := sys.stdin.buffer.readline():
        if line == b"\r\n":
            message: dict[str, Any] = json.loads(sys.stdin.buffer.read(length))
            return message
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return None


if __name__ == "__main__":
    Server(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), Path(sys.argv[2])).run()
