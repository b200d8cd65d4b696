"""What is kept about books, members and loans."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta

LOAN_DAYS = 21


@dataclass
class Book:
    isbn: str
    title: str
    author: str
    year: int
    copies: int = 1
    subjects: list[str] = field(default_factory=list)

    def matches(self, text: str) -> bool:
        text = text.lower()
        return text in self.title.lower() or text in self.author.lower()


@dataclass
class Member:
    number: int
    name: str
    email: str
    joined: date
    blocked: bool = False
    loans: list[Loan] = field(default_factory=list)

    def label(self) -> str:
        return f"{self.name} ({self.number})"


@dataclass
class Loan:
    book: Book
    member: Member
    start: date
    due: date
    renewals: int = 0
    returned: date | None = None

    @classmethod
    def begin(cls, book: Book, member: Member, today: date) -> Loan:
        return cls(book, member, today, today + timedelta(days=LOAN_DAYS))

    @property
    def is_open(self) -> bool:
        return self.returned is None

    def is_overdue(self, today: date) -> bool:
        return self.is_open and today > self.due

    def renew(self) -> None:
        self.due = self.due + timedelta(days=LOAN_DAYS)
        self.renewals += 1
