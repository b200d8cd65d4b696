"""Build the documentation's site for `./dev docs`.

Pages keep their paths in the repository, so that relative links work in both places. A linked source file becomes a
page, and a linked picture is copied. The Python API has a page for each public package of `fim_server`. The Rust API is
rustdoc's.

Finally, every link and anchor of the built pages is checked. A broken one ends the build.
"""

from __future__ import annotations

import argparse
import json
import posixpath
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent.parent
WORK = ROOT / ".work" / "docs"
PAGES = WORK / "pages"
SITE = WORK / "site"
RUSTDOC = ROOT / "rust_core" / "target" / "doc"

GUIDES = {
    "Use": [
        *("docs/guarantee.md", "docs/editors.md", "docs/http.md", "docs/cli.md", "docs/models.md", "docs/languages.md"),
        *("docs/tutorial.md", "docs/python.md", "docs/go.md", "docs/java.md", "docs/rust.md", "docs/javascript.md"),
        "docs/python-api.md",
        *("docs/remote.md", "docs/engines.md", "docs/team.md", "docs/measuring.md", "docs/training.md"),
        *("docs/why-nothing-shown.md", "docs/situations.md", "docs/files.md"),
    ],
    "Understand": [
        *("docs/architecture.md", "docs/where-to-change.md", "docs/design.md", "docs/security.md"),
        *("docs/decisions", "docs/glossary.md"),
    ],
    "Contracts": ["docs/protocol.md", "docs/evaluation.md"],
    "Figures": ["docs/results", "fim_server/models/embedded/MODEL_CARD.md"],
    "Take part": ["CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"],
}
"""Pages of the navigation, besides the README and the APIs."""

FENCED = re.compile(r"^( *)(```+|~~~+).*?^\1\2[ \t]*$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\]\()([^()\s]+)(\))")
PICTURES = {".gif", ".jpg", ".jpeg", ".png", ".svg"}
HIGHLIGHTED = {
    ".el": "common-lisp",
    ".json": "json",
    ".lua": "lua",
    ".py": "python",
    ".rs": "rust",
    ".toml": "toml",
    ".ts": "typescript",
    ".yml": "yaml",
}


class BuildError(Exception):
    """Reasons why the site cannot be built, one a line."""


# --- pages --------------------------------------------------------------------------------------------------------


def tracked() -> list[str]:
    """Return the repository's files, with new ones, as paths from its root."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted({path for path in listed.split("\0") if path and (ROOT / path).is_file()})


class Pages:
    """Gathered pages and the files they need."""

    def __init__(self, files: list[str]) -> None:
        self.files = set(files)
        self.folders = {str(parent) for path in files for parent in Path(path).parents if str(parent) != "."}
        self.written: dict[str, str] = {}
        self.problems: list[str] = []

    def add(self, path: str) -> None:
        """Add a page and its links, unless added before."""
        if path in self.written:
            return
        text = (ROOT / path).read_text(encoding="utf-8")
        self.written[path] = ""  # it may be linked to by what it links to
        self.written[path] = "".join(self._parts(path, text))

    def _parts(self, path: str, text: str) -> Iterator[str]:
        """Return the text with links to pages, without changing fenced blocks."""
        end = 0
        for fence in FENCED.finditer(text):
            yield LINK.sub(lambda link: self._link(path, link), text[end : fence.start()])
            yield fence[0]
            end = fence.end()
        yield LINK.sub(lambda link: self._link(path, link), text[end:])

    def _link(self, page: str, link: re.Match[str]) -> str:
        target = link[2]
        split = urlsplit(target)
        if split.scheme or split.netloc or not split.path:
            return link[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), unquote(split.path)))
        reached = self._reach(path)
        if reached is None:
            self.problems.append(f"{page}: {target} leads nowhere")
            return link[0]
        relative = posixpath.relpath(reached, posixpath.dirname(page) or ".")
        anchor = f"#{split.fragment}" if split.fragment else ""
        return f"{link[1]}{relative}{anchor}{link[3]}"

    def _reach(self, path: str) -> str | None:
        """Return the page or picture for a path of the repository."""
        if path in self.folders or path == ".":
            return self._folder(path)
        if path not in self.files:
            return None
        if path.endswith(".md"):
            self.add(path)
            return path
        if Path(path).suffix in PICTURES:
            target = PAGES / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, target)
            return path
        page = f"{path}.md"
        if page not in self.written:
            content = (ROOT / path).read_text(encoding="utf-8")
            fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", content)), default=0))
            language = HIGHLIGHTED.get(Path(path).suffix, "text")
            self.written[page] = f"# {path}\n\n{fence}{language}\n{content.rstrip()}\n{fence}\n"
        return page

    def _folder(self, path: str) -> str:
        readme = posixpath.normpath(posixpath.join(path, "README.md"))
        if readme in self.files:
            self.add(readme)
            return readme
        page = f"{path}/README.md"
        if page not in self.written:
            inside = sorted({name[len(path) + 1 :].split("/")[0] for name in self.files if name.startswith(f"{path}/")})
            self.written[page] = f"# {path}\n\n" + "".join(f"- `{name}`\n" for name in inside)
        return page

    def write(self) -> None:
        """Write the gathered pages.

        Raises:
            BuildError: A link leads nowhere.
        """
        if self.problems:
            raise BuildError("\n".join(self.problems))
        for path, text in self.written.items():
            target = PAGES / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")


# --- the APIs -----------------------------------------------------------------------------------------------------


def public_modules(files: list[str]) -> dict[str, list[str]]:
    """Return the public modules by their package, `fim_server` first."""
    found: dict[str, list[str]] = {"fim_server": []}
    for path in files:
        parts = Path(path).with_suffix("").parts
        if not path.endswith(".py") or parts[0] != "fim_server" or len(parts) < 2:
            continue
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if any(part.startswith("_") for part in parts):
            continue
        is_package = path.endswith("/__init__.py")
        holder = ".".join(parts[:2]) if len(parts) > 2 or is_package else "fim_server"
        modules = found.setdefault(holder, [])
        name = ".".join(parts)
        if name != holder:
            modules.append(name)
    return {holder: sorted(modules) for holder, modules in sorted(found.items())}


def api_pages(files: list[str]) -> dict[str, str]:
    """Return a page for each public package, with its members and its modules'."""
    pages = {}
    for holder, modules in public_modules(files).items():
        own = (ROOT / holder.replace(".", "/") / "__init__.py").is_file()
        names = [name for name in (holder, *modules) if name != holder or own]
        pages[f"api/{holder}.md"] = f"# `{holder}`\n\n" + "\n".join(
            f"::: {name}\n    options:\n      heading_level: 2\n" for name in names
        )
    return pages


RUST = """# Rust

The engine is a crate of its own, without Python: [its documentation](RUST), with private items for those who change it.
What it exports is what the binding needs. It is not published and may change with any version.
"""


# --- building -----------------------------------------------------------------------------------------------------


def navigation(pages: Pages, api: dict[str, str]) -> list[dict[str, object]]:
    """Return the `nav` of the site's settings."""
    nav: list[dict[str, object]] = [{"fim-server": "README.md"}]
    for title, paths in GUIDES.items():
        entries = []
        for path in paths:
            entries += [path] if path.endswith(".md") else section(pages, path)
        nav.append({title: entries})
    modules = [{Path(page).stem: page} for page in api]
    nav.append({"API": [{"Python": modules}, {"Rust": "api/rust.md"}]})
    return nav


def section(pages: Pages, folder: str) -> list[str]:
    """Return the pages of a folder, its README first."""
    inside = [path for path in pages.written if posixpath.dirname(path) == folder and path.endswith(".md")]
    return sorted(inside, key=lambda path: (not path.endswith("README.md"), path))


def as_toml(value: object) -> str:
    """Return a value of `nav` in TOML. Strings and lists are as in JSON, tables are not."""
    if isinstance(value, dict):
        inside = ", ".join(f"{json.dumps(key, ensure_ascii=False)} = {as_toml(entry)}" for key, entry in value.items())
        return f"{{ {inside} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(as_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


def build(zensical: Path) -> None:
    """Gather the pages, build the site and check its links.

    Raises:
        BuildError: A link leads nowhere, or the generator has a complaint.
    """
    for folder in (PAGES, SITE):
        shutil.rmtree(folder, ignore_errors=True)
    files = tracked()
    pages = Pages(files)
    pages.add("README.md")
    for path in files:
        if path.endswith(".md") and (path.startswith("docs/") or "/" not in path):
            pages.add(path)
    for paths in GUIDES.values():
        for path in paths:
            if path.endswith(".md"):
                pages.add(path)
    api = api_pages(files)
    pages.written |= api
    has_rust = (RUSTDOC / "fim_server_core" / "index.html").is_file()
    if has_rust:
        pages.written["api/rust.md"] = RUST.replace("RUST", "../rust/fim_server_core/index.html")
    else:
        raise BuildError("there is no rustdoc in rust_core/target/doc: run cargo doc first, as ./dev docs does")
    pages.write()
    settings = (Path(__file__).parent / "zensical.toml").read_text(encoding="utf-8")
    nav = as_toml(navigation(pages, api))
    (WORK / "zensical.toml").write_text(settings.replace("nav = []", f"nav = {nav}"), encoding="utf-8")
    # rustdoc's pages are not the generator's: they are put in afterwards, and stand there while links are checked.
    placed = PAGES / "rust" / "fim_server_core"
    placed.mkdir(parents=True)
    shutil.copyfile(RUSTDOC / "fim_server_core" / "index.html", placed / "index.html")
    run = subprocess.run(
        [str(zensical.absolute()), "build", "--strict", "--clean", "--config-file", "zensical.toml"],
        cwd=WORK,
        check=False,
        capture_output=True,
        text=True,
    )
    said = (run.stdout + run.stderr).strip()
    if run.returncode != 0 or "warning" in said.lower():
        raise BuildError(said)
    shutil.rmtree(SITE / "rust", ignore_errors=True)
    shutil.copytree(RUSTDOC, SITE / "rust", ignore=shutil.ignore_patterns(".lock"))
    problems = list(broken_links())
    if problems:
        raise BuildError("\n".join(problems))


# --- links of what was built --------------------------------------------------------------------------------------


class _Html(HTMLParser):
    """Anchors and links of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.anchors: set[str] = set()
        self.links: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is None:
                continue
            if name in ("id", "name"):
                self.anchors.add(value)
            if name in ("href", "src") and tag != "base":
                self.links.add(value)


def broken_links() -> Iterator[str]:
    """Return links of the site's pages to missing files or anchors."""
    read: dict[Path, _Html] = {}

    def page(path: Path) -> _Html:
        if path not in read:
            read[path] = _Html()
            read[path].feed(path.read_text(encoding="utf-8"))
        return read[path]

    for path in sorted(SITE.rglob("*.html")):
        own = path.relative_to(SITE)
        if own.parts[0] == "rust" or own.name == "404.html":  # rustdoc checks its own; paths of 404 begin at the host
            continue
        for link in sorted(page(path).links):
            split = urlsplit(link)
            if split.scheme or split.netloc:
                continue
            target = (path.parent / unquote(split.path)).resolve() if split.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.is_file():
                yield f"{own}: {link} leads nowhere"
                continue
            is_page = target.suffix == ".html" and target.relative_to(SITE).parts[0] != "rust"
            if is_page and split.fragment and unquote(split.fragment) not in page(target).anchors:
                yield f"{own}: {link} has no such anchor"


def main() -> int:
    """Build the site. Return 0, or 2 with the reasons on standard error."""
    parser = argparse.ArgumentParser(description="Build the documentation's site.")
    parser.add_argument("--zensical", type=Path, required=True, help="the generator's program")
    try:
        build(parser.parse_args().zensical)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 2
    count = sum(1 for path in SITE.rglob("*.html") if path.relative_to(SITE).parts[0] != "rust")
    print(f"{count} pages: {SITE.relative_to(ROOT) / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
