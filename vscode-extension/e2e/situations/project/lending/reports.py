"""Texts about a library's state, for letters and for the notice board."""

from __future__ import annotations

import csv
from collections import Counter
from datetime import date
from pathlib import Path

from lending.library import Library
from lending.records import Loan

FEE_PER_DAY = 0.20
MAX_FEE = 10.0


def fee(loan: Loan, today: date) -> float:
    if not loan.is_overdue(today):
        return 0.0
    days = (today - loan.due).days
    return min(days * FEE_PER_DAY, MAX_FEE)


def total_fees(loans: list[Loan], today: date) -> float:
    total = 0.0
    for loan in loans:
        total += fee(loan, today)
    return round(total, 2)


def reminder(loan: Loan, today: date) -> str:
    lines = [
        f"Dear {loan.member.name},",
        f"please bring back {loan.book.title} by {loan.book.author}.",
        f"It was due on {loan.due}, and {fee(loan, today):.2f} are to be paid.",
    ]
    return "\n".join(lines)


def popular(library: Library, count: int = 10) -> list[tuple[str, int]]:
    titles = Counter(loan.book.title for loan in library.loans)
    return titles.most_common(count)


def by_author(library: Library) -> dict[str, list[str]]:
    authors: dict[str, list[str]] = {}
    for book in library.books.values():
        authors.setdefault(book.author, []).append(book.title)
    return authors


def summary(library: Library, today: date) -> dict[str, object]:
    overdue = library.overdue(today)
    return {
        "name": library.name,
        "books": len(library.books),
        "members": len(library.members),
        "overdue": len(overdue),
        "fees": total_fees(overdue, today),
    }


def write_overdue(library: Library, path: Path, today: date) -> int:
    """Write the loans that are overdue to a CSV file, and return how many."""
    overdue = library.overdue(today)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["member", "title", "due"])
        for loan in overdue:
            writer.writerow([loan.member.name, loan.book.title, loan.due])
    return len(overdue)
