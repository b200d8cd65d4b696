"""``./dev bench next-edits``: next edits in replayed releases."""
