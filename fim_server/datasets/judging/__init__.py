"""A language's definition against its own parser: judges, cuts of real files, and what is asked of each cut."""
