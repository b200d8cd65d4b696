"""Datasets of Python files: their text, holes, tests and benchmark.

Holes that follow a language's structure are cut with that language's own parser, and its own interpreter runs a
sample's test. Both are CPython's and independent of the engine's grammars, since measurements of the engine must not
rest on the engine. Other languages are cut by data alone (`fim_server.datasets.defined`).
"""
