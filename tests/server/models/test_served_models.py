"""The server's word on the model that serves, and its command that gets a better one. What fetches it is the tests'."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from support.editors import editor
from support.editors.editor import PATIENCE, Client, Editor, assert_parses, capabilities, plain, serving, written

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROGRAM = Path(__file__).parents[2] / "support" / "servers" / "server_with_fetcher.py"
TEXT = "import os\n\n\ndef names(path, count):\n    return \n"
HERE = TEXT.index("return ") + 7
HOW = "fim-server models get smollm2"
OFFER = {"name": "smollm2", "state": "missing", "bytes": 92_871_040, "how": HOW}


@asynccontextmanager
async def server(cache: Path, fetcher: str, *arguments: str, progress: bool = True) -> AsyncIterator[Client]:
    """A server whose cache is empty but for its compiled languages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FIM_SERVER_CACHE", str(cache))
        patch.setenv("FETCHER", fetcher)
        patch.setattr(editor, "SERVE", [sys.executable, str(PROGRAM)])
        offered = capabilities()
        offered.window = types.WindowClientCapabilities(work_done_progress=progress)
        async with serving(offered, *arguments) as client:
            yield client


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def getting(client: Client) -> list[Any]:
    """The reports on the last thing that there was progress of."""
    reports: list[Any] = list(client.progress_reports.values())[-1]
    return reports


def asked(*arguments: Any) -> types.ExecuteCommandParams:
    return types.ExecuteCommandParams("fim-server.getModel", list(arguments))


async def test_a_failure_is_answered_and_logged_and_the_server_goes_on(cache: Path) -> None:
    async with server(cache, "fails") as client:
        await client.is_ready()
        assert client.statuses[-1]["model"]["name"] == "embedded"
        assert client.statuses[-1]["offer"] == OFFER
        assert client.statuses[-1]["message"].endswith(f"; a better model, smollm2, is available: run `{HOW}`")
        answer = await client.run("getModel")
        assert answer == {"name": "smollm2", "done": False, "cancelled": False, "problem": "it cannot be fetched"}
        assert "getting smollm2: it cannot be fetched" in client.logged
        assert client.statuses[-1]["offer"] == OFFER
        assert await Editor(client, "a.py", TEXT).ask(HERE)
        begin, *reports, _ = getting(client)
        assert (begin.title, begin.cancellable) == ("fim-server: getting SmolLM2-135M", True)
        assert reports[1].message == "downloading it: 50 of 100 MB"
        assert [report.percentage for report in reports] == [0, 35, 70]
        with pytest.raises(Exception, match="not in the catalogue"):
            await client.run("getModel", {"name": "llama"})


async def test_the_languages_of_opened_files_alone_are_prepared(cache: Path) -> None:
    def kept(pattern: str) -> set[Path]:
        return set(cache.glob(pattern))

    async with server(cache, "fails") as client:
        await client.use(languages={"json": "automatic"})
        await client.is_ready()
        before = kept("*.spanner")
        assert not kept("json-*.json")
        Editor(client, "a.json", "{}\n", "json")
        await client.until(lambda: kept("json-*.json") and kept("*.spanner") != before)


@pytest.mark.parametrize("by", ["progress", "command"])
async def test_fetching_can_be_cancelled_and_completions_continue(cache: Path, by: str) -> None:
    marks = [cache / "models" / name for name in ("begun", "ended")]
    for mark in marks:
        mark.unlink(missing_ok=True)
    async with server(cache, "slow") as client:
        await client.is_ready()
        running = client.protocol.send_request("workspace/executeCommand", asked())
        await client.until(lambda: client.statuses[-1].get("fetching", {}).get("progress") == 0.7)
        assert client.statuses[-1]["fetching"] == {
            "name": "smollm2",
            "message": "downloading it: 100 of 100 MB",
            "progress": 0.7,
        }
        opened = Editor(client, "a.py", TEXT)
        for item in await opened.ask(HERE):
            assert_parses(opened.applied(item, HERE), written(item))
        again = await client.run("getModel", {"name": "smollm2"})
        assert again["problem"] == "smollm2 is being fetched already"
        cancelled = {"name": "smollm2", "done": False, "cancelled": True, "problem": None}
        if by == "progress":
            token = list(client.progress_reports)[-1]
            client.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(token))
        else:
            assert await client.run("getModel", {"cancel": True}) == cancelled
        assert plain(await asyncio.wait_for(asyncio.wrap_future(running), PATIENCE)) == cancelled
        assert "getting smollm2: cancelled; what has been downloaded is kept" in client.logged
        await client.until(marks[1].exists)
        await client.until(lambda: "fetching" not in client.statuses[-1])
        assert type(getting(client)[-1]).__name__ == "WorkDoneProgressEnd"
        assert (await client.run("getModel", {"cancel": True}))["problem"] == "nothing is being fetched"


async def test_a_server_that_ends_takes_the_process_along(cache: Path) -> None:
    marks = [cache / "models" / name for name in ("begun", "ended")]
    for mark in marks:
        mark.unlink(missing_ok=True)
    async with server(cache, "slow", progress=False) as client:
        await client.is_ready()
        client.protocol.send_request("workspace/executeCommand", asked())
        await client.until(marks[0].exists)
    await client.until(marks[1].exists)


async def test_the_better_model_serves_once_it_is_there(cache: Path) -> None:
    async with server(cache, "ready") as client:
        await client.is_ready()
        opened = Editor(client, "a.py", TEXT)
        assert await opened.ask(HERE)
        answer = await client.run("getModel", {"name": "smollm2"})
        assert answer == {"name": "smollm2", "done": True, "cancelled": False, "problem": None}
        await client.until(lambda: client.statuses[-1].get("model", {}).get("name") == "smollm2")
        await client.is_ready()
        assert "offer" not in client.statuses[-1]
        assert "better" not in client.statuses[-1]["message"]
        assert await opened.ask(HERE)
        assert client.last["origin"] == "model"
    async with server(cache, "ready", "--model", "embedded") as client:
        await client.is_ready()
        assert client.statuses[-1]["model"]["name"] == "embedded"
        assert "offer" not in client.statuses[-1]


async def test_a_missing_named_model_says_how_to_get_it(tmp_path: Path) -> None:
    async with server(tmp_path, "fails", "--model", "smollm2") as client:
        await client.until(lambda: client.statuses and client.statuses[-1]["state"] == "error")
        await client.until(lambda: "offer" in client.statuses[-1])
        assert client.statuses[-1]["message"] == f"smollm2: not installed; run `{HOW}`"
