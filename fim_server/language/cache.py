"""Where compiled languages and token tables are kept between runs."""

import os
from pathlib import Path


def cache_folder() -> Path | None:
    """The folder; None where the user wants no cache (FIM_SERVER_CACHE is empty). It may not exist yet.

    FIM_SERVER_CACHE names it; otherwise it is `fim-server` in XDG_CACHE_HOME or `~/.cache`.
    """
    folder = os.environ.get("FIM_SERVER_CACHE")
    if folder == "":
        return None
    if folder:
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fim-server"
