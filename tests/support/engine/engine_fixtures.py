"""The languages as the engine's own tests read them: ``rust_core/tests/languages/*.json``, lowered by the package.

The engine builds and tests without Python, and lowering a grammar is Python's part. So the lowered definitions are kept
beside the engine's tests; ``python -m support.engine.engine_fixtures`` writes them again after a definition has
changed, and tests/definitions/test_engine_fixtures.py fails where that was forgotten.
"""

import json
from pathlib import Path

from fim_server.language.definition import compile as lowering

FOLDER = Path(__file__).parents[3] / "rust_core" / "tests" / "languages"
NAMES = ("json", "python")


def lowered(name: str) -> str:
    """The newest version of a language as the engine is given it, a lexeme or a rule a line."""
    spec = lowering.lower(lowering.read_builtin(name))
    parts = []
    for key, value in spec.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            rows = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in value)
            parts.append(f"{json.dumps(key)}: [\n{rows}\n]")
        else:
            parts.append(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    for language in NAMES:
        (FOLDER / f"{language}.json").write_text(lowered(language), encoding="utf-8")
