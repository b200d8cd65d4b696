"""JSON documents as programs write them, made from a seed: what JSON is measured on where no folder is given."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable
from typing import Any

_WORDS = """
access account address amount archive author backend batch billing branch bucket build cache catalog channel client
cluster colour commit config contact country created customer daily default delivery deploy device digest domain
driver editor email enabled endpoint engine entry error event export factor feature field filter folder format gateway
group handler header height history hosting image import index input invoice item journal kernel label language
latency layout level licence limit linked locale login machine manager member memory message metric minimum mobile
model module monitor network number object offset order origin output owner package parent partner password payment
period pipeline plugin policy port price primary process product profile project property provider public query queue
reader record region release remote report request resource result retry review router runtime sample schedule schema
script search secret section sensor server service session setting shard signal source stage status storage stream
string subject summary support system target task template tenant thread ticket timeout token total trace track
trigger tunnel update upload user value vendor version volume warehouse weekly window worker workflow writer yearly
zone
"""
WORDS = tuple(_WORDS.split())
NAMES = ("Ana", "Björn", "Chloé", "Dmitri", "Eszter", "Fatima", "Grace", "Hiroshi", "Iñigo", "Jürgen", "Łukasz", "美咲")
INDENTS = (None, None, 2, 2, 4)
"""Compact and indented forms, as often as files have them."""


def document(seed: int | str) -> str:
    """One document; the seed decides every character of it."""
    draw = random.Random(f"json {seed}")
    kind: Callable[[random.Random], Any] = draw.choice((configuration, records, package, features, events))
    indent = draw.choice(INDENTS)
    compact = indent is None and draw.random() < 0.5
    text = json.dumps(
        kind(draw),
        ensure_ascii=draw.random() < 0.3,
        indent=indent,
        separators=(",", ":") if compact else None,
    )
    return text + "\n" * (draw.random() < 0.7)


def configuration(draw: random.Random) -> dict[str, Any]:
    """Nested settings of some service."""

    def section(depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for _ in range(draw.randint(3, 8)):
            nested = depth > 0 and draw.random() < 0.35
            made[key(draw)] = section(depth - 1) if nested else scalar(draw) if draw.random() < 0.8 else scalars(draw)
        return made

    return {"$schema": f"https://example.org/{key(draw)}.schema.json", "version": draw.randint(1, 4), **section(4)}


def records(draw: random.Random) -> list[dict[str, Any]]:
    """Rows of one shape, as an interface returns them."""
    return [
        {
            "id": number,
            "uuid": f"{draw.getrandbits(128):032x}",
            "name": f"{draw.choice(NAMES)} {draw.choice(WORDS).title()}",
            "email": f"{draw.choice(WORDS)}.{draw.choice(WORDS)}@example.org" if draw.random() < 0.9 else None,
            "balance": round(draw.uniform(-500, 50_000), 2),
            "active": draw.random() < 0.7,
            "created": moment(draw),
            "tags": [draw.choice(WORDS) for _ in range(draw.randint(0, 4))],
            "address": {"street": f"{draw.choice(WORDS).title()}straße {draw.randint(1, 99)}", "zip": digits(draw, 5)},
            "note": sentence(draw),
        }
        for number in range(1, draw.randint(12, 40))
    ]


def package(draw: random.Random) -> dict[str, Any]:
    """A package's metadata."""

    def dependencies() -> dict[str, str]:
        return {
            f"{draw.choice(WORDS)}-{draw.choice(WORDS)}": release(draw, "^~>= ") for _ in range(draw.randint(2, 12))
        }

    return {
        "name": f"@{draw.choice(WORDS)}/{draw.choice(WORDS)}-{draw.choice(WORDS)}",
        "version": release(draw, " "),
        "description": sentence(draw),
        "keywords": [draw.choice(WORDS) for _ in range(draw.randint(0, 6))],
        "license": draw.choice(("MIT", "Apache-2.0", "BSD-3-Clause")),
        "author": {"name": draw.choice(NAMES), "url": f"https://example.org/{draw.choice(WORDS)}"},
        "files": [f"{draw.choice(WORDS)}/**/*.{draw.choice(('js', 'ts', 'css'))}" for _ in range(draw.randint(1, 4))],
        "scripts": {
            draw.choice(
                WORDS
            ): f'{draw.choice(WORDS)} --{draw.choice(WORDS)} "{draw.choice(WORDS)}\\{draw.choice(WORDS)}"'
            for _ in range(draw.randint(2, 8))
        },
        "dependencies": dependencies(),
        "devDependencies": dependencies(),
        "engines": {"node": ">=20"},
        "private": draw.random() < 0.3,
    }


def features(draw: random.Random) -> dict[str, Any]:
    """Points, lines and areas as in GeoJSON."""

    def place() -> list[float]:
        return [round(draw.uniform(-180, 180), draw.randint(3, 14)), round(draw.uniform(-90, 90), draw.randint(3, 14))]

    def geometry() -> dict[str, Any]:
        kind = draw.choice(("Point", "LineString", "Polygon"))
        ring = [place() for _ in range(draw.randint(3, 12))]
        shape: Any = {"Point": ring[0], "LineString": ring, "Polygon": [[*ring, ring[0]]]}[kind]
        return {"type": kind, "coordinates": shape}

    return {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature",
                "id": draw.randint(1, 10**9),
                "geometry": geometry(),
                "properties": {
                    "name": draw.choice(WORDS),
                    "population": draw.randint(0, 10**7),
                    key(draw): scalar(draw),
                },
            }
            for _ in range(draw.randint(6, 20))
        ],
    }


def events(draw: random.Random) -> dict[str, Any]:
    """A log with measurements, empty containers and numbers in all their spellings."""
    return {
        "session": f"{draw.getrandbits(64):x}",
        "context": {},
        "errors": [],
        "events": [
            {
                "at": draw.randint(1_600_000_000_000, 1_900_000_000_000),
                "type": key(draw),
                "payload": {key(draw): scalar(draw) for _ in range(draw.randint(0, 5))},
                "samples": [draw.choice((0, -1, 1.5, 2e-7, 6.02e23, draw.random())) for _ in range(draw.randint(0, 9))],
                "message": sentence(draw),
            }
            for _ in range(draw.randint(10, 30))
        ],
    }


def key(draw: random.Random) -> str:
    """A name in one of the common styles."""
    first, second = draw.choice(WORDS), draw.choice(WORDS)
    return draw.choice(
        (first, f"{first}_{second}", f"{first}{second.title()}", f"{first}-{second}", f"{first}.{second}")
    )


def scalar(draw: random.Random) -> Any:
    return draw.choice(
        (
            draw.choice(WORDS),
            sentence(draw),
            draw.randint(-10, 10_000),
            round(draw.uniform(0, 100), 3),
            draw.random() < 0.5,
            None,
            f"/{draw.choice(WORDS)}/{draw.choice(WORDS)}.{draw.choice(('log', 'sock', 'yaml'))}",
            f"C:\\{draw.choice(WORDS).title()}\\{draw.choice(WORDS)}\t{draw.choice(WORDS)}\n",
            moment(draw),
        )
    )


def scalars(draw: random.Random) -> list[Any]:
    return [scalar(draw) for _ in range(draw.randint(0, 6))]


def sentence(draw: random.Random) -> str:
    words = [draw.choice((*WORDS, *NAMES)) for _ in range(draw.randint(3, 12))]
    quote = draw.choice(('"{}"', "{}", "{}", "({})"))
    words[0] = quote.format(words[0].title())
    return " ".join(words) + draw.choice((".", "!", " – ok", " ✓", ""))


def moment(draw: random.Random) -> str:
    """A time as ISO 8601 writes it."""
    day = f"20{draw.randint(10, 29)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}"
    return f"{day}T{draw.randint(0, 23):02}:{draw.randint(0, 59):02}:{draw.randint(0, 59):02}Z"


def digits(draw: random.Random, count: int) -> str:
    return "".join(draw.choice(string.digits) for _ in range(count))


def release(draw: random.Random, prefixes: str) -> str:
    return draw.choice(prefixes).strip() + ".".join(str(draw.randint(0, 20)) for _ in range(3))
