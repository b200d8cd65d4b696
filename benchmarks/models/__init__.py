"""Benchmarks of runtimes, precisions and endpoints of models."""
