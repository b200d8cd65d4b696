"""Preference for tokens that write existing names in Python code.

A token has *kinds*, by the name that it writes and by the name's place: for example, a local name without a use
so far. Each kind has a weight that changes the token's logit. The weights are data (`preferring.toml`), fitted by
`python -m benchmarks.suggestions.preferring`.
"""

from __future__ import annotations

import builtins
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from keyword import kwlist, softkwlist
from pathlib import Path
from typing import TYPE_CHECKING

from fim_server.language_support.python.around import WORD, Around, Words
from fim_server.language_support.python.lacking import BINDING, Lacking, lacking_of
from fim_server.language_support.python.model import FIRST_PARAMETERS, NEWER_BUILTINS
from fim_server.language_support.python.tracking import Tracker, as_bytes

if TYPE_CHECKING:
    from fim_server.language_support.protocol import Importable, Parameters

KEYWORDS = Words((*kwlist, *softkwlist, "lazy"))
BUILTINS = Words((*dir(builtins), *NEWER_BUILTINS, "__file__", "__name__", "__doc__"))

TOKEN = re.compile(r"([ \t]*)(\w*)(.*)\Z", re.DOTALL)
WORD_END = re.compile(r"\w*\Z")
RECEIVER = re.compile(r"(\w+)[ \t]*\.\Z")
LAZY = r"[ \t]*(?:lazy[ \t]+)?"
IMPORTING = re.compile(rf"{LAZY}(?:from|import)\b")
ONE = r"\w+(?:[ \t]+as[ \t]+\w+)?[ \t]*,[ \t]*"
PACKAGE = re.compile(rf"{LAZY}(?:from[ \t]+|import[ \t]+(?:(?:\w+\.)*{ONE})*)(\.*(?:\w+\.)*)\Z")
MEMBER = re.compile(rf"{LAZY}from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]+\(?[ \t]*(?:{ONE})*\Z")
TARGETS = re.compile(r"[ \t]*[\w, \t]*\Z")
BEFORE_NEW = frozenset({"def", "class", "import", "from", "as", "global", "nonlocal", "for", "lambda"})
"""Words after which a name is new, or a module's."""

BINDING_HEADERS = frozenset({"for", "async", "def"})
"""First words of headers that mostly bind names for their block."""

DEFINING = re.compile(r"[ \t]*(?:async[ \t]+)?def\b")

BINDS = re.compile(r"[ \t]*(?:=(?!=)|:(?!=)|,)")
"""Text behind a target."""

LOADING = (".", "(", "[", ")", "]", "}", "+", "-", "*", "/", "%", "<", ">", "|", "&", "^", "==")
"""Texts that mostly stand behind a loaded name."""

MOST_NAME = 8
"""Words of a function's name that count."""


@dataclass(frozen=True, slots=True)
class Place:
    """Place of a word.

    Attributes:
        kind: `name`, `own` (attribute of the instance or class), `attribute`, `module`, `public` (name imported from a
            module), `target`, `parameter`, `further_parameter` (its header begins in a line above), or nothing.
        receiver: Words that stand behind the same receiver elsewhere.
        imported: Names that can be imported.
        arguments: Names of arguments that can stand here.
        bound: Names that the cursor's statement binds so far.
        unused: Those of them without another use in the line.
        begins: Whether the word may be a target: only names stand before it in its line.
    """

    kind: str = ""
    receiver: Words | None = None
    imported: Words | None = None
    arguments: Words | None = None
    bound: Words | None = None
    unused: Words | None = None
    begins: bool = False


@dataclass
class Preference:
    """Preference for tokens at a cursor by the names that they write.

    Attributes:
        left: The text up to the cursor.
        around: The names around the cursor.
        parameters: Looks up the parameters of names that other files define.
        modules: The modules that can be imported.
    """

    left: str
    around: Around
    parameters: Parameters = lambda name: ()
    modules: Importable | None = None
    _line: int = field(init=False)
    _receivers: dict[str, Words] = field(default_factory=dict, init=False)
    _arguments: dict[str, Words] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._line = self.left.rfind("\n") + 1
        self._read, self._reader = "", self.around.reader

    def __call__(self, middle: str, healing: str, texts: Sequence[str | None]) -> list[float]:
        """Return the changes of the logits of tokens.

        Args:
            middle: The text so far.
            healing: The end of the left context, which tokens write again.
            texts: The texts of the tokens; None for one that is no text by itself.
        """
        weights = fitted_weights()
        return [sum(weights.get(kind, 0.0) for kind in kinds) for kinds in self.kinds(middle, healing, texts)]

    def kinds(self, middle: str, healing: str, texts: Sequence[str | None]) -> list[list[str]]:
        """Return the kinds of tokens, with the arguments of a call."""
        before = self.left[: len(self.left) - len(healing)] + middle
        begun = WORD_END.search(before, max(0, len(before) - 80))
        word = begun[0] if begun is not None else ""
        places: dict[str, Place] = {}
        found = []
        for text in texts:
            parts = TOKEN.match(text) if text else None
            found.append([] if parts is None else self._kinds_of(before, word, parts, places))
        return found

    def _reader_after(self, code: str) -> Tracker:
        """Return a reader behind text that begins with the cursor's line; the longest common text is read once."""
        if not code.startswith(self._read):
            self._read, self._reader = "", self.around.reader
        begun = WORD_END.search(code, max(0, len(code) - 80))
        stem = code if begun is None else code[: begun.start()]
        if len(stem) > len(self._read):
            reader = self._reader.copy()
            reader.feed(as_bytes(stem[len(self._read) :]))
            self._read, self._reader = stem, reader
        reader = self._reader.copy()
        reader.feed(as_bytes(f"{code[len(self._read) :]} "))  # a blank ends a lexeme that may go on
        return reader

    def _kinds_of(self, before: str, word: str, parts: re.Match[str], places: dict[str, Place]) -> list[str]:
        """Return the kinds of a token.

        Args:
            before: The text before the token.
            word: The part of a word that this text ends with.
            parts: The token's blanks, its run of characters of words, and its rest.
            places: Known places, by the text of a token before its word.
        """
        blank, run, rest = parts.groups()
        if not run:
            return self._ending(before, word, blank + rest, places) if word else []
        goes_on = bool(word) and not blank
        name = word + run if goes_on else run
        if name[0].isdigit() or rest[:1] in ("'", '"'):
            return []
        start = len(before) - len(word) if goes_on else len(before)
        key = "within" if goes_on else blank and "apart"
        if key not in places:
            places[key] = self._place(before[:start] + ("" if goes_on else blank))
        place = places[key]
        is_whole = bool(rest)
        if place.kind == "target":
            return ["lacking_target"] if self._lacking.names.has(name, is_whole) else []
        if place.kind in ("parameter", "further_parameter"):
            names = self._lacking.parameters if place.kind == "parameter" else self._lacking.names
            return ["lacking_parameter"] if names.has(name, is_whole) else []
        if place.kind == "name":
            return self._name(name, is_whole, place)
        if place.kind == "own":
            hidden = ["own_hidden"] if len(name) > 1 and self._hidden.has(name, is_whole) else []
            return [self._own(name, is_whole), *hidden]
        if place.kind == "attribute":
            named = ["attribute_named"] if self._named.has(name, is_whole) else []
            return [self._attribute(name, is_whole, place), *named]
        if place.imported is not None and name != "import":
            return [place.kind if place.imported.has(name, is_whole) else f"{place.kind}_unknown"]
        return []

    def _name(self, name: str, is_whole: bool, place: Place) -> list[str]:
        around = self.around
        kinds = []
        if KEYWORDS.has(name, is_whole):
            kinds.append("keyword")
        if place.arguments is not None and place.arguments.has(name, is_whole):
            kinds.append("argument")
        if place.begins and name in BINDING_HEADERS and self._lacking.names and self._lacking.is_header:
            kinds.append("lacking_header")
        if place.begins and self._lacking.targets.has(name, is_whole):
            kinds.append("lacking")
        elif around.unused.has(name, is_whole) or (place.unused is not None and place.unused.has(name, is_whole)):
            kinds.append("unused")
        elif around.used.has(name, is_whole) or (place.bound is not None and place.bound.has(name, is_whole)):
            kinds.append("local")
        elif around.outer.has(name, is_whole):
            kinds.append("outer")
        elif BUILTINS.has(name, is_whole):
            kinds.append("builtin")
        elif not kinds and around.words.has(name, is_whole):
            kinds.append("elsewhere")
        elif not kinds:
            kinds.append("new" if place.begins else "unknown")
        if name == around.function and not around.used.has(name, True):
            kinds.append("itself")
        return kinds

    def _own(self, name: str, is_whole: bool) -> str:
        """Return the kind of an attribute of the instance: its own, before the kind of one that only begins so."""
        if self.around.unused_members.has(name, True):
            return "own_unused"  # which is no used one
        if self.around.members.has(name, is_whole):
            return "own"
        if self.around.unused_members.has(name, is_whole):
            return "own_unused"
        return "own_elsewhere" if self.around.words.has(name, is_whole) else "own_unknown"

    def _attribute(self, name: str, is_whole: bool, place: Place) -> str:
        if place.receiver is not None and place.receiver.has(name, is_whole):
            return "attribute_of_receiver"
        if self.around.attributes.has(name, is_whole):
            return "attribute"
        return "attribute_elsewhere" if self.around.words.has(name, is_whole) else "attribute_unknown"

    @property
    def _lacking(self) -> Lacking:
        """Undefined names."""
        return lacking_of(self.around)

    @cached_property
    def _named(self) -> Words:
        """Runs of words in the function's name: a test is named after its subject."""
        words = [word for word in self.around.function.split("_") if word][:MOST_NAME]
        return Words("_".join(words[start:end]) for end in range(1, len(words) + 1) for start in range(end))

    @cached_property
    def _hidden(self) -> Words:
        """Attribute that a property mostly returns: its name after an underscore."""
        return Words((f"_{self.around.function}",) if self.around.function else ())

    def _ending(self, before: str, word: str, after: str, places: dict[str, Place]) -> list[str]:
        """Return the kinds of a token that ends a word."""
        if word[0].isdigit():
            return []
        if "within" not in places:
            places["within"] = self._place(before[: len(before) - len(word)])
        place = places["within"]
        if place.kind != "name":
            return []
        if place.begins and self._lacking.targets.has(word, True):
            return ["ends_target"] if BINDS.match(after) else []
        known = (self.around.used, self.around.unused, self.around.outer, place.bound, BUILTINS, KEYWORDS)
        if any(names is not None and names.has(word, True) for names in known):
            return []
        if self.around.words.has(word, True):
            return ["ends_elsewhere"]
        return ["ends_loaded" if after.lstrip(" \t").startswith(LOADING) else "ends_new"]

    def _place(self, before: str) -> Place:
        """Return the place of a word after a text."""
        line = before[before.rfind("\n") + 1 :]
        here = before[self._line :]
        reader = self._reader_after(here)
        if reader.is_in_text:
            return Place()
        if IMPORTING.match(line):
            return self._imported(line)
        end = before[-200:].rstrip(" \t")
        if end.endswith(".") and not end.endswith(".."):
            receiver = RECEIVER.search(end)
            if receiver is None:
                return Place("attribute")
            if receiver[1].isdigit():
                return Place()
            if receiver[1] in FIRST_PARAMETERS:
                return Place("own")
            return Place("attribute", kept(self._receivers, receiver[1], self.around.attributes_of))
        if BINDING.match(line):
            return Place("target")
        last = WORD_END.search(end)
        if last is not None and last[0] in BEFORE_NEW:
            return Place()
        called, is_start = reader.called, reader.frames[-1].is_start
        if called == "":
            if not is_start or reader.first == "class":
                return Place()
            return Place("parameter" if DEFINING.match(line) else "further_parameter")
        arguments = kept(self._arguments, called, self._parameters_of) if called and is_start else None
        bound, uses = reader.bound, Counter(WORD.findall(here))
        unused = Words(name for name in bound if uses[name] == 1)
        return Place("name", None, None, arguments, Words(bound), unused, TARGETS.match(line) is not None)

    def _imported(self, line: str) -> Place:
        """Return the place of a word in an import statement. ``line``: the part of its line before the word."""
        if self.modules is None:
            return Place()
        if (package := PACKAGE.match(line)) is not None:
            return Place("module", imported=Words(self.modules.below(package[1])))
        member = MEMBER.match(line)
        public = None if member is None else self.modules.public(member[1])
        return Place() if public is None else Place("public", imported=Words(public))

    def _parameters_of(self, name: str) -> Words:
        return Words(self.around.parameters_of(name) or self.parameters(name))


def kept(known: dict[str, Words], name: str, look: Callable[[str], Words]) -> Words:
    """Return the words of a name, which are looked up once."""
    if name not in known:
        known[name] = look(name)
    return known[name]


@cache
def fitted_weights() -> Mapping[str, float]:
    """Return the weights that come with the package."""
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    return {kind: float(weight) for kind, weight in tomllib.loads(text).items()}
