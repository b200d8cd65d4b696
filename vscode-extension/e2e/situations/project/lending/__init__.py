"""A lending library: its books, its members, who has what, and until when."""
