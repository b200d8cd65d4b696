"""Runs of whole programs that a model wrote, in several languages, on inputs whose outputs are known."""
