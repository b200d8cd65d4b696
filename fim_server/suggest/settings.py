"""Settings: from the command line at the start, from the editor at any time (docs/protocol.md)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from fim_server.language import Language
from fim_server.language.definition.versions import NEWEST
from fim_server.language.session import FLOORS
from fim_server.memory.ignoring import is_named_by, secret_files
from fim_server.models.backend import LEAST_PROMPT_TOKENS
from fim_server.models.options import LoadOptions

SECTION = "fim-server"
"""The settings' name in an editor's configuration."""

LOAD_OPTIONS = tuple(entry.name for entry in fields(LoadOptions))
"""Settings that are options of loading, by the same names."""

SHOWING_TRIGGERS = ("automatic", "subtle", "manual")
TRIGGERS = (*SHOWING_TRIGGERS, "off")
NAMES = ("prefer", "off", "require")
PROJECT_CONTEXT = ("auto", "on", "off")
MULTILINE = ("auto", "never", "always")
MOST_GLOBS = 64
"""Most globs of files in the setting ``languages``. Each is matched at each request."""

NAME = re.compile(r"[\w +#-]*")
"""Name of a language in the setting ``languages``; other keys are globs of files."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Settings of one server process. Times are in milliseconds; a deadline of 0 or None is none."""

    model: str | None = None
    """A model folder, GGUF file, endpoint or hub name; None is smollm2 if it is installed, else the embedded model."""
    device: str | None = None
    """A torch device; None is a GPU where there is one."""
    runtime: str | None = None
    """`torch`, `onnx` or `llama.cpp`; None is what can run the model, onnx first."""
    gpu_layers: int | None = None
    """Number of layers of a GGUF file on the GPU; -1 for all; None is all if llama.cpp has a GPU."""
    adapter: str | None = None
    """A low-rank adapter for a GGUF file, in a GGUF file of its own."""
    api_key_env: str | None = None
    """Environment variable with the key of an endpoint."""
    allow_plain_http: bool = False
    """Allow an endpoint on another machine without TLS."""
    tokenizer: str | None = None
    """Folder with the tokenizer.json of an endpoint's model, or its GGUF file."""
    python_version: str | None = None
    """Version of Python, or `newest`; None is the version of each file's project, else the newest."""
    language_versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of languages, or `newest`; other languages have the version of each file's project."""
    enabled: bool = True
    trigger: str = "automatic"
    """`automatic`; `manual`: on request only; `subtle`: on request, but computed before."""
    languages: Mapping[str, str] = field(default_factory=lambda: {"json": "off"})
    """Triggers of languages, and of files by globs: those of ``trigger``, or `off`. They override ``trigger`` and the
    model's languages, and globs override languages; the last glob that names a file counts."""
    inside_comments: bool = False
    inside_strings: bool = True
    multiline: str = "auto"
    """`auto`: one line in the middle of a line, more at its end; `never`; `always`."""
    min_confidence: float = 0.5
    """Least confidence of the first lexeme of an unrequested suggestion, from 0 to 1; 0 shows all."""
    personal_threshold: bool = True
    """Let what the user accepts and dismisses move ``min_confidence`` by at most 0.1."""
    alternatives: int = 3
    """Suggestions for an explicit request."""
    max_tokens: int = 128
    """Longest completion of many lines, in tokens."""
    max_line_tokens: int = 48
    """Longest completion of one line, in tokens."""
    prompt_tokens: int | None = None
    """Longest prompt, in tokens; None is the length that the model reads in 0.3 s on this machine, at least 192."""
    temperature: float = 0.0
    """Temperature of sampling; 0 takes the likeliest token."""
    deadline_ms: float | None = 1500
    """Deadline, after which the longest complete text so far is suggested."""
    invoked_deadline_ms: float | None = 5000
    """Deadline of an explicit request."""
    debounce_ms: float | None = None
    """Pause before an automatic request; None chooses it by the measured latency."""
    max_file_characters: int = 1_000_000
    """Largest document with completions: the engine reads all of a file when it is opened."""
    memory_mb: int | None = None
    """Memory limit of the process, in MB; None is a quarter of the machine's memory, at least 1,024."""
    floor: str = "off"
    """Constructs before the cursor that a completion must not close and open again: `off`, `brackets`, `block`."""
    names: str = "prefer"
    """`prefer`: unknown names lower the confidence; `require`: no suggestion loads an undefined name, in languages with
    name analysis; `off`."""
    checker: bool = False
    """Have a language server check suggestions, where there is one on the PATH: gopls in Go."""
    secret_files: tuple[str, ...] = ()
    """Globs of files that are never read, besides those with usual names of files of secrets; `!` before a glob takes
    files out."""
    project_memory: bool = True
    """Use the text of the workspace's files and of open documents. It never leaves the machine."""
    project_context: str = "auto"
    """Show the model definitions and lines of other files: `on`; `off`; `auto` for models that were trained on several
    files in one prompt. Needs ``project_memory``."""
    ask_model: bool = True
    """Ask the model. Without it, all suggestions come from the project's memory."""
    prefetch: bool = True
    """Prefetch the suggestion after an accepted one, and read the prompt after an edit."""
    next_edits: bool = True
    """Propose the next edit."""
    next_edit_model: str | None = None
    """A model that is trained to write next edits, as ``model``; None: ``model``, if it is."""
    log_code: bool = False
    """Allow the log to quote the user's code."""
    log_level: str = "warning"
    """Level of the log on standard error."""

    @property
    def versions(self) -> dict[str, str | None]:
        """Return the versions of languages that override those of projects."""
        return {**self.language_versions, "python": self.python_version or self.language_versions.get("python")}

    @property
    def load_options(self) -> LoadOptions:
        return LoadOptions(**{name: getattr(self, name) for name in LOAD_OPTIONS})

    def trigger_of(self, language: str, learnt: Collection[str] | None = None, file: str = "") -> str:
        """Return the trigger of a language: `automatic`, `subtle`, `manual` or `off`.

        Args:
            language: The language.
            learnt: The languages that the model knows; None for all. Others are completed on request, or as
                the setting ``languages`` says.
            file: Path of the file below the workspace's folder, for globs; empty where there is none.
        """
        if not self.enabled:
            return "off"
        by_file = self.trigger_by_file(file)
        if by_file is not None:
            return by_file
        return self.languages.get(language, self.trigger if learnt is None or language in learnt else "manual")

    def trigger_by_file(self, file: str) -> str | None:
        """Return the trigger by the last glob that names a file, or None. ``file``: as of :meth:`trigger_of`."""
        globs = (key for key in reversed(list(self.languages)) if file and is_glob(key))
        return next((self.languages[glob] for glob in globs if is_named_by(file, glob)), None)

    def remembers(self, language: str, learnt: Collection[str] | None) -> bool:
        """Return whether files of a language are read before they are opened: those with automatic suggestions."""
        is_known = learnt is None or language in learnt or language in self.languages
        return is_known and self.trigger_of(language, learnt) != "off"

    def having(self, name: str, value: Any) -> ServerSettings:
        return replace(self, **{name: value})

    def loads_like(self, other: ServerSettings) -> bool:
        """Return whether both settings load the same model and the same grammars."""
        names = ("model", "device", "runtime", "versions", *LOAD_OPTIONS)
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def with_client(self, values: object) -> tuple[ServerSettings, list[str]]:
        """Return these settings with those of an editor, and a message for each of the editor's that is wrong.

        Wrong and unknown settings are left out. A model, device or version of the command line stays.

        ``values``: the content of ``initializationOptions`` or of a configuration change.
        """
        if values is None:
            return self, []
        if isinstance(values, Mapping) and isinstance(values.get(SECTION), Mapping):
            values = values[SECTION]
        if not isinstance(values, Mapping):
            return self, [f"settings are an object, not {type(values).__name__}"]
        changes: dict[str, Any] = {}
        problems = []
        for key, value in values.items():
            if key not in CLIENT_FIELDS:
                if key not in EDITORS_OWN:
                    problems.append(f"unknown setting {key!r}")
                continue
            name, read = CLIENT_FIELDS[key]
            if name in COMMAND_LINE_FIRST and getattr(self, name) is not None:
                continue
            try:
                changes[name] = DEFAULTS[name] if value is None else read(value)
            except ValueError as error:
                problems.append(f"setting {key!r}: {error}")
        return replace(self, **changes), problems


def own_fields(values: object) -> dict[str, Any] | None:
    """Return the fields of an editor's settings without their section; None if all belong to other programs."""
    if isinstance(values, Mapping) and isinstance(values.get(SECTION), Mapping):
        values = values[SECTION]
    if not isinstance(values, Mapping) or (values and not any(key in CLIENT_FIELDS for key in values)):
        return None
    return dict(values)


DEFAULTS: dict[str, Any] = {entry.name: getattr(ServerSettings(), entry.name) for entry in fields(ServerSettings)}

COMMAND_LINE_FIRST = frozenset(
    {"model", "device", "python_version", "gpu_layers", "adapter", "api_key_env", "tokenizer"}
)
"""Settings of the command line that an editor does not change."""

EDITORS_OWN = frozenset({"path", "interpreter", "args", "trace", "importStrategy", "logLevel"})
"""Settings of the extension, which editors send as well."""


def boolean(value: object) -> bool:
    """Return a JSON boolean. Raises ValueError for anything else."""
    if not isinstance(value, bool):
        raise ValueError(f"true or false expected, not {value!r}")
    return value


def number(low: float, high: float) -> Callable[[object], float]:
    def read(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise ValueError(f"a number from {low:.15g} to {high:.15g} expected, not {value!r}")
        return float(value)

    return read


def whole(low: int, high: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high or value % 1:
            raise ValueError(f"a whole number from {low} to {high} expected, not {value!r}")
        return int(value)

    return read


def one_of(*choices: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        if value not in choices:
            raise ValueError(f"one of {', '.join(choices)} expected, not {value!r}")
        return str(value)

    return read


def text(value: object) -> str | None:
    """Return a name; None for an empty one, which settings editors leave behind."""
    if not isinstance(value, str):
        raise ValueError(f"a text expected, not {value!r}")
    if "\0" in value or not is_encodable(value):  # no path, variable or device has such a name
        raise ValueError(f"a name expected, not {value!r}")
    return value.strip() or None


def is_encodable(name: str) -> bool:
    """Return whether a text has no half of a surrogate pair."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def triggers(value: object) -> dict[str, str]:
    """Return the triggers of languages; others keep their default."""
    if not isinstance(value, Mapping):
        raise ValueError(f"an object expected, not {value!r}")
    read = one_of(*TRIGGERS)
    named = {Language.name_for_editor(str(key)): read(trigger) for key, trigger in value.items()}
    globs = [name for name in named if is_glob(name)]
    if len(globs) > MOST_GLOBS:
        raise ValueError(f"{len(globs)} globs, at most {MOST_GLOBS} are read")
    for glob in globs:
        is_named_by("", glob)  # raises ValueError
    return {**DEFAULTS["languages"], **named}


def is_glob(key: str) -> bool:
    """Return whether a key of the setting ``languages`` names files, and no language."""
    return NAME.fullmatch(key) is None


def globs(value: object) -> tuple[str, ...]:
    """Return globs of files."""
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise ValueError(f"a list of texts expected, not {value!r}")
    secret_files(tuple(value))
    return tuple(value)


def python_version(value: object) -> str | None:
    """Return a known version of Python, or the word for the newest."""
    named = text(value)
    return None if named is None else one_of(*Language.versions("python"), NEWEST)(named)


def language_versions(value: object) -> dict[str, str]:
    """Return known versions of languages, or the word for the newest."""
    if not isinstance(value, Mapping):
        raise ValueError(f"an object expected, not {value!r}")
    named = {Language.name_for_editor(str(language)): version for language, version in value.items()}
    return {name: one_of(*Language.versions(one_of(*Language.names())(name)), NEWEST)(at) for name, at in named.items()}


CLIENT_FIELDS: dict[str, tuple[str, Callable[[object], Any]]] = {
    "enabled": ("enabled", boolean),
    "trigger": ("trigger", one_of(*SHOWING_TRIGGERS)),
    "languages": ("languages", triggers),
    "insideComments": ("inside_comments", boolean),
    "insideStrings": ("inside_strings", boolean),
    "multiline": ("multiline", one_of(*MULTILINE)),
    "minConfidence": ("min_confidence", number(0, 1)),
    "personalThreshold": ("personal_threshold", boolean),
    "alternatives": ("alternatives", whole(1, 5)),
    "maxTokens": ("max_tokens", whole(1, 4096)),
    "maxLineTokens": ("max_line_tokens", whole(1, 1024)),
    "promptTokens": ("prompt_tokens", whole(LEAST_PROMPT_TOKENS, 1_000_000)),
    "temperature": ("temperature", number(0, 2)),
    "deadlineMs": ("deadline_ms", number(0, 3_600_000)),
    "invokedDeadlineMs": ("invoked_deadline_ms", number(0, 3_600_000)),
    "debounceMs": ("debounce_ms", number(0, 60_000)),
    "maxFileCharacters": ("max_file_characters", whole(0, 100_000_000)),
    "memoryMb": ("memory_mb", whole(64, 100_000_000)),
    "floor": ("floor", one_of(*FLOORS)),
    "names": ("names", one_of(*NAMES)),
    "checker": ("checker", boolean),
    "secretFiles": ("secret_files", globs),
    "projectMemory": ("project_memory", boolean),
    "projectContext": ("project_context", one_of(*PROJECT_CONTEXT)),
    "askModel": ("ask_model", boolean),
    "prefetch": ("prefetch", boolean),
    "nextEdits": ("next_edits", boolean),
    "nextEditModel": ("next_edit_model", text),
    "logCode": ("log_code", boolean),
    "languageVersions": ("language_versions", language_versions),
    "pythonVersion": ("python_version", python_version),
    "model": ("model", text),
    "device": ("device", text),
    "gpuLayers": ("gpu_layers", whole(-1, 10_000)),
    "adapter": ("adapter", text),
    "apiKeyEnv": ("api_key_env", text),
    "allowPlainHttp": ("allow_plain_http", boolean),
    "tokenizer": ("tokenizer", text),
}
"""Fields of the editor with the names of the settings and the readers of their values."""
