"""A file to measure at: an inventory, its orders and a report. Written for the benchmarks; nothing runs it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Item:
    name: str
    price: float
    tags: list[str] = field(default_factory=list)
    stock: int = 0

    def is_low(self, least: int = 3) -> bool:
        return self.stock < least

    def label(self, width: int = 24) -> str:
        return f"{self.name:<{width}} {self.price:8.2f} ({', '.join(self.tags) or 'no tags'})"


class Inventory:
    def __init__(self, items: dict[str, Item] | None = None) -> None:
        self.items = items or {}
        self.log: list[tuple[str, int]] = []

    def add(self, item: Item, count: int = 1) -> None:
        known = self.items.setdefault(item.name, item)
        known.stock += count
        self.log.append((item.name, count))

    def take(self, name: str, count: int) -> int:
        try:
            item = self.items[name]
        except KeyError:
            return 0
        taken = min(count, item.stock)
        while taken > 0 and item.stock - taken < 0:
            taken -= 1
        item.stock -= taken
        self.log.append((name, -taken))
        return taken

    def cheapest(self, *tags: str) -> Item | None:
        found = None
        for item in self.items.values():
            if all(tag in item.tags for tag in tags):
                if found is None or item.price < found.price:
                    found = item
        return found

    def totals(self) -> dict[str, float]:
        return {
            tag: sum(item.price * item.stock for item in self.items.values() if tag in item.tags)
            for tag in sorted({tag for item in self.items.values() for tag in item.tags})
        }


def read(path: Path) -> Inventory:
    inventory = Inventory()
    for line in path.read_text(encoding="utf-8").splitlines():
        match json.loads(line):
            case {"name": str(name), "price": int() | float() as price, **rest}:
                inventory.add(Item(name, float(price), list(rest.get("tags", []))), int(rest.get("stock", 1)))
            case [name, price]:
                inventory.add(Item(name, price))
            case other:
                raise ValueError(f"not an item: {other!r}")
    return inventory


async def report(inventory: Inventory, lines: int = 20) -> str:
    rows = sorted(inventory.items.values(), key=lambda item: (-item.stock, item.name))[:lines]
    text = "\n".join(item.label() for item in rows)
    return text + "\n" if text else "nothing in stock\n"


if __name__ == "__main__":
    stock = read(Path("stock.jsonl"))
    print(stock.totals(), stock.cheapest("fruit", "fresh"), sep="\n")
