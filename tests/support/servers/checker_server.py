"""A checker that finds words: run as a program with the words' codes, and its faults.

    python checker_server.py [--push] [--crash AFTER] [--slow SECONDS] CODE=WORD...

Each occurrence of a word in a document is a diagnostic with the code, whose message names the word.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from typing import Any


def read() -> dict[str, Any] | None:
    """The next message; None at the end."""
    length = 0
    while (header := sys.stdin.buffer.readline().strip()) != b"":
        length = int(header.split(b":")[1]) if header.startswith(b"Content-Length") else length
    return json.loads(sys.stdin.buffer.read(length)) if length else None


def write(**message: Any) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    sys.stdout.buffer.flush()


def diagnostics(text: str, words: dict[str, str]) -> list[dict[str, Any]]:
    found = []
    for number, line in enumerate(text.split("\n")):
        for code, word in words.items():
            for match in re.finditer(rf"\b{word}\b", line):
                columns = [len(line[:at].encode("utf-16-le")) // 2 for at in match.span()]
                start, end = ({"line": number, "character": column} for column in columns)
                found.append({"range": {"start": start, "end": end}, "code": code, "message": f"no {word}"})
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--push", action="store_true")
    parser.add_argument("--crash", type=int, default=-1)
    parser.add_argument("--slow", type=float, default=0.0)
    parser.add_argument("word", nargs="*")
    given = parser.parse_args()
    words = dict(one.split("=") for one in given.word)
    texts: dict[str, str] = {}
    asked = 0
    while (message := read()) is not None:
        method, params, number = message.get("method"), message.get("params") or {}, message.get("id")
        if method == "initialize":
            provider: dict[str, Any] = {} if given.push else {"diagnosticProvider": {}}
            write(id=number, result={"capabilities": {**provider, "positionEncoding": "utf-16"}})
            write(id=7, method="workspace/configuration", params={"items": [{}]})
            write(id=8, method="client/registerCapability")
            write(method="window/logMessage", params={"message": "hello"})
        elif method in ("textDocument/didOpen", "textDocument/didChange"):
            document = params["textDocument"]
            texts[document["uri"]] = document.get("text") or params["contentChanges"][0]["text"]
            if given.push:
                items = diagnostics(texts[document["uri"]], words)
                told = {"uri": document["uri"], "version": document["version"], "diagnostics": items}
                write(method="textDocument/publishDiagnostics", params=told)
        elif method == "textDocument/diagnostic":
            asked += 1
            if asked > given.crash >= 0:
                os._exit(1)
            time.sleep(given.slow)
            write(id=number, result={"items": diagnostics(texts[params["textDocument"]["uri"]], words)})


if __name__ == "__main__":
    main()
