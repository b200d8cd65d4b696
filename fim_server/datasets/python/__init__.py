"""What of the datasets is about Python as a source of data, by purpose: its text, holes, tests and benchmark.

Holes that look at a language's structure are cut with that language's own parser, and a sample's test is run by its own
interpreter. Both are CPython's, which the engine's grammars have no part in: what measures the engine must not rest on
it. Other languages are cut by data alone (`fim_server.datasets.defined`).
"""
