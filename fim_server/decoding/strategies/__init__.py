"""Strategies: several middles, search, sampling and batches."""
