"""Regions of HTML read by characters: the states of the standard's section 13.2.5, written out plainly.

The end of the text ends the name of an end tag: so does the code under test.
"""

from __future__ import annotations

from dataclasses import dataclass, field

BLANKS = " \t\n\f"
CODE = ("script", "style")
RAW = {"html": ("iframe", "noembed", "noframes", "style", "textarea", "title", "xmp"), "vue": ("style", "textarea")}
RAW |= {"svelte": RAW["vue"], "astro": ("style", "textarea", "title")}
ESCAPES, CLOSES_ITSELF = ("html", "astro"), ("vue", "svelte", "astro")


@dataclass
class Reader:
    """A tokenizer at a place of a text.

    Attributes:
        found: Attributes, first character and last one of each script and style.
    """

    host: str
    text: str
    at: int = 0
    found: list[tuple[dict[str, str], int, int]] = field(default_factory=list)

    def sees(self, part: str, at: int) -> bool:
        return self.text[at : at + len(part)].lower() == part

    def names(self, part: str, at: int) -> bool:
        """Return whether a name stands at a place, and ends there."""
        end = at + len(part)
        return self.sees(part, at) and (end >= len(self.text) or self.text[end] in BLANKS + "/>")

    def read(self) -> None:
        while self.at < len(self.text):
            if self.text[self.at] != "<":
                self.at += 1
                continue
            after = self.text[self.at + 1 : self.at + 2]
            if self.sees("<!--", self.at):
                self.comment()
            elif after and after in "!?":
                self.bogus_comment()
            elif after == "/":
                following = self.text[self.at + 2 : self.at + 3]
                if is_letter(following):
                    self.at += 2
                    self.tag()
                elif following == ">":
                    self.at += 3
                else:
                    self.bogus_comment()
            elif is_letter(after):
                self.at += 1
                self.element()
            else:
                self.at += 1

    def comment(self) -> None:
        self.at += 4
        for whole in (">", "->"):
            if self.sees(whole, self.at):
                self.at += len(whole)
                return
        while self.at < len(self.text) and not self.sees("-->", self.at) and not self.sees("--!>", self.at):
            self.at += 1
        self.at += 3 if self.sees("-->", self.at) else 4

    def bogus_comment(self) -> None:
        while self.at < len(self.text) and self.text[self.at] != ">":
            self.at += 1
        self.at += 1

    def tag(self) -> tuple[str, dict[str, str], bool]:
        """Read a tag from its name on; return name, attributes, and whether it closes itself.

        The name is empty where the text ends in the tag.
        """
        name = ""
        while self.at < len(self.text) and self.text[self.at] not in BLANKS + "/>":
            name += self.text[self.at].lower()
            self.at += 1
        attributes: dict[str, str] = {}
        while self.at < len(self.text):
            character = self.text[self.at]
            if character == ">":
                self.at += 1
                return name, attributes, self.text[self.at - 2] == "/"
            if character in BLANKS + "/":
                self.at += 1
                continue
            key, value = self.attribute()
            attributes.setdefault(key, value)
        return "", attributes, False

    def attribute(self) -> tuple[str, str]:
        start = self.at
        self.at += 1
        while self.at < len(self.text) and self.text[self.at] not in BLANKS + "/>=":
            self.at += 1
        key = self.text[start : self.at].lower()
        ahead = self.skip_blanks(self.at)
        if self.text[ahead : ahead + 1] != "=":
            return key, ""
        ahead = self.skip_blanks(ahead + 1)
        opening = self.text[ahead : ahead + 1]
        if opening == "":
            return key, ""
        if opening in "\"'":
            close = self.text.find(opening, ahead + 1)
            if close < 0:
                self.at = len(self.text)
                return key, ""
            self.at = close + 1
            return key, self.text[ahead + 1 : close]
        end = ahead
        while end < len(self.text) and self.text[end] not in BLANKS + ">":
            end += 1
        self.at = end
        return key, self.text[ahead:end]

    def skip_blanks(self, at: int) -> int:
        while at < len(self.text) and self.text[at] in BLANKS:
            at += 1
        return at

    def element(self) -> None:
        name, attributes, closes_itself = self.tag()
        if name not in (*RAW[self.host], "script"):
            return
        if closes_itself and self.host in CLOSES_ITSELF:
            return
        start = self.at
        if name == "script" and self.host in ESCAPES:
            self.script()
        else:
            while self.at < len(self.text) and not self.names(f"</{name}", self.at):
                self.at += 1
        if name in CODE:
            self.found.append((attributes, start, self.at))
        if self.at < len(self.text):
            self.at += 2
            self.tag()

    def script(self) -> None:
        """Read a script up to its end tag: "script data", "escaped" and "double escaped"."""
        escaped = double = False
        while self.at < len(self.text):
            if escaped and self.sees("-->", self.at):
                escaped = double = False
                self.at += 3
            elif not escaped and self.sees("<!--", self.at):
                escaped = True
                self.at += 2  # its dashes may be the end's
            elif self.names("</script", self.at):
                if not double:
                    return
                double = False
                self.at += 1
            elif escaped and self.names("<script", self.at):
                double = True
                self.at += 1
            else:
                self.at += 1


def is_letter(character: str) -> bool:
    return character.isascii() and character.isalpha()


def scripts(host: str, text: str) -> list[tuple[dict[str, str], int, int]]:
    """Return attributes, first character and end of the scripts and styles of a host's file."""
    reader = Reader(host, text)
    reader.read()
    return reader.found
