from dataclasses import dataclass


@dataclass
class Line:
    name: str
    price: float


def total(lines: list[Line]) -> float:
    return sum(line.price for line in lines)
