"""Corpora of many languages, collected from packages of registries."""
