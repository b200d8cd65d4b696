"""What can go wrong when something is lent."""


class LendingError(Exception):
    """Base of all errors of this package."""


class UnknownBook(LendingError):
    """There is no book with that ISBN."""

    def __init__(self, isbn: str) -> None:
        super().__init__(f"there is no book {isbn}")
        self.isbn = isbn


class UnknownMember(LendingError):
    """There is no member with that number."""

    def __init__(self, number: int) -> None:
        super().__init__(f"there is no member {number}")
        self.number = number


class NotAvailable(LendingError):
    """All copies are lent."""
