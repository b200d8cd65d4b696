"""Separation in the memory: languages, private documents, and secrets, which it leaves out."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fim_server.memory.memory import Memory
from fim_server.suggest.sources.private_documents import PrivateDocuments

LOOP = "rows = read(path)\nfor row in rows:\n    total += row.amount\n"
RUST = "let rows = read(path);\nfor "


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory() as memory:
        yield memory


def remember(memory: Memory, key: str, text: str, language: str = "", private: bool = False) -> None:
    memory.changed(key, text, "", language, private)
    assert memory.settle()


def everything(memory: Memory, key: str, left: str, language: str = "", words: tuple[str, ...] = ()) -> str:
    """Return the memory's answers to all kinds of queries at a cursor."""
    texts = [one.text for one in memory.recall(key, left, "", 8, 16, language)]
    predicted = [text for text, _ in memory.predict(key, left, 16, language=language)]
    named = memory.related(key, range(0), words, [], words, ["def", "class", "fn"], 16, language)
    return "\n".join([*texts, *predicted, *(excerpt.text for excerpt in named)])


# --- languages ----------------------------------------------------------------------------------------------------


def test_an_open_document_answers_in_its_own_language_alone(memory: Memory) -> None:
    for number in range(3):
        remember(memory, f"/p/{number}.py", LOOP, "python")
    words = ("rows", "row", "total", "amount", "read", "path")
    assert everything(memory, "/p/a.rs", RUST, "rust", words) == ""
    assert everything(memory, "/p/a.rs", RUST, "", words) == ""
    found = everything(memory, "/p/a.py", "rows = read(path)\nfor ", "python", words)
    assert found.startswith("row in rows:\n    total += row.amount\nrow")
    assert memory.characters("python") == memory.characters() == 3 * len(LOOP)
    assert memory.characters("rust") == 0


def test_a_folder_of_several_languages_answers_in_each(memory: Memory, tmp_path: Path) -> None:
    for number in range(20):  # of enough files for segments to be joined
        (tmp_path / f"a{number}.py").write_text(LOOP)
        (tmp_path / f"b{number}.pyi").write_text("for stub in stubs: ...\n")
        (tmp_path / f"c{number}.rs").write_text("fn f() {\n    for item in items.iter() {\n    }\n}\n")
        memory.index(tmp_path, [".py", ".pyi", ".rs"], {".py": "python", ".pyi": "python", ".rs": "rust"})
        assert memory.settle()
    left = "rows = read(path)\nfor "
    python, rust = (everything(memory, str(tmp_path / f"new.{end}"), left) for end in ("py", "rs"))
    assert "row in rows" in python
    assert "stub in stubs" in python
    assert "item" not in python
    assert rust.startswith("item in items.iter()")
    assert "row" not in rust
    assert "stub" not in rust
    # A document without a file asks by its language's name.
    assert everything(memory, "untitled:1", left, "rust") == rust
    assert everything(memory, "untitled:1", left) == ""
    assert memory.sizes()["files"] == 60


def test_a_document_that_changes_its_language_goes_with_it(memory: Memory) -> None:
    remember(memory, "untitled:1", LOOP, "python")
    assert "row in rows" in everything(memory, "/p/a.py", "rows = read(path)\nfor ", "python")
    remember(memory, "untitled:1", LOOP, "starlark")
    assert everything(memory, "/p/a.py", "rows = read(path)\nfor ", "python") == ""
    assert "row in rows" in everything(memory, "/p/b.star", "rows = read(path)\nfor ", "starlark")


# --- private documents --------------------------------------------------------------------------------------------


def test_a_private_document_answers_only_itself(memory: Memory) -> None:
    remember(memory, "/p/ignored.py", LOOP, "python", private=True)
    words = ("rows", "row", "total", "amount", "read", "path")
    left = "rows = read(path)\nfor "
    assert everything(memory, "/p/a.py", left, "python", words) == ""
    assert "row in rows" in everything(memory, "/p/ignored.py", LOOP + left, "python")
    remember(memory, "/p/ignored.py", LOOP, "python", private=False)
    assert "row in rows" in everything(memory, "/p/a.py", left, "python", words)


@pytest.mark.parametrize("name", [".env", ".env.local", "prod.env", "id_rsa", "server.pem", ".netrc", "Secrets.json"])
def test_files_named_as_for_secrets_are_private(tmp_path: Path, name: str) -> None:
    assert PrivateDocuments().contains(tmp_path / name, [tmp_path])
    for other in ("environment.py", "key.py", "rsa.go", "my_credentials.go", "id_maker.py"):
        assert not PrivateDocuments().contains(tmp_path / other, [tmp_path])


def test_files_that_git_ignores_are_private(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / ".gitignore").write_text("/local.py\nbuilt/\n*.gen.py\n!kept.gen.py\n")
    (tmp_path / "a" / ".gitignore").write_text("here.py\n")
    (tmp_path / ".git" / "info" / "exclude").write_text("excluded.py\n")
    files = ["local.py", "a/local.py", "a/b/built/x.py", "a/x.gen.py", "a/kept.gen.py", "here.py", "a/b/here.py"]
    files += ["excluded.py", "a/excluded.py", "plain.py"]
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    by_git = subprocess.run(["git", "-C", str(tmp_path), "check-ignore", *files], capture_output=True, text=True)
    ignored = set(by_git.stdout.split())
    assert len(ignored) == 6
    for folders in ([tmp_path], [], [inner]):
        private = PrivateDocuments()
        assert {name for name in files if private.contains(tmp_path / name, folders)} == ignored, folders
    assert not PrivateDocuments().contains(None, [tmp_path])


def test_ignore_files_are_read_within_bounds(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").symlink_to("/dev/zero")
    assert PrivateDocuments().contains(tmp_path / "a.py", [tmp_path])
    (tmp_path / ".gitignore").unlink()
    assert not PrivateDocuments().contains(tmp_path / "a.py", [tmp_path])
    (tmp_path / ".gitignore").write_text("*a" * 400 + "b\n" + "**/" * 300 + "x\n" + "[a-z]*" * 5 + "\n")
    assert PrivateDocuments().contains(tmp_path / f"{'a' * 200}.py", [tmp_path])
    assert not PrivateDocuments().contains(tmp_path / "A.py", [tmp_path])


# --- secrets ------------------------------------------------------------------------------------------------------

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\nhunter2==\n-----END OPENSSH PRIVATE KEY-----\n"
SECRETS = [
    'DB_PASSWORD = "hunter2"\n',
    "SIGNING_SECRET = 'hunter2'\n",
    'SENTRY_KEY = "hunter2"\n',
    'SLACK_TOKEN: Final[str] = "hunter2"\n',
    'client = Client(api_key="hunter2", region="eu")\n',
    'login(user="bob", password="hunter2")\n',
    'settings = {"user": "bob", "password": "hunter2", "port": 5}\n',
    'headers = {"Authorization": "Bearer hunter2hunter2"}\n',
    'engine = create_engine("postgresql://bob:hunter2@db.example.com/main")\n',
    'dsn = "Server=db;User Id=bob;Password=hunter2;"\n',
    'os.environ["AWS_SECRET_ACCESS_KEY"] = "hunter2"\n',
    'self.db_passwd = "hunter2"\n',
    f'KEY = """{KEY}"""\n',
    'PASSWORD = (\n    "hunter2"\n)\n',
    'def connect(host, password="hunter2"):\n    pass\n',
    'value = "hunter2-8ZrVx9Lm2Tn7Bw4Kc6Qp3"\n',
    'let api_token: &str = "hunter2";\n',
    'private static final String API_KEY = "hunter2";\n',
    'const clientSecret = "hunter2"\n',
    '{\n  "db_password": "hunter2"\n}\n',
    '# password = "hunter2"\n',
]


@pytest.mark.parametrize("text", SECRETS)
@pytest.mark.parametrize("open_document", [True, False], ids=["open", "file"])
def test_a_secret_is_recalled_at_no_place(memory: Memory, tmp_path: Path, text: str, open_document: bool) -> None:
    before, after = "import first_thing\n", "last_thing = other_thing\n"
    whole = f"{before}{text}{after}" * 3
    if open_document:
        remember(memory, str(tmp_path / "a.py"), whole)
    else:
        (tmp_path / "a.py").write_text(whole)
        memory.index(tmp_path, [".py"])
        assert memory.settle()
    words = ("connect", "user", "bob", "first_thing", "other_thing", "password", "host", "hunter2")
    for key in (str(tmp_path / "b.py"), str(tmp_path / "a.py")):
        for at in range(len(text)):
            if "hunter2" in text[:at]:
                break
            found = everything(memory, key, before + text[:at], words=words if at % 8 == 0 else ())
            assert "unter2" not in found, (text[:at], found)
            assert "b3BlbnNz" not in found, (text[:at], found)
    # What stands around it is remembered.
    assert everything(memory, str(tmp_path / "b.py"), "last_thing = ").startswith("other_thing")


CASES = [
    line.replace("\\n", "\n").replace("\\t", "\t")
    for line in (Path(__file__).parents[1] / "cases" / "secrets.txt").read_text(encoding="utf-8").splitlines()
]
"""Texts with one secret each, in guillemets."""


def recalled(text: str, start: int, secret: str) -> str | None:
    """Recall, in another document, a secret that stands three times in one, after the text before the cursor."""
    before, after = "import first_thing\n", "last_thing = other_thing\n"
    with Memory() as memory:
        remember(memory, "/p/a.py", f"{before}{text}\n{after}" * 3)
        for at in range(start + 1):
            if at == start or not (text[at - 1] + text[at]).isalnum():
                found = everything(memory, "/p/b.py", before + text[:at], words=("first_thing", "user", "password"))
                if any(word in found for word in secret.split()):
                    return text[:at]
    return None


@pytest.mark.parametrize("part", range(6))
def test_the_secret_of_each_case_is_recalled_at_no_place(part: int) -> None:
    assert len(CASES) > 250
    leaks = []
    for case in CASES[part::6]:
        start, secret = case.index("«"), case[case.index("«") + 1 : case.index("»")]
        at = recalled(case.replace("«", "").replace("»", ""), start, secret)
        if at is not None:
            leaks.append((case, at))
    assert not leaks


def test_the_value_below_the_cursor_is_not_recalled(memory: Memory) -> None:
    # The name stands in the cursor's line, which the memory does not have.
    for number in range(3):
        memory.changed(f"/p/{number}.py", "monkeypatch.setenv(\n", '    "hunter2",\n)\n', "python")
    assert memory.settle()
    for left in ("", "monkeypatch.setenv(\n", "monkeypatch.setenv(\n    ", 'monkeypatch.setenv(\n    "'):
        assert "unter2" not in everything(memory, "/p/b.py", left, "python")


def test_other_strings_are_recalled(memory: Memory) -> None:
    lines = ['title = "A long title of a page"', 'token = os.environ["API_TOKEN"]', 'sort_key = "created_at"']
    remember(memory, "/p/a.py", "".join(f"{line}\n" for line in lines))
    for line in lines:
        name = line.split(" = ")[0]
        texts = [one.text for one in memory.recall("/p/b.py", f"{name} = ", "")]
        assert line.removeprefix(f"{name} = ") in texts
