"""Benchmarks: what `fim-server bench` measures and prints."""
