"""The library itself: lends books and takes them back."""

from __future__ import annotations

import json
import logging
from datetime import date
from pathlib import Path

from lending.errors import NotAvailable, UnknownBook, UnknownMember
from lending.records import Book, Loan, Member

logger = logging.getLogger(__name__)

MAX_LOANS = 5
MAX_RENEWALS = 2


class Library:
    def __init__(self, name: str) -> None:
        self.name = name
        self.books: dict[str, Book] = {}
        self.members: dict[int, Member] = {}
        self.loans: list[Loan] = []

    def add_book(self, book: Book) -> None:
        self.books[book.isbn] = book
        logger.info("added %s", book.title)

    def add_member(self, member: Member) -> None:
        self.members[member.number] = member
        logger.info("added %s", member.name)

    def book(self, isbn: str) -> Book:
        try:
            return self.books[isbn]
        except KeyError:
            raise UnknownBook(isbn) from None

    def member(self, number: int) -> Member:
        try:
            return self.members[number]
        except KeyError:
            raise UnknownMember(number) from None

    def open_loans(self) -> list[Loan]:
        return [loan for loan in self.loans if loan.is_open]

    def available(self, book: Book) -> int:
        lent = sum(1 for loan in self.open_loans() if loan.book is book)
        return book.copies - lent

    def lend(self, isbn: str, number: int, today: date) -> Loan:
        book = self.book(isbn)
        member = self.member(number)
        if member.blocked:
            raise NotAvailable(f"{member.name} is blocked")
        elif self.available(book) == 0:
            raise NotAvailable(f"all copies of {book.title} are lent")
        elif len(member.loans) >= MAX_LOANS:
            raise NotAvailable(f"{member.name} has {len(member.loans)} books")
        loan = Loan.begin(book, member, today)
        self.loans.append(loan)
        member.loans.append(loan)
        return loan

    def take_back(self, loan: Loan, today: date) -> None:
        loan.returned = today
        loan.member.loans.remove(loan)
        logger.info("%s is back", loan.book.title)

    def renew(self, loan: Loan) -> bool:
        if loan.renewals >= MAX_RENEWALS:
            return False
        loan.renew()
        return True

    def overdue(self, today: date) -> list[Loan]:
        found = []
        for loan in self.loans:
            if loan.is_overdue(today):
                found.append(loan)
        return sorted(found, key=lambda loan: loan.due)

    def search(self, text: str, limit: int = 10) -> list[Book]:
        found = [book for book in self.books.values() if book.matches(text)]
        found.sort(key=lambda book: book.title)
        return found[:limit]

    def save(self, path: Path) -> None:
        data = {
            "name": self.name,
            "books": [vars(book) for book in self.books.values()],
            "members": [member.number for member in self.members.values()],
        }
        with path.open("w", encoding="utf-8") as file:
            json.dump(data, file, indent=2)
