"""Last stage: red flags, order and display of suggestions."""
