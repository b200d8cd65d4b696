"""The files of docs/editors: each can be read by its kind of program, and starts the server with its own arguments."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from fim_server.cli import program as cli
from fim_server.language import Language
from fim_server.language.definition.compile import read_builtin
from fim_server.text.regions import hosts

LANGUAGES = set(Language.names()) - {"d.ts"}  # editors know its files as TypeScript
EXACT = {language for language in LANGUAGES if read_builtin(language).guarantee == "exact"}
IDS = {next(iter(read_builtin(language).editor_ids), language) for language in LANGUAGES}
"""The editors' names of the languages."""
HOSTS = {host.name for host in hosts()}
"""Files with code of these languages."""
HELIX = {"csharp": "c-sharp", "shellscript": "bash"}
ZED = {"cpp": "c++", "shellscript": "shell script"}
NEOVIM = {"csharp": "cs", "shellscript": "sh"}
SCOPES = {
    "javascript": "source.js",
    "typescript": "source.ts",
    "cpp": "source.c++",
    "csharp": "source.cs",
    "kotlin": "source.Kotlin",
    "php": "embedding.php",
    "html": "text.html.basic",
    "shellscript": "source.shell",
    "xml": "text.xml",
    "hcl": "source.terraform",
}
MODES = {
    "javascript": "js",
    "jsx": "js",
    "less": "less-css",
    "cpp": "c++",
    "r": "ess-r",
    "shellscript": "sh",
    "xml": "nxml",
    "hcl": "terraform",
}
"""Names that editors have for languages, of Emacs' modes the beginnings, where they are not the language's."""
PLAIN_MODES = {"ess-r", "html", "less-css", "nxml", "scss", "sh", "sql", "terraform"}
"""Emacs' modes without a form for tree-sitter."""
EDITORS = Path(__file__).parents[2] / "docs/editors"
PAGE = EDITORS.with_suffix(".md").read_text(encoding="utf-8")
COMMAND = ["fim-server", "serve"]
COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)


def settings(name: str) -> Any:
    """A JSON file whose comments have lines of their own."""
    return json.loads(COMMENT.sub("", (EDITORS / name).read_text(encoding="utf-8")))


def test_every_file_is_on_the_page() -> None:
    files = [path for path in EDITORS.rglob("*") if path.is_file()]
    assert len(files) >= 7
    for path in files:
        assert f"](editors/{path.relative_to(EDITORS).as_posix()})" in PAGE, path


def test_the_page_links_to_files_that_exist() -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", PAGE):
        assert (EDITORS.parent / target).exists(), target


def test_no_file_names_a_place_of_this_machine() -> None:
    for path in EDITORS.rglob("*.*"):
        assert not re.search(r"/(work|root|tmp|home)/", path.read_text(encoding="utf-8")), path


def test_the_command_line_takes_what_the_files_give_it() -> None:
    assert cli.build_parser(COMMAND[1:]).parse_args(COMMAND[1:]).run


def test_helix() -> None:
    languages = tomllib.loads((EDITORS / "helix/languages.toml").read_text(encoding="utf-8"))
    server = languages["language-server"]["fim-server"]
    assert [server["command"], *server["args"]] == COMMAND
    assert all("fim-server" in language["language-servers"] for language in languages["language"])
    assert {language["name"] for language in languages["language"]} >= {
        HELIX.get(name, name) for name in LANGUAGES
    } | HOSTS


def test_jupyterlab() -> None:
    manager = settings("jupyterlab/fim-server.json")["LanguageServerManager"]
    specification = manager["language_servers"]["fim-server"]
    assert specification["argv"] == COMMAND
    assert specification["version"] == 2
    assert set(specification["languages"]) >= LANGUAGES - {"json"}


def test_zed() -> None:
    configured = settings("zed/settings.json")
    binary = configured["lsp"]["pylsp"]["binary"]
    assert [binary["path"], *binary["arguments"]] == COMMAND
    assert all("pylsp" in language["language_servers"] for language in configured["languages"].values())
    # Zed's JavaScript includes JSX.
    expected = {ZED.get(name, name) for name in LANGUAGES - {"json", "jsx"}}
    assert {name.lower() for name in configured["languages"]} >= expected


def test_sublime_text() -> None:
    client = settings("sublime-text/LSP.sublime-settings")["clients"]["fim-server"]
    assert client["command"] == COMMAND
    assert client["enabled"] is True
    assert set(client["selector"].split(" | ")) >= {SCOPES.get(name, f"source.{name}") for name in LANGUAGES}


def test_neovim() -> None:
    defaults = (EDITORS / "neovim/lua/fim_server/defaults.lua").read_text(encoding="utf-8")
    filetypes = re.search(r"filetypes = \{(.*?)\}", defaults, re.DOTALL)
    assert filetypes is not None
    assert set(re.findall(r"'(\w+)'", filetypes[1])) >= {NEOVIM.get(name, name) for name in IDS} | HOSTS
    without_plug_in = re.search(r"filetypes = \{(.*?)\}", PAGE, re.DOTALL)
    assert without_plug_in is not None
    assert re.findall(r"'(\w+)'", without_plug_in[1]) == re.findall(r"'(\w+)'", filetypes[1])


def test_emacs() -> None:
    lsp_mode, eglot = (
        (EDITORS / f"emacs/fim-{client}.el").read_text(encoding="utf-8") for client in ("lsp-mode", "eglot")
    )
    activated = re.search(r"\(lsp-activate-on (.*?)\)", lsp_mode, re.DOTALL)
    assert activated is not None
    assert set(re.findall(r'"(\w+)"', activated[1])) >= IDS | HOSTS
    for language in LANGUAGES:
        mode = MODES.get(language, language)
        assert (f"{mode}-mode" if mode in PLAIN_MODES else f"{mode}-ts-mode") in eglot
        hooks = "typescript" if mode == "tsx" else mode
        for text in (lsp_mode, eglot):
            assert re.search(rf"{re.escape(hooks)}-(base-|ts-|ts-base-)?mode-hook", text), language
    for mode, name in re.findall(r'\((\S+)-mode :language-id "(\w+)"\)', eglot):
        assert name in IDS, mode


def test_jetbrains() -> None:
    template = settings("jetbrains/template.json")
    commands = template["programArgs"]
    assert commands["default"].split() == COMMAND
    assert commands["windows"].split() == [f"{COMMAND[0]}.exe", *COMMAND[1:]]
    patterns = {one["languageId"]: one["fileType"]["patterns"] for one in template["fileTypeMappings"]}
    suffixes = {next(iter(read_builtin(name).editor_ids), name): read_builtin(name).suffixes for name in LANGUAGES}
    suffixes |= {host.name: host.suffixes for host in hosts()}
    assert {name: [pattern.removeprefix("*") for pattern in listed] for name, listed in patterns.items()} == {
        name: list(found) for name, found in suffixes.items()
    }


def test_vscode() -> None:
    manifest = json.loads((EDITORS.parents[1] / "vscode-extension/package.json").read_text(encoding="utf-8"))
    ids = {next(iter(read_builtin(language).editor_ids), language) for language in EXACT}
    assert manifest["activationEvents"] == ["onStartupFinished"]
    common = manifest["contributes"]["configuration"][0]
    setting = common["properties"]["fim-server.languages"]
    assert set(setting["properties"]) == ids | {host.name for host in hosts() if not host.text_is_plain}
