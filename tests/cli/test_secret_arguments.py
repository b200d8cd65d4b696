"""The command line and files of secrets: refused in one line, unless the user says that any file may be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from fim_server.cli import main

COMMANDS = (["check"], ["explain", "1:1"], ["complete", "1:1", "--model", "embedded"])


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command[0]))
@pytest.mark.parametrize("name", ["secrets.py", "Secrets.json", "link.py", "kept/a.py", ".env"])
def test_a_file_of_secrets_is_refused(
    command: list[str], name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / ".aiignore").write_text("*.py\n")
    for one in ("secrets.py", "Secrets.json", "kept/a.py", ".env"):
        (tmp_path / one).write_text("1\n")
    (tmp_path / "link.py").symlink_to("secrets.py")
    subject, *rest = command
    arguments = [subject, str(tmp_path / name), *rest]
    assert main(arguments) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err == f"fim-server: {tmp_path / name}: the file may hold secrets; --any-file reads it\n"
    if subject == "check" and name.endswith(".py"):
        assert main([*arguments, "--any-file"]) == 0
    assert main([subject, str(tmp_path / "other.py"), *rest]) == 2
    assert "may hold secrets" not in capfd.readouterr().err
