"""A command of ``fim-server``, run in the tests' own process."""

from __future__ import annotations

import pytest

from fim_server.cli import program


def run_command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error."""
    try:
        status = program.main(arguments)
    except SystemExit as exit_:
        status = int(exit_.code or 0)
    output, errors = capsys.readouterr()
    return status, output, errors
