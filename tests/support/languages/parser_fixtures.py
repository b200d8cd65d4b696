"""Texts of other parsers' tests, each with a verdict: packages of three registries, fetched by the registries' tools.

- `test262-parser-tests` (npm): programs of ECMAScript that a parser takes, refuses, or refuses by an early error;
- `biome_js_parser` (crates): JavaScript, JSX, TypeScript and TSX;
- `esbuild` (Go): strings of its parser's tests in the same languages;
- `typescript-go` (Go): the files of TypeScript's own tests of compiler and conformance, of which only the judge has a
  verdict.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fim_server.datasets.judging.judge import EARLY, Judge
from fim_server.datasets.sources.crates import Crates
from fim_server.datasets.sources.go_modules import GoModules
from fim_server.datasets.sources.tools import fetched

TEST262 = "test262-parser-tests@0.0.5"
BIOME = "biome_js_parser@0.5.7"
ESBUILD = "github.com/evanw/esbuild@v0.28.2"
TYPESCRIPT = "github.com/microsoft/typescript-go@v0.0.0-20260708042240-2bd066d87f5b"

LANGUAGES = {".js": "javascript", ".jsx": "jsx", ".ts": "typescript", ".tsx": "tsx"}

_CALL = re.compile(
    r"\bexpect(?P<kind>ParseError|Printed)(?P<language>JSX|TSX|TS|)\(t, "
    r'(?P<text>"(?:[^"\\\n]|\\.)*"), (?P<told>"(?:[^"\\\n]|\\.)*")'
)

_SECTION = re.compile(r"^//// \[([^\]\n]+)\]\n", re.MULTILINE)
"""Beginning of a file in a record of a test of TypeScript, which has its input and its output."""


@dataclass(frozen=True)
class Fixture:
    """Text of a parser's tests.

    Attributes:
        variant: Kind of file as the judge names it; empty where the tests name none.
        taken: Whether the tests' parser takes it; None where an early error may be all that is wrong.
    """

    name: str
    language: str
    variant: str
    text: str
    taken: bool | None


def of_test262(folder: Path) -> Iterator[Fixture]:
    """Fetch the tests into a folder, and yield them."""
    packed = json.loads(fetched(["npm", "pack", "--json", "--ignore-scripts", "--", TEST262], TEST262, folder))
    fetched(["tar", "xzf", str(folder / packed[0]["filename"])], TEST262, folder)
    for kind in ("pass", "pass-explicit", "early", "fail"):
        for path in sorted((folder / "package" / kind).iterdir()):
            variant = "module" if path.name.endswith(".module.js") else "script"
            taken = {"early": None, "fail": False}.get(kind, True)
            yield Fixture(f"{kind}/{path.name}", "javascript", variant, path.read_bytes().decode(), taken)


def of_biome() -> Iterator[Fixture]:
    """Yield the inline tests of Biome's parser, whose folder tells the verdict."""
    (crate,) = Crates([BIOME])._crates
    tests = Path(crate["manifest_path"]).parent / "test_data" / "inline"
    for path in sorted(tests.rglob("*")):
        if path.suffix in LANGUAGES:
            taken = path.parent.name == "ok"
            name = f"{path.parent.name}/{path.name}"
            yield Fixture(name, LANGUAGES[path.suffix], "", path.read_text("utf-8"), taken)


def of_esbuild() -> Iterator[Fixture]:
    """Yield the strings in the tests of esbuild's parser; some of its errors are no errors of syntax."""
    (module,) = GoModules([ESBUILD])._modules
    for path in sorted((Path(module["Dir"]) / "internal" / "js_parser").glob("*_test.go")):
        for number, found in enumerate(_CALL.finditer(path.read_text("utf-8"))):
            try:
                text, told = json.loads(found["text"]), json.loads(found["told"])
                text.encode()
            except ValueError:
                continue  # an escape of Go's alone, or half of a pair
            language = LANGUAGES["." + (found["language"].lower() or "js")]
            yield Fixture(
                f"{path.stem}/{number}", language, "", text, found["kind"] == "Printed" or "ERROR" not in told
            )


def of_typescript() -> Iterator[Fixture]:
    """Yield the files of TypeScript in the records of its tests, declarations that it wrote among them."""
    (module,) = GoModules([TYPESCRIPT])._modules
    records = Path(module["Dir"]) / "testdata" / "baselines" / "reference" / "submodule"
    seen = set()
    for path in sorted([*records.glob("compiler/*.js"), *records.glob("conformance/*.js")]):
        _, *parts = _SECTION.split(path.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n"))
        for name, text in zip(parts[::2], parts[1::2], strict=True):
            language = LANGUAGES.get(Path(name).suffix, "")
            if language in ("typescript", "tsx") and (name.endswith(".d.ts"), text) not in seen:
                seen.add((name.endswith(".d.ts"), text))
                variant = "d.ts" if name.endswith(".d.ts") else ""
                yield Fixture(f"{path.name}/{name}", language, variant, text, None)


@dataclass
class Compared:
    """Comparison of a definition's verdicts with those of fixtures and of a judge.

    Attributes:
        texts: Number of texts by what the fixtures say of them.
        early: Texts that are taken and only break an early error, by its name.
        differing: Fixtures of which the judge says something else than the definition, with its message.
        outvoted: Number of fixtures of another verdict, in which the judge sides with the definition.
    """

    texts: Counter[bool | None] = field(default_factory=Counter)
    early: Counter[str] = field(default_factory=Counter)
    differing: list[tuple[Fixture, str]] = field(default_factory=list)
    outvoted: int = 0


def compared(
    fixtures: Iterable[Fixture], taken: Callable[[Fixture], bool], judge: Callable[[Fixture], Judge]
) -> Compared:
    """Compare a definition with fixtures, by name leaving out texts that only break an early error.

    Args:
        fixtures: The texts.
        taken: Tells whether the definition takes a text.
        judge: Returns the judge of a fixture's language and kind of file, which is asked where both differ.
    """
    result = Compared()
    for fixture in fixtures:
        result.texts[fixture.taken] += 1
        own = taken(fixture)
        if own is fixture.taken:
            continue
        verdict, said = judge(fixture).decided(fixture.text, own)
        if own and said.startswith(EARLY):
            result.early[said.removeprefix(EARLY).partition(":")[0]] += 1
        elif verdict is not own:
            result.differing.append((fixture, said))
        else:
            result.outvoted += fixture.taken is not None
    return result
