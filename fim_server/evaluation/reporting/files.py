"""The files that reports are written to."""

from __future__ import annotations

from pathlib import Path

from fim_server.errors import RecordError

REPORT_PAGE, REPORT_SUMMARY = "report.html", "summary.md"
COMPARE_PAGE, COMPARE_SUMMARY, COMPARE_NUMBERS = "compare.html", "compare.md", "compare.json"


def write_files(out: str | Path, files: dict[str, str]) -> None:
    """Write texts into a folder, which is made. Raises RecordError where that cannot be done."""
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_bytes(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise RecordError(f"{out}: {error.strerror or error}") from None
