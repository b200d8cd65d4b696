"""Benchmarks of the engine: sessions, masks, growth, languages."""
