"""Small languages, and plain twins and texts of the real ones."""
