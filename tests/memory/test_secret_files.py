"""Files of secrets: by their names, by the user's globs, by ignore files for assistants, and where links lead."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fim_server.language.limited_files import read_found
from fim_server.language_support.registry import support_of
from fim_server.memory.ignoring import has_secret_name, is_named_by, is_secret, secret_files
from fim_server.memory.memory import Memory
from fim_server.suggest.sources.scope_cache import reader_without

GLOBS = Path(__file__).parents[1] / "cases" / "globs.json"
"""Globs with files that they name, and others; the VS Code extension is tested with them as well."""

SECRET = ".env .env.local .envrc prod.env a.PEM tls.key id_rsa id_work ID_ED25519.old .netrc credentials"
SECRET += " credentials.json Credentials_old credentials.py.bak secrets.yaml Secrets.py secrets.h x.tfvars"
PLAIN = "environment.py env key.py id_maker.py id_generator.go my_credentials.py secrets pem readme.md"
PLAIN += " credentials.py credentials_provider.go Credentials.java secrets.go"


@pytest.mark.parametrize("name", SECRET.split())
def test_files_of_secrets_have_usual_names(name: str, tmp_path: Path) -> None:
    assert has_secret_name(name)
    assert is_secret(tmp_path / "a" / name, [tmp_path])
    assert is_secret(tmp_path / name, [])


@pytest.mark.parametrize("name", PLAIN.split())
def test_other_names_are_none(name: str, tmp_path: Path) -> None:
    assert not has_secret_name(f"/secrets.d/{name}")
    assert not is_secret(tmp_path / "credentials" / name, [tmp_path])


def test_globs_of_the_user_add_and_take_out(tmp_path: Path) -> None:
    globs = ("*.vault", "/private/", "!secrets.py", "!private/shown.py")
    for name, expected in {
        "a/b.vault": True,
        "private/deep/a.py": True,
        "a/private/a.py": False,
        "secrets.py": False,
        "secrets.toml": True,
        "private/shown.py": False,
    }.items():
        assert is_secret(tmp_path / name, [tmp_path], globs) is expected, name
    assert is_secret(tmp_path / "private" / "shown.py", [tmp_path], ("private/shown.py",))


@pytest.mark.parametrize("case", json.loads(GLOBS.read_text()), ids=lambda case: str(case["glob"]))
def test_globs_name_files(case: dict[str, Any]) -> None:
    assert [file for file in case["named"] if not is_named_by(file, case["glob"])] == []
    assert [file for file in case["others"] if is_named_by(file, case["glob"])] == []


@pytest.mark.parametrize("glob", ["", "!", "a\nb", "# a", "a" * 1000, "\ud800" * 300, "*a" * 100])
def test_other_texts_than_globs_are_refused(glob: str) -> None:
    with pytest.raises(ValueError, match="glob"):
        secret_files((glob,))


@pytest.mark.parametrize("name", [".aiignore", ".aiexclude", ".cursorignore", ".codeiumignore", ".copilotignore"])
def test_ignore_files_for_assistants_name_files(name: str, tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / name).write_text("/here.py\n*.gen.py\ndeep/\n!kept.gen.py\n")
    (tmp_path / "a" / name).write_text("below.py\n!again.gen.py\n")
    secret = ["here.py", "HERE.py", "a/x.gen.py", "a/b/deep/x.py", "a/b/below.py"]
    plain = ["a/here.py", "a/kept.gen.py", "a/again.gen.py", "below.py", "a/b/x.py"]
    for file in secret + plain:
        assert is_secret(tmp_path / file, [tmp_path]) is (file in secret), file
    assert not is_secret(tmp_path / "here.py", [tmp_path], ("!here.py",))
    assert is_secret(tmp_path / "here.py", []), "rules of the file's own folder"
    assert not is_secret(tmp_path / "a" / "b" / "x.gen.py", []), "in no repository and no folder of the workspace"
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    assert is_secret(tmp_path / "a" / "b" / "x.gen.py", [])


def test_below_rules_that_cannot_be_read_every_file_counts(tmp_path: Path) -> None:
    (tmp_path / ".aiignore").symlink_to("/dev/zero")
    assert is_secret(tmp_path / "a.py", [tmp_path])
    (tmp_path / ".aiignore").unlink()
    assert not is_secret(tmp_path / "a.py", [tmp_path])


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
def test_rules_are_read_in_encodings_of_windows(encoding: str, tmp_path: Path) -> None:
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    (tmp_path / ".aiignore").write_bytes(f"{mark}plain.py\r\n".encode(encoding))
    assert is_secret(tmp_path / "plain.py", [tmp_path])
    assert not is_secret(tmp_path / "a.py", [tmp_path])


def test_rules_that_are_no_text_hide_every_file(tmp_path: Path) -> None:
    (tmp_path / ".aiignore").write_bytes(b"plain.py\0\n")
    assert is_secret(tmp_path / "a.py", [tmp_path])


def test_links_count_by_both_names(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.py").touch()
    (tmp_path / ".env").touch()
    (tmp_path / "safe.py").symlink_to(".env")
    (tmp_path / "secrets.py").symlink_to("real/a.py")
    (tmp_path / "plain.py").symlink_to("real/a.py")
    (tmp_path / "linked").symlink_to("real", target_is_directory=True)
    assert is_secret(tmp_path / "safe.py", [tmp_path])
    assert is_secret(tmp_path / "safe.py", [tmp_path], ("!safe.py",))
    assert is_secret(tmp_path / "secrets.py", [tmp_path])
    assert not is_secret(tmp_path / "plain.py", [tmp_path])
    assert is_secret(tmp_path / "linked" / "a.py", [tmp_path], ("/real/",))
    whole = tmp_path.with_name(f"{tmp_path.name}-link")
    whole.symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "keys.env").touch()
    assert is_secret(whole / "keys.env", [whole])
    assert not is_secret(whole / "keys.env", [whole], ("!/keys.env",))


def test_folders_are_read_without_them(tmp_path: Path) -> None:
    names = ["a.py", "secrets.py", "b/secrets.py", "hidden/a.py", "x_local.py"]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"alpha = beta_{len(name)}\n")
    (tmp_path / ".cursorignore").write_text("hidden\n")
    with Memory() as memory:
        counts = []
        for globs in ((), ("x_*",), ("!secrets.py", "!hidden/*")):
            memory.index(tmp_path, [".py"], secret=globs)
            assert memory.settle()
            counts.append(memory.sizes()["files"])
    assert counts == [2, 1, 4]


def test_imports_are_read_without_them(tmp_path: Path) -> None:
    (tmp_path / "secrets.py").write_text("alpha = 1\n")
    (tmp_path / "plain.py").write_text("beta = 1\n")
    library = tmp_path / ".venv" / "lib" / "python3.12" / "site-packages"
    library.mkdir(parents=True)
    (library / "credentials.py").write_text("gamma = 1\n")
    (tmp_path / "own_secrets.py").write_text("delta = 1\n")
    support = support_of("python")
    assert support is not None
    plain = support.modules([tmp_path], read_found).at(tmp_path / "a.py")
    guarded = support.modules([tmp_path], reader_without(("own_*",), [tmp_path])).at(tmp_path / "a.py")
    assert plain.public("own_secrets") == frozenset({"delta"})
    assert guarded.public("own_secrets") is None, "as a module that is not found"
    assert guarded.public(".secrets") is None
    assert guarded.public("plain") == frozenset({"beta"})
    assert guarded.public("credentials") == frozenset({"gamma"})
