"""Oracles, small languages and fuzzers of the engine."""
