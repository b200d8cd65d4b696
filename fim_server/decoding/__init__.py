"""Decoding: a model's tokens, one after another, those that the engine allows."""
