"""Definitions of languages: a grammar and a TOML file, checked and lowered to the input of the engine."""
