"""Names and imports of Python that next edits need."""
