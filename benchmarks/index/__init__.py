"""Benchmarks of the project's index, and the fit of its weights."""
