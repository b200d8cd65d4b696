"""The models that can be named on this machine, as rows of JSON: for ``fim-server models``, and for editors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fim_server.evaluation.model_check.known import Here, known_speeds, recommended
from fim_server.evaluation.model_check.recommendation import Machine, recommend
from fim_server.models.resources.threads import cores
from fim_server.models.source import EMBEDDED_NAME, name_of
from fim_server.models.store.catalogue import catalogue
from fim_server.models.store.folders import cached_folder, size_of
from fim_server.models.store.get import is_removable
from fim_server.models.store.state import State, state_of
from fim_server.system.process import available_bytes


@dataclass(frozen=True)
class Listing:
    """Models and advice.

    Attributes:
        rows: A row for each model: its description, whether it is installed, and its speed (docs/protocol.md).
        advice: The recommended model and the reason, in words; None where nothing was measured.
    """

    rows: list[dict[str, Any]]
    advice: tuple[str, str] | None


def list_models(here: Sequence[Here]) -> Listing:
    """The catalogue's models, the embedded one, and those of the hub and GGUF files among those that are here."""
    serving, speeds = name_of(None), known_speeds()
    rows: list[dict[str, Any]] = [
        {
            "name": entry.name,
            "state": str(state),
            "default": entry.name == serving,
            "about": f"{entry.title}: {entry.about}",
            "licence": entry.licence,
            "open": entry.open,
            "downloadBytes": entry.download if state is State.MISSING else None,
            "bytes": size_of(folder) if folder is not None else None,
            "folder": str(folder) if folder is not None else None,
            "how": None if state is State.READY else entry.how,
        }
        for entry in catalogue().values()
        for state, folder in [(state_of(entry), cached_folder(entry.name))]
    ]
    rows.append(
        {
            "name": EMBEDDED_NAME,
            "state": "embedded",
            "default": serving == EMBEDDED_NAME,
            "about": "7 million parameters, in this package: shows the whole way",
            "licence": "Apache-2.0",
            "open": True,
            "downloadBytes": None,
            "bytes": None,
            "folder": None,
            "how": None,
        }
    )
    rows += [
        {
            "name": one.name,
            "state": "hub" if one.is_of_hub else "file",
            "default": False,
            "about": "from the hub, in its own cache" if one.is_of_hub else "a GGUF file",
            "licence": None,
            "open": None,
            "downloadBytes": None,
            "bytes": one.size,
            "folder": str(one.place) if one.is_of_hub else None,
            "how": None,
        }
        for one in here
        if one.is_of_hub or one.place.is_file()
    ]
    of_hub = {one.name for one in here if one.is_of_hub}
    advice = recommended(list(here), speeds)
    wish = recommend(here, Machine(cores(), available_bytes(), None, False)).name if speeds else None
    for row in rows:
        speed = speeds.get(row["name"])
        row["readTokensPerSecond"] = None if speed is None else round(speed.read)
        row["writtenTokensPerSecond"] = None if speed is None else round(speed.written)
        row["lineMs"] = None if speed is None else round(speed.line_ms)
        is_wish = row["name"] == wish and row["state"] == State.MISSING
        row["recommended"] = is_wish or (advice is not None and row["name"] == advice[0])
        row["removable"] = row["name"] in of_hub or is_removable(row["name"])
    return Listing(rows, advice)
