"""Suggestions: the pipeline from a cursor to what an editor shows, without LSP and without threads."""
