from datetime import date, timedelta

import pytest

from lending.errors import NotAvailable, UnknownBook
from lending.library import Library
from lending.records import Book, Member

TODAY = date(2026, 3, 2)


@pytest.fixture
def library() -> Library:
    library = Library("Town")
    library.add_book(Book("1", "Emma", "Jane Austen", 1815))
    library.add_book(Book("2", "Middlemarch", "George Eliot", 1871, copies=2))
    library.add_member(Member(1, "Ada", "ada@example.org", TODAY))
    library.add_member(Member(2, "Grace", "grace@example.org", TODAY))
    return library


def test_lend(library):
    loan = library.lend("1", 1, TODAY)
    assert loan.is_open
    assert loan.due == TODAY + timedelta(days=21)


def test_lend_unknown_book(library):
    with pytest.raises(UnknownBook):
        library.lend("3", 1, TODAY)


def test_no_copy_left(library):
    library.lend("1", 1, TODAY)
    with pytest.raises(NotAvailable):
        library.lend("1", 2, TODAY)


def test_take_back(library):
    loan = library.lend("1", 1, TODAY)
    library.take_back(loan, TODAY)
    assert not loan.is_open
    assert library.available(loan.book) == 1


def test_search(library):
    assert [book.title for book in library.search("emma")] == ["Emma"]


def test_overdue(library):
    loan = library.lend("2", 2, TODAY)
    assert library.overdue(TODAY) == []
    assert library.overdue(TODAY + timedelta(days=30)) == [loan]
