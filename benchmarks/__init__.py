"""Benchmarks: what `./dev bench` measures and prints."""
