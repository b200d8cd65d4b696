"""Random files of HTML and its relatives, with code in them."""

from __future__ import annotations

import random

from fim_server.text.regions import Host, hosts

PROGRAMS = {
    "javascript": ("f(a, b);\n", "const a = `x${b}`;\n", "if (a < b) {\n  g(/[<]/, 'c');\n}\n", "let c = a / b\nh()\n"),
    "typescript": ("const a: B = c as D;\n", "f<T>(x);\n", "let a = `</p>`;\n"),
    "json": ('{"a": [1, 2]}', "[1, {}]"),
}
"""Small programs, cut anywhere."""

SCRIPTS = {
    "<script>": "javascript",
    "<SCRIPT type=\"module\" a='>'>": "javascript",
    "<script type='application/json'\n>": "json",
    "<script src=a.js>": "",
    "<script type=text/x-template>": "",
    '<script lang="ts" setup>': "typescript",
}
"""Start tags, with the language that Vue and Svelte read there."""

AROUND = (
    "<p>",
    "</p>",
    "text it's",
    "<!-- <script>f(</script> -->",
    "<!---->",
    '<a title="<script>" b=c/d>',
    "<br/>",
    "😀\n",
    "<style>a < b { }</style>",
    "< b",
    "<!doctype html>",
    "\n",
    "<textarea><script></textarea>",
    "<!-- a --!>",
)


def random_markup(draw: random.Random) -> str:
    return "".join(draw.choice(AROUND) for _ in range(draw.randint(0, 4)))


def random_host_file(draw: random.Random) -> tuple[Host, str, int, str]:
    """Return a host, a file of it, a cursor and the text that stood there.

    The cursor is in code in most files, in markup in some.
    """
    host = draw.choice([one for one in hosts() if not one.text_is_plain])
    tag = draw.choice(list(SCRIPTS))
    language = SCRIPTS[tag] or "javascript"
    program = "".join(draw.choice(PROGRAMS[language]) for _ in range(1 if language == "json" else draw.randint(1, 2)))
    start, end = sorted(draw.randint(0, len(program)) for _ in range(2))
    end = min(end, start + 12)
    left, rest, right = program[:start], program[start:end], program[end:]
    before, after = random_markup(draw), random_markup(draw)
    closing = draw.choice(("</script>", "</script >", "</SCRIPT\n>"))
    text = f"{before}{tag}{left}{right}{closing}{after}"
    offset = len(before) + len(tag) + start
    if draw.random() < 0.2:
        offset = draw.randint(0, len(text))
    return host, text, offset, rest
