"""Settings of the editor and of the command line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fim_server.suggest.settings import CLIENT_FIELDS, DEFAULTS, ServerSettings, own_fields


@pytest.mark.parametrize("values", [None, 3, [], {"pylsp": {"plugins": {}}}, {"enabledd": True}])
def test_settings_of_other_servers_are_ignored(values: object) -> None:
    assert own_fields(values) is None


def test_our_settings_are_found_with_and_without_their_section() -> None:
    for values in ({"trigger": "manual"}, {"fim-server": {"trigger": "manual"}, "pylsp": {}}):
        assert own_fields(values) == {"trigger": "manual"}
    assert own_fields({}) == own_fields({"fim-server": {}}) == {}


def test_a_language_that_is_not_named_stays_as_it_is() -> None:
    settings, problems = ServerSettings().with_client({"languages": {"python": "manual"}})
    assert (settings.trigger_of("python"), settings.trigger_of("json"), problems) == ("manual", "off", [])


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ({"python": "3.10"}, "3.10"),
        ({"python": "newest"}, "newest"),
        ({"python": "2"}, None),
        ({"cobol": "1"}, None),
        ([], None),
    ],
)
def test_versions_by_language(value: object, kept: str | None) -> None:
    settings, problems = ServerSettings().with_client({"languageVersions": value})
    assert settings.versions.get("python") == kept
    assert bool(problems) == (kept is None)
    assert replace(settings, python_version="3.12").versions["python"] == "3.12"


def test_editors_names_of_languages() -> None:
    values = {
        "languages": {"typescriptreact": "off", "javascript": "manual"},
        "languageVersions": {"javascriptreact": "newest"},
    }
    settings, problems = ServerSettings().with_client(values)
    assert (settings.trigger_of("tsx"), settings.trigger_of("javascript")) == ("off", "manual")
    assert (settings.trigger_of("typescript"), settings.language_versions, problems) == (
        "automatic",
        {"jsx": "newest"},
        [],
    )


@pytest.mark.parametrize(("version", "kept"), [("banana", None), ("2.7", None), ("3.12", "3.12"), ("newest", "newest")])
def test_a_python_that_is_not_known_keeps_the_default(version: str, kept: str | None) -> None:
    settings, problems = ServerSettings().with_client({"pythonVersion": version})
    assert settings.python_version == kept
    assert bool(problems) == (kept is None)


def test_the_command_line_decides_the_model() -> None:
    values = {"model": "other", "device": "cuda", "pythonVersion": "3.12", "trigger": "manual"}
    named = ServerSettings(model="mine", device="cpu", python_version="3.11").with_client(values)[0]
    assert (named.model, named.device, named.python_version, named.trigger) == ("mine", "cpu", "3.11", "manual")


def test_no_settings_change_nothing() -> None:
    nothing: tuple[dict[str, Any] | None, ...] = (None, {}, {"fim-server": {}})
    for values in nothing:
        assert ServerSettings().with_client(values) == (ServerSettings(), [])


def test_every_setting_of_the_page_is_taken() -> None:
    values: dict[str, Any] = {
        "enabled": False,
        "trigger": "manual",
        "languages": {"python": "off", "json": "automatic"},
        "insideComments": True,
        "insideStrings": False,
        "multiline": "never",
        "minConfidence": 0.25,
        "personalThreshold": False,
        "alternatives": 5,
        "maxTokens": 64,
        "maxLineTokens": 12,
        "promptTokens": 512,
        "temperature": 0.5,
        "deadlineMs": 0,
        "invokedDeadlineMs": 10_000,
        "debounceMs": 75,
        "maxFileCharacters": 10,
        "memoryMb": 700,
        "floor": "brackets",
        "names": "off",
        "checker": True,
        "nextEditModel": "sweep.gguf",
        "secretFiles": ("*.vault", "!secrets.py"),
        "projectMemory": False,
        "projectContext": "on",
        "askModel": False,
        "prefetch": False,
        "nextEdits": False,
        "logCode": True,
        "languageVersions": {"python": "3.10"},
        "pythonVersion": "3.9",
        "model": "./a-model",
        "device": "cpu",
        "gpuLayers": 3,
        "adapter": "adapter.gguf",
        "apiKeyEnv": "KEY",
        "allowPlainHttp": True,
        "tokenizer": "./a-tokenizer",
    }
    assert set(values) == set(CLIENT_FIELDS)
    for wrapped in (values, {"fim-server": values}):
        settings, problems = ServerSettings().with_client(wrapped)
        assert problems == []
        for key, value in values.items():
            name, _ = CLIENT_FIELDS[key]
            assert getattr(settings, name) == value
            assert getattr(settings, name) != DEFAULTS[name]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("enabled", "true"),
        ("languages", {"*/" * 40 + "*.md": "off"}),
        ("secretFiles", "*.vault"),
        ("secretFiles", [1]),
        ("secretFiles", ["!"]),
        ("enabled", 1),
        ("trigger", "off"),
        ("trigger", 3),
        ("trigger", ["automatic"]),
        ("languages", []),
        ("languages", {"python": True}),
        ("multiline", "sometimes"),
        ("alternatives", 0),
        ("alternatives", 6),
        ("alternatives", 2.5),
        ("alternatives", True),
        ("maxTokens", 0),
        ("maxTokens", "12"),
        ("promptTokens", 15),
        ("promptTokens", 100.5),
        ("temperature", -0.1),
        ("temperature", float("nan")),
        ("temperature", float("inf")),
        ("deadlineMs", -1),
        ("debounceMs", {}),
        ("maxFileCharacters", -1),
        ("memoryMb", 0),
        ("pythonVersion", 3.11),
        ("model", 5),
    ],
)
def test_wrong_values_keep_the_default_and_are_named(key: str, value: object) -> None:
    settings, (problem,) = ServerSettings().with_client({key: value, "maxLineTokens": 7})
    name, _ = CLIENT_FIELDS[key]
    assert getattr(settings, name) == DEFAULTS[name]
    assert settings.max_line_tokens == 7
    assert key in problem
    assert "\n" not in problem


def test_null_is_the_default_and_whole_numbers_may_come_as_floats() -> None:
    settings, problems = ServerSettings().with_client(dict.fromkeys(CLIENT_FIELDS))
    assert (settings, problems) == (ServerSettings(), [])
    settings, problems = ServerSettings().with_client({"alternatives": 2.0, "model": "  "})
    assert (settings.alternatives, settings.model, problems) == (2, None, [])


def test_unknown_fields_are_named_and_the_extensions_own_are_not() -> None:
    _, problems = ServerSettings().with_client(
        {"colour": 1, "path": [], "trace": {"server": "off"}, "logLevel": "info"}
    )
    assert problems == ["unknown setting 'colour'"]
    for nonsense in ([1], "text", 5, {"fim-server": 5}):
        assert ServerSettings().with_client(nonsense)[0] == ServerSettings()
        assert ServerSettings().with_client(nonsense)[1]


def test_settings_that_need_another_loading() -> None:
    settings = ServerSettings()
    assert settings.loads_like(settings.having("alternatives", 1))
    for name in ("model", "device", "python_version"):
        assert not settings.loads_like(settings.having(name, "other"))


def test_globs_of_files_override_languages_and_the_last_one_counts() -> None:
    languages = {"*.md": "automatic", "markdown": "off", "docs/**/*.MD": "manual", "/a.md": "off", "go": "manual"}
    settings, problems = ServerSettings().with_client({"languages": languages})
    assert problems == []
    files = {"x.md": "automatic", "docs/b/x.md": "manual", "a.md": "off", "sub/a.md": "automatic", "b.markdown": "off"}
    for file, trigger in files.items():
        assert settings.trigger_of("markdown", (), file) == trigger, file
    assert settings.trigger_of("go", None, "x.go") == "manual"
    assert settings.trigger_of("go", None, "lib/x.md") == "automatic"
    assert settings.trigger_of("markdown", (), "") == "off"
    assert settings.having("enabled", False).trigger_of("markdown", (), "x.md") == "off"


@pytest.mark.parametrize(
    ("languages", "problem"),
    [
        ({"!*.md": "off"}, "a glob expected, not '!*.md'"),
        ({f"{number}.md": "off" for number in range(65)}, "65 globs, at most 64 are read"),
    ],
)
def test_other_keys_than_languages_and_globs_are_refused(languages: dict[str, str], problem: str) -> None:
    settings, problems = ServerSettings().with_client({"languages": languages})
    assert settings == ServerSettings()
    assert problem in problems[0]
