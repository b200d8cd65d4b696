"""Cuts that turn a text into a suggestion: indentation, lines and phrases that are there already."""
