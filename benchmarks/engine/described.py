"""Files and true middles of languages that only an editor's data describes.

    python -m benchmarks.engine.described groovy.json FOLDER --suffix .groovy --holes 300

Each hole is the rest of a line of a file that is taken. The language is chosen by the file without it, as if that was
opened. `caught`: of taken files with one bracket or quote deleted, those that the file's language refuses.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.options import add_seed, positive_count
from fim_server.datasets.judging.cutting import text_of
from fim_server.errors import LanguageError
from fim_server.language.editor_data import EditorData, known, language_of

SIZES = range(100, 150_000)
"""Characters of the files that are measured."""

LEXEME = re.compile(r"\w+|[^\w\s]")

TRIES = 20
"""Draws for each hole."""


def hole(text: str, draw: random.Random) -> tuple[str, str, str]:
    """Return a text around the rest of one of its lines, and that rest: half of the time the whole line."""
    line = draw.choice([match for match in re.finditer(r"[^\n]+", text) if match[0].strip()])
    cuts = [line.start() + match.start() for match in LEXEME.finditer(line[0])] or [line.start()]
    at = cuts[0] if draw.random() < 0.5 else draw.choice(cuts)
    return text[:at], text[at : line.end()], text[line.end() :]


def refused(data: EditorData, texts: Sequence[str], holes: int, draw: random.Random) -> tuple[int, int]:
    """Return the number of true middles that are refused, and of those that were asked about."""
    asked = wrong = 0
    for _ in range(TRIES * holes):
        left, middle, right = hole(draw.choice(texts), draw)
        language = language_of(data, left + right)
        if language is not None:
            asked += 1
            wrong += not language.open(left, right).check(middle).complete
        if asked == holes:
            break
    return wrong, asked


def caught(data: EditorData, texts: Sequence[str], draw: random.Random) -> int:
    """Return the number of texts that their languages refuse with a bracket or a usual quote less."""
    found = 0
    for text in texts:
        language = language_of(data, text)
        signs = "".join(data.brackets) + known().string_quote
        places = [at for at, sign in enumerate(text) if sign in signs]
        if language is not None and places:
            at = draw.choice(places)
            found += not language.open(text[:at], text[at + 1 :]).check("").complete
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure one language, and print a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("configuration", type=Path, help="VS Code's language configuration, as JSON")
    parser.add_argument("folder", nargs="+", type=Path)
    parser.add_argument("--suffix", action="append", required=True)
    parser.add_argument("--files", type=positive_count, default=300)
    parser.add_argument("--holes", type=positive_count, default=300)
    add_seed(parser, "what is drawn")
    given = parser.parse_args(arguments)
    name = given.configuration.stem
    try:
        data = EditorData.read(name, json.loads(given.configuration.read_text(encoding="utf-8")))
    except (LanguageError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    draw = random.Random(f"{name} {given.seed}")
    paths = sorted(path for folder in given.folder for path in folder.rglob("*") if path.suffix in given.suffix)
    found = (text_of(path) for path in draw.sample(paths, len(paths)) if path.is_file())
    texts = [text for text in found if text is not None and len(text) in SIZES][: given.files]
    began = time.process_time()
    taken = [text for text in texts if language_of(data, text) is not None]
    spent = 1000 * (time.process_time() - began) / max(1, len(texts))
    wrong, asked = refused(data, taken, given.holes, draw) if taken else (0, 0)
    print(
        f"{name}: {len(taken)} of {len(texts)} files taken in {spent:.1f} ms each, {wrong} of {asked} middles refused,"
        f" {caught(data, taken, draw)} of {len(taken)} changes caught"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
