"""The command line on files of HTML and its relatives: the code at the cursor, and all code for `check`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fim_server.decoding import complete as decoding
from fim_server.decoding.results import Completion, StopReason, Won
from fim_server.text.document import Split
from support.command_line import run_command

PAGE = """<p>é</p>
<script>
const total = sum(1,
print(total);
</script>
<script type="application/json">{"a": 1}</script>
"""
NO_CODE = "fim-server: no code of a known language at the cursor (vue)\n"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "a.html"
    path.write_text(PAGE, encoding="utf-8")
    return path


def test_check_reports_each_piece_of_code(capsys: pytest.CaptureFixture[str], page: Path) -> None:
    status, output, _ = run_command(capsys, "check", str(page))
    assert status == 1
    assert output.startswith(f"{page}:4:13: ';' cannot come here; expected \")\"; all that may come: ")
    assert output.count("\n") == 1
    page.write_text(PAGE.replace("(1,", "(1);").replace("1}", "1,}"), encoding="utf-8")
    status, output, _ = run_command(capsys, "check", str(page))
    assert (status, output.startswith(f"{page}:6:41: '}}' cannot come here")) == (1, True)
    page.write_text(PAGE.replace("(1,", "(1);"), encoding="utf-8")
    assert run_command(capsys, "check", str(page)) == (0, "", "")
    page.write_text(PAGE.replace("(1,", "(1);") + "<b></i>", encoding="utf-8")
    status, output, _ = run_command(capsys, "check", str(page))
    assert (status, output.startswith(f"{page}:7:7: '>' cannot come here"), output.count("\n")) == (1, True, 1)


def test_check_of_code_as_json(capsys: pytest.CaptureFixture[str], page: Path) -> None:
    status, output, _ = run_command(capsys, "check", str(page), "--json")
    answer = json.loads(output)
    assert (status, answer["language"], answer["valid"]) == (1, "html", False)
    first, second = answer["code"]
    assert "position" not in answer
    assert second == {"line": 6, "language": "json", "valid": True}
    assert (first["line"], first["language"], first["at_end"]) == (2, "javascript", False)
    assert first["position"] == {"line": 4, "column": 13, "offset": PAGE.index(";\n</script>")}


def test_code_ends_too_early_before_its_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "a.vue"
    path.write_text('<script lang="ts">const a: </script>', encoding="utf-8")
    status, output, _ = run_command(capsys, "check", str(path))
    assert status == 1
    assert output.startswith(f"{path}:1:28: the code ends too early; ")


@pytest.mark.parametrize("kind", ["commonjs", "module"])
def test_a_projects_kind_of_files_does_not_count_for_code(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, kind: str
) -> None:
    (tmp_path / "package.json").write_text(json.dumps({"type": kind}), encoding="utf-8")
    for name, text in (("a.vue", "import a from 'a';"), ("a.html", "with (a) b();"), ("b.html", "export {};")):
        (tmp_path / name).write_text(f"<script>{text}</script>", encoding="utf-8")
        assert run_command(capsys, "check", str(tmp_path / name)) == (0, "", "")


def test_explain_reads_the_code_alone(capsys: pytest.CaptureFixture[str], page: Path) -> None:
    status, output, _ = run_command(capsys, "explain", str(page), "3:21", "--text", "2);")
    assert status == 0
    assert output.splitlines()[:3] == [
        f"{page}:3:21: javascript, guarantee partial",
        "  lines 2 to 5 are read alone, as javascript",
        "  '2);' is complete",
    ]
    status, output, _ = run_command(capsys, "explain", str(page), "1:4")
    assert (status, output.splitlines()[0]) == (0, f"{page}:1:4: html, guarantee balanced")
    other = page.with_suffix(".vue")
    other.write_text(PAGE, encoding="utf-8")
    assert run_command(capsys, "explain", str(other), "1:2") == (2, "", NO_CODE)
    assert run_command(capsys, "complete", str(other), "1:2") == (2, "", NO_CODE)


def test_fences_of_markdown_are_code(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("It's\n\n```json\n[1, 2]\n```\n(\n```toml\na = [\n```\n", encoding="utf-8")
    status, output, _ = run_command(capsys, "check", str(path))
    assert (status, output.startswith(f"{path}:9:1: the code ends too early"), output.count("\n")) == (1, True, 1)
    assert run_command(capsys, "explain", str(path), "4:2")[1].startswith(f"{path}:4:2: json, guarantee partial\n")
    no_code = "fim-server: no code of a known language at the cursor (markdown)\n"
    assert run_command(capsys, "explain", str(path), "1:2") == (2, "", no_code)
    arguments = ("complete", str(path), "1:5", "--json", "--model", "embedded")
    assert json.loads(run_command(capsys, *arguments)[1])["guarantee"] == "none"


def test_a_named_language_reads_the_whole_file(capsys: pytest.CaptureFixture[str], page: Path) -> None:
    status, output, _ = run_command(capsys, "check", str(page), "--language", "javascript")
    assert (status, output.startswith(f"{page}:1:1: '<' cannot come here")) == (1, True)


@pytest.mark.parametrize(("text", "shown"), [("2);", "2);"), ('"</script>");', None)])
def test_complete_reads_the_code_and_shows_the_model_the_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, page: Path, text: str, shown: str | None
) -> None:
    seen: list[tuple[Split, Split | None]] = []

    def written(model: Any, language: Any, split: Split, *_: Any, contexts: Split | None, **__: Any) -> Completion:
        seen.append((split, contexts))
        return Completion(text, "exact", StopReason.END_TOKEN, None, won=Won.END_TOKEN)

    monkeypatch.setattr(decoding, "complete", written)
    status, output, _ = run_command(capsys, "complete", str(page), "3:21", "--json", "--model", "embedded")
    answer = json.loads(output)
    assert (status, answer["text"], answer["guarantee"]) == (0 if shown else 1, shown, "partial")
    assert answer["diagnostics"] == ["lines 2 to 5 are read alone, as javascript"]
    assert answer["reason"] == (None if shown else "it would change where the code in this file ends")
    ((split, contexts),) = seen
    assert split.left + split.right == PAGE
    assert contexts is not None
    assert (contexts.left, contexts.right) == ("\n\nconst total = sum(1,", "\nprint(total);\n")


def test_a_completion_of_the_embedded_model_parses(capsys: pytest.CaptureFixture[str], page: Path) -> None:
    status, output, _ = run_command(capsys, "complete", str(page), "3:21", "--json", "--model", "embedded")
    assert status == 0
    page.write_text(PAGE.replace("(1,", "(1," + json.loads(output)["text"]), encoding="utf-8")
    assert run_command(capsys, "check", str(page)) == (0, "", "")
