"""The command ``serve --http``: wrong options get one line."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from fim_server.cli import main
from fim_server.cli.serve import with_file
from fim_server.errors import DocumentError
from fim_server.server import Endpoint, serve
from fim_server.suggest.settings import ServerSettings


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--http", "8012", "--tcp", "8013"], "--tcp and --http: use only one of them"),
        (["--settings", "x.json"], "--settings: needs --http"),
        (["--http", "8012", "--host", "0.0.0.0"], "--host 0.0.0.0: needs a token"),
        (["--http", "127.0.0.1:8012", "--host", "::"], "--http names a host already; --http 8012 names the port alone"),
        (["--http", "x"], "'x' is not an address"),
    ],
)
def test_wrong_options_get_one_line(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    status: object
    try:
        status = main(["serve", *options])
    except SystemExit as error:
        status = error.code
    assert status == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("way", ["--http", "--tcp"])
def test_a_port_in_use_gets_one_line(way: str, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        place = f"127.0.0.1:{holder.getsockname()[1]}"
        assert main(["serve", way, place]) == 2
    assert capsys.readouterr().err == f"fim-server: {place}: address already in use\n"


def test_the_server_says_the_same_of_a_port_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        endpoint = Endpoint("127.0.0.1", holder.getsockname()[1])
        assert serve(ServerSettings(), endpoint) == 2
    assert capsys.readouterr().err == f"fim-server: {endpoint}: address already in use\n"


def test_settings_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text(json.dumps({"minConfidence": 0, "languages": {"go": "off"}}), encoding="utf-8")
    found = with_file(ServerSettings(), file)
    assert (found.min_confidence, found.languages["go"]) == (0.0, "off")
    for text in ('{"minConfidenc": 0}', '{"minConfidence"', "[]", '{"minConfidence": 2}'):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(DocumentError):
            with_file(ServerSettings(), file)
    with pytest.raises(DocumentError, match="no such file"):
        with_file(ServerSettings(), tmp_path / "missing.json")
