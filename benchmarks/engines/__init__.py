"""Benchmarks of the plug-ins in other inference engines."""
