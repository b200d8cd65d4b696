"""The command line: what it prints where, its exit statuses, and one clear line for every kind of bad input."""

from __future__ import annotations

import ast
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fim_server import Language
from fim_server.cli import program as cli
from fim_server.decoding.options import DecodeOptions
from fim_server.decoding.results import Completion, StopReason, Won
from fim_server.tokens import formats
from support.command_line import run_command

COMMAND = [sys.executable, "-m", "fim_server"]

HOLE = "def f(a):\n    return a + \n\n\nprint(f(1))\n"
CURSOR = "2:16"
BROKEN = "def f(:\n    return 1\n"

F_STRING = re.compile(r"(?i)f[rb]?['\"]")

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in this process; gives exit status, standard output and standard error, without progress."""
    monkeypatch.setattr("fim_server.cli.output.QUIET_SECONDS", 600.0)

    def runner(*arguments: str) -> tuple[int, str, str]:
        return run_command(capsys, *arguments)

    return runner


@pytest.fixture(scope="module")
def embedded() -> Any:
    from fim_server.models.load import load_model

    return load_model()


@pytest.fixture
def one_model(embedded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedded model, loaded once for all tests."""
    monkeypatch.setattr("fim_server.models.load.load_model", lambda *asked: embedded)


@pytest.fixture
def hole(tmp_path: Path) -> Path:
    path = tmp_path / "hole.py"
    path.write_text(HOLE, encoding="utf-8")
    return path


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    path = tmp_path / "broken.py"
    path.write_text(BROKEN, encoding="utf-8")
    return path


def inserted(source: str, line: int, column: int, text: str) -> str:
    lines = source.split("\n")
    lines[line - 1] = lines[line - 1][: column - 1] + text + lines[line - 1][column - 1 :]
    return "\n".join(lines)


def assert_parses(text: str, middle: str) -> None:
    """The promise, asked of the engine afresh and of Python itself.

    Python looks into the replacement fields of f-strings, the language definition takes them as whole strings.
    """
    assert Language.load("python").open("", "").check(text).complete
    if not F_STRING.search(middle):
        ast.parse(text)


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


# --- complete ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("one_model")
class TestComplete:
    def test_prints_a_middle_with_which_the_file_parses(self, run: Run, hole: Path) -> None:
        status, output, _ = run("complete", str(hole), CURSOR)
        assert status == 0
        assert output.endswith("\n")
        assert_parses(inserted(HOLE, 2, 16, output[:-1]), output)

    def test_json_says_everything(self, run: Run, hole: Path) -> None:
        status, output, errors = run("complete", str(hole), CURSOR, "--json")
        assert status == 0
        assert errors == ""
        answer = json.loads(output)
        assert (answer["language"], answer["model"], answer["guarantee"]) == ("python", "embedded", "exact")
        assert answer["stop_reason"] in {"end_token", "budget"}
        assert answer["won"] in {"end_token", "point", "landed"}
        assert answer["statistics"]["tokens"] > 0
        assert_parses(inserted(HOLE, 2, 16, answer["text"]), answer["text"])

    def test_reads_standard_input(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(HOLE.encode())))
        status, output, _ = run("complete", "-", CURSOR, "--language", "python", "--json")
        assert status == 0
        text = json.loads(output)["text"]
        assert_parses(inserted(HOLE, 2, 16, text), text)

    def test_the_files_own_line_breaks_come_back(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        canned = Completion("\n        c\n", "exact", StopReason.END_TOKEN, None)
        monkeypatch.setattr("fim_server.decoding.complete.complete", lambda *arguments, **settings: canned)
        path = tmp_path / "crlf.py"
        path.write_bytes(b"def f(a):\r\n    for b in a:")
        _, output, _ = run("complete", str(path), "2:16", "--json")
        assert json.loads(output)["text"] == "\r\n        c\r\n"

    def test_a_diff_is_headed_by_the_guarantee(self, run: Run, hole: Path) -> None:
        status, output, _ = run("complete", str(hole), CURSOR, "--diff")
        assert status == 0
        header, old, new, hunk, *lines = output.splitlines()
        assert header.startswith("guarantee exact: with this text the whole file parses as python (")
        assert (old, new) == (f"--- {hole}", f"+++ {hole}")
        assert re.fullmatch(r"@@ -1,5 \+1,\d+ @@", hunk)
        assert "-    return a + " in lines
        added = "\n".join(line[1:] for line in lines if line[0] in " +")
        assert_parses(added, added)

    def test_a_diff_in_colour_is_the_same_diff(self, run: Run, hole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("NO_COLOR", "1")
        _, without, _ = run("complete", str(hole), CURSOR, "--diff")
        _, coloured, _ = run("complete", str(hole), CURSOR, "--diff", "--color", "always")
        assert "\x1b[" not in without
        assert "\x1b[32m" in coloured
        timeless = re.compile(r"\d+ ms")
        assert timeless.sub("", plain(coloured)) == timeless.sub("", without)

    def test_a_seed_repeats_and_the_budget_holds(self, run: Run, hole: Path) -> None:
        options = (
            "complete",
            str(hole),
            CURSOR,
            "--temperature",
            "1",
            "--seed",
            "3",
            "--max-new-tokens",
            "9",
            "--json",
        )
        first, second = (json.loads(run(*options)[1]) for _ in range(2))
        assert first["text"] == second["text"]
        assert first["statistics"]["tokens"] <= 9

    def test_no_completion_within_the_budget_is_a_negative_verdict(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "deep.py"
        path.write_text("a = " + "(" * 30, encoding="utf-8")
        status, output, errors = run("complete", str(path), "1:35", "--max-new-tokens", "2")
        assert (status, output) == (1, "")
        assert errors == (
            "fim-server: no completion: at no point within 2 tokens was the text complete; "
            "the shortest completion known takes 8\n"
        )

    def test_a_text_ends_in_as_few_tokens_as_it_takes(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "deep.py"
        path.write_text("a = " + "(" * 30, encoding="utf-8")
        status, output, _ = run("complete", str(path), "1:35", "--max-new-tokens", "8", "--json")
        answer = json.loads(output)
        assert status == 0
        assert_parses("a = " + "(" * 30 + answer["text"], answer["text"])
        # What was written again, eight tokens of brackets in the prompt, took seven, and left one to the middle.
        assert answer["statistics"]["tokens"] <= 9

    @pytest.mark.parametrize("lands", [True, False])
    def test_landing_can_be_switched_off(
        self, run: Run, hole: Path, monkeypatch: pytest.MonkeyPatch, lands: bool
    ) -> None:
        asked: list[DecodeOptions] = []

        def canned(
            model: object, language: object, split: object, options: DecodeOptions, **settings: object
        ) -> object:
            asked.append(options)
            return Completion("c", "exact", StopReason.BUDGET, None, won=Won.LANDED)

        monkeypatch.setattr("fim_server.decoding.complete.complete", canned)
        _, output, _ = run("complete", str(hole), CURSOR, "--json", *([] if lands else ["--no-landing"]))
        assert [options.landing for options in asked] == [lands]
        assert json.loads(output)["won"] == "landed"

    def test_a_file_that_is_broken_elsewhere_is_completed_without_its_broken_lines(
        self, run: Run, broken: Path
    ) -> None:
        status, output, _ = run("complete", str(broken), "2:12", "--json")
        answer = json.loads(output)
        assert answer["guarantee"] == "partial"
        assert answer["diagnostics"] == ["line 1 does not parse and is left out"]
        assert status == (0 if answer["text"] is not None else 1)
        _, _, errors = run("complete", str(broken), "2:12")
        assert "guarantee partial" in errors or "no completion" in errors
        assert "line 1 does not parse and is left out" in errors

    def test_a_file_of_another_kind_is_completed_without_a_guarantee(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "prose.py"
        path.write_text("This is = no program) at the cursor either: \n", encoding="utf-8")
        status, output, _ = run("complete", str(path), "1:45", "--json")
        answer = json.loads(output)
        assert answer["guarantee"] == "none"
        assert answer["diagnostics"]
        assert status == (0 if answer["text"] is not None else 1)

    def test_several_texts_are_tried(self, run: Run, hole: Path) -> None:
        one, several, drawn = (
            json.loads(run("complete", str(hole), CURSOR, "--json", *options)[1])
            for options in ((), ("--search", "4"), ("--samples", "3", "--temperature", "1"))
        )
        assert several["statistics"]["passes"] >= one["statistics"]["passes"]
        assert several["guarantee"] == drawn["guarantee"] == "exact"

    @pytest.mark.parametrize(
        ("options", "named"),
        [
            (("--search", "2", "--temperature", "1"), "--search"),
            (("--samples", "2"), "--samples"),
            (("--search", "2", "--unconstrained"), "--unconstrained"),
            (("--search", "0"), "--search"),
        ],
    )
    def test_contradicting_options_are_refused(
        self, run: Run, hole: Path, options: tuple[str, ...], named: str
    ) -> None:
        status, output, errors = run("complete", str(hole), CURSOR, *options)
        assert (status, output, errors.count("\n")) == (2, "", 1)
        assert f"argument {named}: " in errors

    def test_the_grammar_can_be_switched_off(self, run: Run, hole: Path) -> None:
        _, output, _ = run("complete", str(hole), CURSOR, "--unconstrained", "--json")
        assert json.loads(output)["guarantee"] == "none"


# --- check, explain, languages -----------------------------------------------------------------------------------


def test_check_is_silent_on_a_file_that_parses(run: Run) -> None:
    assert run("check", cli.__file__) == (0, "", "")


def test_check_says_where_a_file_fails_and_what_was_allowed(run: Run, broken: Path) -> None:
    status, output, errors = run("check", str(broken))
    assert (status, errors) == (1, "")
    assert output.startswith(f"{broken}:1:7: ':' cannot come here; expected \")\"; all that may come: ")


def test_check_says_when_a_file_ends_too_early(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "early.py"
    path.write_text("a = (1,\n", encoding="utf-8")
    status, output, _ = run("check", str(path))
    assert status == 1
    assert output.startswith(f'{path}:2:1: the file ends too early; expected ")"; all that may come: ')


def test_check_as_json(run: Run, broken: Path) -> None:
    status, output, _ = run("check", str(broken), "--json")
    answer = json.loads(output)
    assert status == 1
    assert (answer["valid"], answer["at_end"]) == (False, False)
    assert answer["position"] == {"line": 1, "column": 7, "offset": 6}
    assert answer["expected"]
    status, output, _ = run("check", formats.__file__, "--json", "--python-version", "newest")
    assert (status, json.loads(output)) == (0, {"file": formats.__file__, "language": "python", "valid": True})


def test_explain_says_what_may_come(run: Run, hole: Path) -> None:
    status, output, _ = run("explain", str(hole), CURSOR)
    assert status == 0
    assert output.startswith(f"{hole}:2:16: python, guarantee exact\n")
    assert "may come next: " in output


def test_explain_names_what_is_open(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("def f():\n    x = g(1,\n        [2, )\n", encoding="utf-8")
    status, output, _ = run("explain", str(path), "3:13")
    assert status == 0
    assert "  open on the left: list (line 3), call (line 2), assignment (line 2), def (line 1)\n" in output


def test_explain_judges_a_text(run: Run, hole: Path) -> None:
    status, output, _ = run("explain", str(hole), CURSOR, "--text", "1)", "--json")
    answer = json.loads(output)
    assert status == 1
    assert (answer["accepted"], answer["rejected_at"], answer["complete"]) == ("1", 1, False)
    status, output, _ = run("explain", str(hole), CURSOR, "--text", "1", "--json")
    assert (status, json.loads(output)["complete"]) == (0, True)


def test_explain_prints_the_grammar(run: Run, hole: Path) -> None:
    status, output, _ = run("explain", str(hole), CURSOR, "--grammar")
    assert status == 0
    assert output.strip()


def test_languages(run: Run) -> None:
    status, lines, _ = run("languages")
    assert status == 0
    assert "python\t.py .pyi .pyw\texact, compared with CPython's parser: 3.9 to 3.15\n" in lines
    status, output, _ = run("languages", "--json")
    listed = {entry["name"]: entry for entry in json.loads(output)}
    programs = {"python", "go", "java", "rust", "javascript", "jsx", "typescript", "tsx", "d.ts"}
    assert {"json", *programs} == {name for name, row in listed.items() if row["guarantee"] == "exact"}
    assert "c\t.c\tbalanced, brackets, strings and comments\n" in lines
    assert "html\t.html .htm .xhtml\tbalanced, tags, strings and comments\n" in lines
    assert listed["c"] == {
        "name": "c", "suffixes": [".c"], "versions": [], "guarantee": "balanced", "reference": None,
        "closes": "brackets, strings and comments",
    }  # fmt: skip
    assert listed["go"] == {
        "name": "go", "suffixes": [".go"], "versions": ["1.26", "1.27"], "guarantee": "exact", "reference": "go/parser",
        "closes": None,
    }  # fmt: skip


# --- bad input ---------------------------------------------------------------------------------------------------


@pytest.fixture
def latin(tmp_path: Path) -> Path:
    path = tmp_path / "latin.py"
    path.write_bytes(b"a = '\xe9'\n")
    return path


BAD_INPUT = {
    "no command": ([], "the following arguments are required: COMMAND"),
    "unknown command": (["frobnicate"], "invalid choice: 'frobnicate'"),
    "missing file": (["check", "missing.py"], "missing.py: no such file or directory"),
    "directory": (["check", "{tmp}"], "{tmp}: is a directory"),
    "undecodable bytes": (["check", "{latin}"], "latin.py: not UTF-8 (byte 0xe9 at offset 5, line 1)"),
    "unknown suffix": (["check", "{unknown}"], ".unknown"),
    "unknown language": (["check", "{hole}", "--language", "klingon"], "klingon"),
    "standard input without a language": (["check", "-"], "name its language with --language"),
    "cursor without column": (["explain", "{hole}", "2"], "'2' is not a cursor: LINE:COLUMN expected"),
    "cursor below the file": (["explain", "{hole}", "99:1"], "line 99 is outside the file, which has 6 lines"),
    "cursor beyond the line": (["explain", "{hole}", "1:11"], "columns go from 1 to 10"),
    "cursor at zero": (["complete", "{hole}", "0:1"], "line 0 is outside the file"),
    "no budget": (["complete", "{hole}", "2:16", "--max-new-tokens", "0"], "'0' is not a number above 0"),
    "budget in words": (["complete", "{hole}", "2:16", "--max-new-tokens", "many"], "'many' is not a number above 0"),
    "cold": (["complete", "{hole}", "2:16", "--temperature", "-1"], "'-1' is not a number from 0"),
    "without end": (["complete", "{hole}", "2:16", "--temperature", "inf"], "'inf' is not a number from 0"),
    "no number": (["complete", "{hole}", "2:16", "--temperature", "nan"], "'nan' is not a number from 0"),
    "missing model folder": (["complete", "{hole}", "2:16", "--model", "./none"], "./none: no such model folder"),
    "folder without a model": (["complete", "{hole}", "2:16", "--model", "{tmp}"], "no config.json in it"),
    "file as a model": (["complete", "{hole}", "2:16", "--model", "{hole}"], "not a model folder"),
    "empty model": (["complete", "{hole}", "2:16", "--model", ""], "the model's name is empty"),
    "unknown model": (
        ["complete", "{hole}", "2:16", "--model", "nobody/nothing"],
        "nobody/nothing: neither a folder here",
    ),
    "model of 5,000 characters": (["complete", "{hole}", "2:16", "--model", "m" * 5000], "a name of 5,000 characters"),
    "path with a part of 3,000": (["complete", "{hole}", "2:16", "--model", "./" + "m" * 3000], ": file name too long"),
    "file of 5,000 characters": (["check", "c" * 5000], ": file name too long"),
    "unknown device": (["complete", "{hole}", "2:16", "--device", "abacus"], "device abacus: "),
    "address without port": (["serve", "--tcp", "localhost"], "'localhost' is not an address"),
    "two ways to speak": (["serve", "--stdio", "--tcp", "8765"], "--stdio and --tcp: use only one of them"),
    "a port and a pipe": (["serve", "--socket=8765", "--pipe=a"], "--socket and --pipe: use only one of them"),
    "Node's own channel": (["serve", "--node-ipc"], "--node-ipc: only programs of Node.js can use it"),
    "no port of a client": (["serve", "--socket", "65536"], "'65536' is not a port: a number from 1 to 65535 expected"),
    "port of no client": (["serve", "--socket", "1"], "127.0.0.1:1: connection refused"),
    "pipe of no client": (["serve", "--pipe", "none"], "none: no such file or directory"),
    "process in other digits": (["serve", "--clientProcessId=\u0661"], "is not the number of a process"),
    "port in other digits": (["serve", "--socket=\u0661"], "is not a port"),
    "address in other digits": (["serve", "--tcp=127.0.0.1:\u0661"], "is not an address"),
    "cursor in other digits": (["complete", "a.py", "\u0661:1"], "is not a cursor"),
    "cursor with an underscore": (["complete", "a.py", "1_0:1"], "is not a cursor"),
    "tokens in other digits": (["complete", "a.py", "1:1", "--max-new-tokens=\u0661"], "is not a number above 0"),
    "temperature in other digits": (["complete", "a.py", "1:1", "--temperature=\u0661"], "is not a number from 0"),
    "prompt in other digits": (["complete", "a.py", "1:1", "--max-prompt-tokens=\u0661\u0661\u0661"], "is not a whole"),
    "seed in other digits": (["complete", "a.py", "1:1", "--seed=\u0661"], "invalid integer value"),
    "layers in other digits": (["complete", "a.py", "1:1", "--gpu-layers=\u0661"], "is not a number of layers"),
    "shard in other digits": (["eval", "--shard=\u0661/\u0662"], "is not a shard"),
    "pipe without a name": (["serve", "--pipe", ""], "argument --pipe: a name expected"),
    "host without a name": (["serve", "--tcp=1", "--host="], "argument --host: a name expected"),
    "process in words": (["serve", "--clientProcessId=me"], "'me' is not the number of a process"),
    "process of all numbers": (["serve", "--clientProcessId", "0"], "'0' is not the number of a process"),
    "token without a port to listen on": (["serve", "--stdio", "--token-file", "{hole}"], "needs --tcp"),
    "address that others reach": (["serve", "--tcp", "0.0.0.0:8765"], "not a loopback address: name it with --host"),
    "host without a token": (["serve", "--tcp", "8765", "--host", "0.0.0.0"], "--host 0.0.0.0: needs a token"),
    "host without a port": (["serve", "--host", "0.0.0.0"], "--host: needs --tcp"),
    "two hosts": (["serve", "--tcp", "127.0.0.1:1", "--host", "0.0.0.0"], "--tcp names a host already; --tcp 1 names"),
    "token without a port": (["serve", "--token-file", "{hole}"], "--token-file: needs --tcp"),
    "short token": (["serve", "--tcp", "1", "--token-file", "{unknown}"], "a token has at least 16 characters"),
    "missing token": (["serve", "--tcp", "1", "--token-file", "none"], "none: no such file or directory"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_is_one_clear_line_and_status_2(
    case: str, run: Run, hole: Path, latin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    arguments, message = BAD_INPUT[case]
    unknown = tmp_path / "a.unknown"
    unknown.touch()
    names = {"hole": hole, "latin": latin, "unknown": unknown, "tmp": tmp_path}
    status, output, errors = run(*(argument.format(**names) for argument in arguments))
    assert (status, output) == (2, "")
    assert errors.count("\n") == 1
    assert len(errors) < 1000
    assert errors.startswith("fim-server")
    assert message.format(**names) in errors


def test_a_model_without_fim_tokens_is_refused_in_one_line(run: Run, hole: Path, tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models
    from transformers import LlamaConfig, PreTrainedTokenizerFast

    make: Any = PreTrainedTokenizerFast
    folder = tmp_path / "plain-model"
    make(tokenizer_object=Tokenizer(models.BPE(vocab={"a": 0}, merges=[]))).save_pretrained(folder)
    LlamaConfig(vocab_size=1).save_pretrained(folder)
    status, output, errors = run("complete", str(hole), CURSOR, "--model", str(folder))
    assert (status, output) == (2, "")
    assert errors.splitlines()[-1].startswith(f"fim-server: {folder}: not a fill-in-the-middle model")


# --- the process -------------------------------------------------------------------------------------------------


def test_help_of_every_command(run: Run) -> None:
    for command in ([], ["complete"], ["check"], ["explain"], ["languages"], ["serve"]):
        status, output, _ = run(*command, "--help")
        assert status == 0
        assert output.startswith("usage: fim-server")


HEAVY = {"torch", "transformers", "tokenizers", "onnxruntime", "numpy", "rich", "pygls", "lsprotocol"}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--help"], 0),
        (["--version"], 0),
        (["languages"], 0),
        (["check", cli.__file__], 0),
        (["explain", cli.__file__, "1:1"], 0),
        (["serve", "--help"], 0),
        (["eval", "--help"], 0),
        (["check", "missing.py"], 2),
    ],
)
def test_quick_commands_load_nothing_heavy(arguments: list[str], expected: int) -> None:
    script = f"""
import sys
from fim_server.cli import main
try:
    status = main({arguments!r})
except SystemExit as exit_:
    status = exit_.code
print(status, *sorted({HEAVY!r} & sys.modules.keys()), file=sys.stderr)
"""
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert process.stderr.splitlines()[-1] == str(expected)


PARTS_OF_CHECK = {"__main__", "_core", "cli", "errors", "language", "memory", "models", "text"}
"""Packages and modules of ours that a check may import; of `models` it needs the names of the backends."""


def test_a_check_imports_few_modules() -> None:
    script = f"""
import runpy, sys
sys.argv = ["fim-server", "check", {cli.__file__!r}]
try:
    runpy.run_module("fim_server", run_name="__main__")
except SystemExit:
    print(*sys.modules, sep="\\n")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    modules = done.stdout.split()
    ours = {name for name in modules if name.startswith("fim_server.")}
    assert {name.split(".")[1] for name in ours} <= PARTS_OF_CHECK
    assert {name for name in ours if name.startswith("fim_server.cli.")} == {
        f"fim_server.cli.{name}" for name in ("arguments", "check", "output", "program", "source")
    }
    assert {name for name in ours if name.startswith("fim_server.models.")} == {
        f"fim_server.models.{name}" for name in ("backend", "loaders", "options")
    }
    slow = {"asyncio", "email", "importlib.metadata", "lark", "numpy", "tokenizers", "attrs"}
    assert not slow & set(modules)
    assert not any(name.startswith("fim_server.language.definition.token_trees") for name in ours)


def test_argparse_stays_in_one_module() -> None:
    package = Path(cli.__file__).parent.parent
    knowing = {
        path.relative_to(package).as_posix() for path in package.rglob("*.py") if "Namespace" in path.read_text()
    }
    assert knowing <= {"cli/arguments.py"}
