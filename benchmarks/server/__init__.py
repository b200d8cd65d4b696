"""Benchmarks of the language server, and the typist who plays an editor."""
