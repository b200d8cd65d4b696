"""Servers that tests start, and the fuzzer of served items."""
